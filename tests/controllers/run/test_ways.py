# SPDX-License-Identifier: MIT
"""Runs that try ways to exchange: the same bits, whichever is under way; the best one is kept."""
from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from divided import LOPSIDED, two_cores
from mpi_jobs import run_ranks
from random_programs import random_program
from sample import sample

import controllers as ct
from controllers import Computation, reference_run
from controllers.plan import ExchangeWay
from controllers.run.ways import Ways
from controllers.tuning import way_trials
from hitmap import SerialCommunicator

SERIAL = SerialCommunicator()
FIELD = np.random.default_rng(0).random((33, 41), np.float32)


@pytest.fixture(autouse=True)
def short_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A window is one launch: ways change in every step.  What is kept is each test's own."""
    monkeypatch.setenv("CONTROLLERS_TUNING", str(tmp_path))
    monkeypatch.setattr(way_trials, "LAUNCHES", 1)
    monkeypatch.setattr(way_trials, "WINDOW_S", 0.0)
    monkeypatch.setattr(way_trials, "HOPELESS", 1e9)
    yield


def computation(**options: Any) -> Computation:
    options = {"devices": ["reference"] * 2, "exchange": "auto", **options}
    return Computation(
        LOPSIDED.program("float32"), FIELD.shape, boundary=("fixed", "periodic"), comm=SERIAL,
        **options,
    )  # fmt: skip


def right(n_steps: int) -> np.ndarray:
    return reference_run(LOPSIDED.program("float32"), FIELD, n_steps, (False, True))


def seen_ways(monkeypatch: pytest.MonkeyPatch) -> list[ExchangeWay]:
    """The ways in which steps are run, in order."""
    seen: list[ExchangeWay] = []
    ran = Ways.ran

    def told(ways: Ways, n_steps: int, seconds: float) -> None:
        seen.append(ways._way)
        ran(ways, n_steps, seconds)

    monkeypatch.setattr(Ways, "ran", told)
    return seen


