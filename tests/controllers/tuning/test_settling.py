# SPDX-License-Identifier: MIT
"""The length of "streaming" that a run settles on, here on the CPU as if it were a GPU."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from controllers import Computation, Stencil, reference_run
from controllers.engine import Engine
from controllers.kernel.offer import Generated
from controllers.kgt.strategies.streaming import StreamingConfig
from controllers.tuning.settling import BUDGET_S
from controllers.tuning.site import chosen_launches

MEAN = Stencil.of("mean", [(-1, 1)] * 2, [0, 1, 0, 1, 0, 1, 0, 1, 0], 4)
EXTENT = 150, 70


@pytest.fixture(autouse=True)
def _as_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Generated, "kind", "gpu")


def configured(engine: Engine) -> StreamingConfig:
    """What the launches of the engine take."""
    (launches,) = chosen_launches(engine)
    program, (sweep,) = engine.plan.program, engine.plan.sweeps
    launch = launches.executor.launch_of(program, sweep, launches.placed)
    found = launches.executor.choices.configuration(
        launches.executor.offer(program, sweep), launch
    )
    assert isinstance(found, StreamingConfig)
    return found


def lengths_timed(monkeypatch: pytest.MonkeyPatch, fastest: int, seconds: float) -> list[int]:
    """Let launches take the longer the further they are from a length; those that were timed."""
    timed: list[int] = []

    def timed_by_length(self: Engine, number: int, n_launches: int) -> list[float]:
        length = configured(self).length
        timed.append(length)
        return [9.0, *[seconds * (1 + abs(length - fastest) / 100)] * (n_launches - 1)]

    monkeypatch.setattr(Engine, "timed", timed_by_length)
    return timed


def run(start: np.ndarray[Any, Any]) -> tuple[StreamingConfig, Any]:
    with Computation(MEAN, start, devices="cpu", steps_per_launch=2) as computation:
        computation.run(5)
        return configured(computation._engine), computation.gather()


@pytest.mark.whole
def test_the_fastest_length_near_that_of_the_model_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start = np.random.default_rng(5).random(EXTENT, np.float32)
    right = reference_run(MEAN.program("float32"), start, 5, (False, False))
    timed = lengths_timed(monkeypatch, 100, 1e-5)
    longest, result = run(start)
    model = timed[0]
    assert np.array_equal(result, right)
    assert longest.length == max(timed) > model > min(timed) and max(timed) <= 2 * model
    timed = lengths_timed(monkeypatch, model, 1e-5)
    assert run(start)[0].length == model


@pytest.mark.whole
def test_launches_that_take_long_are_left_to_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    timed = lengths_timed(monkeypatch, 0, BUDGET_S)
    assert [run(np.zeros(EXTENT, np.float32))[0].length] == timed


@pytest.mark.whole
def test_launches_are_really_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    spent: list[float] = []
    timed = Engine.timed

    def noted(self: Engine, number: int, n_launches: int) -> list[float]:
        spent.extend(timed(self, number, n_launches))
        return spent[-n_launches:]

    monkeypatch.setattr(Engine, "timed", noted)
    run(np.ones(EXTENT, np.float32))
    assert min(spent) > 0


def test_a_field_that_is_divided_anew_tries_nothing_again(monkeypatch: pytest.MonkeyPatch) -> None:
    timed = lengths_timed(monkeypatch, 100, 1e-5)
    with Computation(MEAN, EXTENT, devices="cpu", steps_per_launch=2) as computation:
        settled, n_timed = configured(computation._engine), len(timed)
        computation.redistribute(partition="blocks")
        assert configured(computation._engine) == settled and len(timed) == n_timed > 0
