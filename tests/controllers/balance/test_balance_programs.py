# SPDX-License-Identifier: MIT
"""Cuts that move leave the bits of programs alone: kernels compute, the test says how long."""
from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from divided import two_cores
from mpi_jobs import helpers_path, run_ranks

import controllers as ct
from controllers.balance.watch import Watch
from hitmap import SerialCommunicator

TWO = "cpu:0/1,1"


@pytest.fixture
def slow_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second part of a device takes three times as long."""
    begin = Watch.__init__

    def watching(self: Watch, engine: Any, n_steps: int = 1) -> None:
        begin(self, engine, n_steps)
        self.cells = {}     # type: ignore[attr-defined]
        for place in engine.plan.places:
            number = engine.plan.locations[place].controller
            cells = engine.plan.layout.owned[place].n_cells * (3 if number else 1)
            self.cells[number] = self.cells.get(number, 0) + cells  # type: ignore[attr-defined]

    def times(self: Watch, parts: object) -> dict[int, float]:
        return {number: 1e-3 * n for number, n in self.cells.items()}   # type: ignore[attr-defined]

    monkeypatch.setattr(Watch, "__init__", watching)
    monkeypatch.setattr(Watch, "times", times)


GRID = ct.Grid(y=96, x=60, spacing=5.0, boundary=ct.fixed(0))


@ct.step
def wave(u, old):
    """Two fields that change roles, and numbers of all cells."""
    around = u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u
    return dict(u=2 * u - old + 0.2 * around, old=u, top=ct.max(np.abs(u)), energy=ct.mean(u * u))


@ct.step
def drift(u, old):
    """The time step follows from the field."""
    dt = 0.4 / ct.max(np.abs(u))
    around = u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u
    return dict(u=u + 0.1 * around * dt, old=ct.stored(u + old[1, 0]) / 2, dt=dt, mass=ct.sum(u))


@ct.step
def relaxed(u, old):
    """As often as it is asked for within a step."""
    new = 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1])
    return dict(u=new, residual=ct.max(np.abs(new - u)))


@ct.step
def pushed(u, old):
    return dict(u=u + 0.1 * old, old=0.5 * u)


REPEATED = [pushed, ct.repeat(relaxed, until=lambda now: now.residual < 1e-2, at_most=9)]
MEAN = ct.Stencil.of("mean", [(-1, 1)] * 2, [0, 1, 0, 1, 2, 1, 0, 1, 0], 6).program("float32")


def hill(y: Any, x: Any) -> Any:
    return np.exp(-((y - 35) ** 2 + (x - 50) ** 2) / 200)


def outcome(program: Any, **options: Any) -> tuple[list[Any], int]:
    """All that a run leaves, and how often the cuts moved."""
    if program is MEAN:
        given: tuple[Any, ...] = (MEAN, np.random.default_rng(0).random((192, 60), np.float32))
        names: dict[str, Any] = {}
    else:
        given, names = (program, GRID), {"u": hill, "old": 0.0}
    options = {"comm": SerialCommunicator(), **options}
    if program is wave:
        options["dt"] = 0.5
    with ct.Computation(*given, **names, **options) as run:
        run.run(53)
        run.run(70)
        found = [run[name].gather() for name in run.fields]
        found += [run.step, run.time, *(run.results[name] for name in run.program.results)]
        balance = run.report().balance
    return found, 0 if balance is None else balance.moves


def alike(found: Sequence[Any], right: Sequence[Any]) -> bool:
    return all(np.array_equal(one, other) for one, other in zip(found, right, strict=True))


@two_cores
@pytest.mark.whole
@pytest.mark.parametrize(("program", "options"), [
    (MEAN, {"kernel": "generic", "overlap": "on"}),
    (wave, {}),
    (MEAN, {"steps_per_launch": 2}),
    (drift, {}),
    (wave, {"partition": "blocks", "places_per_controller": 3}),
    (MEAN, {"steps_per_launch": 4, "zero_copy": False, "align": 8}),
    (drift, {"zero_copy": False}),
    (REPEATED, {}),
])
def test_programs_keep_their_bits(
    program: Any, options: dict[str, Any], slow_part: None
) -> None:
    found, moves = outcome(program, devices=TWO, weights="auto", **options)
    assert 1 <= moves <= 3
    assert alike(found, outcome(program, devices="reference")[0])


RANKS = """from timed_devices import timed_devices
from test_balance_programs import *
from hitmap.comm import default_communicator
comm = default_communicator()
timed_devices({"swift": 1e-3, "slow": 3e-3})
words = {words}
for program in (wave, MEAN, drift, REPEATED):
    found, moves = outcome(program, devices=words[comm.rank], comm=comm, balance="dynamic")
    assert comm.allgather(moves) == [moves] * 2 and 1 <= moves <= 3, moves
    if comm.rank == 0:
        assert alike(found, outcome(program, devices="reference")[0])
"""


@pytest.mark.whole
@pytest.mark.parametrize("words", [["swift", "slow"], [["swift", "slow"], "slow"]])
def test_ranks_decide_alike(words: list[Any]) -> None:
    job = run_ranks(2, RANKS.replace("{words}", repr(words)),
                    env=helpers_path(Path(__file__).parent))  # fmt: skip
    assert job.returncode == 0, job.stderr