@two_cores
@pytest.mark.parametrize("per_launch", sample([2, 1], 2))
def test_ways_change_in_every_step_and_the_bits_do_not(
    per_launch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = seen_ways(monkeypatch)
    with computation(
        devices="cpu:0/1,1", zero_copy=False, steps_per_launch=per_launch, dims=(1, 2)
    ) as run:
        run.scatter(FIELD)
        done = 0
        for n_steps in (1, 2, 5, 1, 40):
            run.run(n_steps)
            done += n_steps
            assert np.array_equal(run.gather(), right(done))
        assert {way.rectangles for way in seen} == {True, False}
        found = run.report().exchange
        assert found is not None and len(found.seconds) == len({*seen}) >= 2
        assert per_launch > 1 or len({way.overlap for way in seen}) > 1
        assert str(found) in run.explain() and found.way in str(run.report().table())
        assert run.report().steps == done
        best = found.way
    with computation(
        devices="cpu:0/1,1", zero_copy=False, steps_per_launch=per_launch, dims=(1, 2)
    ) as again:
        again.scatter(FIELD)
        again.run(3)
        told = again.report().exchange
        assert told is not None and (told.way, told.why) == (best, "an earlier run has found it")
        assert np.array_equal(again.gather(), right(3))


@pytest.mark.parametrize("number", sample(range(60), 8))
def test_random_programs_have_the_same_bits(number: int) -> None:
    case = random_program(number)
    boundary = ["periodic" if wraps else "fixed" for wraps in case.periodic]
    with Computation(
        case.program, case.extent, comm=SERIAL, boundary=boundary, exchange="auto",
        devices=["reference"] * (1 + number % 5), init=case.arrays,
    ) as run:  # fmt: skip
        run.run(8)
        run.run(3)
        expected = reference_run(case.program, case.arrays, 11, case.periodic)
        for name, values in expected.items():
            assert np.array_equal(run[name].gather(), values, equal_nan=True), name


@pytest.mark.parametrize("number", sample(range(60), 30))
def test_ways_are_tried_with_halos_of_any_width(number: int) -> None:
    case, rng = random_program(number), random.Random(number)
    width: int | str = rng.choice([2, 3, 5, "auto"])
    with Computation(
        case.program, case.extent, comm=SERIAL, exchange="auto", halo_width=width,
        boundary=["periodic" if wraps else "fixed" for wraps in case.periodic],
        devices=["reference"] * rng.choice([2, 3, 5]), init=case.arrays,
    ) as run:  # fmt: skip
        parts, widest = [rng.randint(1, 9) for _ in range(6)], run.halo_width
        for n_steps in parts:
            run.run(n_steps)
            if width != "auto" and rng.random() < 0.3:
                run.use_halo_width(rng.randint(1, widest))
        expected = reference_run(case.program, case.arrays, sum(parts), case.periodic)
        for name, values in expected.items():
            assert np.array_equal(run[name].gather(), values, equal_nan=True), name


@pytest.mark.whole
@two_cores
def test_the_way_that_is_found_is_that_of_other_widths(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = seen_ways(monkeypatch)
    with computation(
        devices="cpu:0/1,1", zero_copy=False, dims=(1, 2), halo_width=3, steps_per_launch=1
    ) as run:
        run.scatter(FIELD)
        run.run(60)
        found = run.report().exchange
        assert found is not None and len({*seen}) >= 2 and found.way == str(run.plan.way)
        run.use_halo_width(2)
        assert found.way == str(run.plan.way)
        run.run(3)
        run.use_halo_width(3)
        run.run(7)
        assert np.array_equal(run.gather(), right(70))
    with computation(
        devices="cpu:0/1,1", zero_copy=False, dims=(1, 2), halo_width="auto", steps_per_launch=1
    ) as run:
        run.scatter(FIELD)
        while run._ways is None or run._tries:      # widths first
            run.run(50)
        assert run._chooser is not None and run._chooser.over
        assert np.array_equal(run.gather(), right(run.step))


def test_fields_are_divided_anew_set_and_looked_at_between_trials() -> None:
    with computation() as run:
        run.scatter(FIELD)
        run.run(2)
        run.redistribute(weights=[1, 3], partition="weighted")
        run.run(3)
        assert np.array_equal(run.gather(), right(5))
        seen = [now.step for now in run.steps(6, every=2)]
        assert seen == [7, 9, 11] and np.array_equal(run.gather(), right(11))
        run.scatter(FIELD)
        run.run(40)
        assert np.array_equal(run.gather(), right(40))
        run.redistribute(partition="bands")
        run.run(1)
        assert np.array_equal(run.gather(), right(41))


def test_scalars_and_folds_go_on_in_another_way() -> None:
    @ct.step
    def grow(u: Any, *, rate: float = 0.5) -> Any:
        most = ct.max(u)
        return dict(u=u + rate * (u[1] - 2 * u + u[-1]) / (1 + most), most=most)

    start = np.random.default_rng(1).random(60)
    plain, tried = (
        Computation(grow, ct.Grid(x=60, boundary="periodic"), u=start, comm=SERIAL,
                    devices=["reference"] * 2, exchange=exchange)
        for exchange in ("usual", "auto")
    )  # fmt: skip
    with plain, tried:
        for run in (plain, tried):
            run.run(7)
            run.run(9, rate=0.25)
        assert tried.results.most == plain.results.most
        assert np.array_equal(tried.u.gather(), plain.u.gather())


@two_cores
def test_a_way_that_does_not_fit_in_memory_is_not_taken() -> None:
    options = {"devices": "cpu:0/1,1", "zero_copy": False, "steps_per_launch": 1, "dims": (1, 2)}
    with computation(exchange="usual", **options) as run:
        cap = max(e.ledger.on_device for e in run.placement.executors.values())
    with computation(memory_cap=cap, **options) as run:
        run.scatter(FIELD)
        run.run(30)
        assert np.array_equal(run.gather(), right(30))
        found = run.report().exchange
        assert found is not None and all("by rectangles" in w or "auto" in w for w in found.seconds)


def test_without_another_way_nothing_is_tried_and_odd_words_are_refused() -> None:
    with computation(devices="reference") as run:
        run.scatter(FIELD)
        engine = run._engine
        run.run(5)
        assert run._engine is engine
        found = run.report().exchange
        assert found is not None and found.why == "there is no other way" and not found.seconds
    with computation(exchange="usual") as run:
        assert run.report().exchange is None
    with pytest.raises(ValueError, match="exchange is one of usual, auto, got 'fast'"):
        computation(exchange="fast")


JOB = """
import numpy as np
from controllers import Computation, Stencil, reference_run
from controllers.tuning import way_trials
from hitmap import default_communicator

way_trials.LAUNCHES, way_trials.WINDOW_S, way_trials.HOPELESS = 1, 0.0, 1e9
comm = default_communicator()
lopsided = Stencil.of("lopsided", [(-1, 1), (-1, 2)], [1, 2, 1, 0, 2, 4, 2, 1, 2, 1, 1, 3], 20)
program = lopsided.program("float32")
field = np.random.default_rng(0).random((33, 41), np.float32)
with Computation(program, field.shape, boundary=("fixed", "periodic"), devices="reference",
                 places_per_controller=2, partition="blocks", exchange="auto", comm=comm) as run:
    run.scatter(field)
    for n_steps in (1, 3, 4, 30):
        run.run(n_steps)
    whole, found = run.gather(), run.report().exchange
told = comm.allgather((found.way, found.why, sorted(found.seconds.items())))
if whole is not None:
    right = reference_run(program, field, 38, (False, True))
    print(np.array_equal(whole, right), told[0] == told[1], len(found.seconds) > 1)
"""


@pytest.mark.whole
def test_ranks_try_the_same_ways_and_agree(tmp_path: Path) -> None:
    job = run_ranks(2, JOB, env={"CONTROLLERS_TUNING": str(tmp_path)})
    assert (job.returncode, job.stdout.split()) == (0, ["True"] * 3), job.stderr
