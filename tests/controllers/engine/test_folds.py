# SPDX-License-Identifier: MIT
"""Folds in runs: the reference's results on any layout, scalars of steps, times, repeats."""
from __future__ import annotations

import random
from collections.abc import Mapping
from json import loads
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sample import sample

from controllers import (
    CheckError,
    Computation,
    Field,
    Program,
    Read,
    Scalar,
    Stage,
    dry_run,
    reference_run,
)
from controllers.device.event import HostEvent
from controllers.engine import describe
from controllers.executor.reference import ReferenceExecutor
from controllers.plan.folding import needed
from controllers.program.expression import where
from controllers.program.fold import Fold
from controllers.program.reference import reference_steps
from controllers.program.repeat import Repeat
from hitmap import SerialCommunicator

STAR, HERE = ((-1, 1), (-1, 1)), ((0, 0), (0, 0))
EXTENT = (23, 17)
Fields = Mapping[str, npt.NDArray[Any]]


def u(*offset: int) -> Read:
    return Read("u", offset or (0, 0))


MEAN = (u(0, -1) + u(0, 1) + u(-1, 0) + u(1, 0)) * 0.25
FOLDS = {
    "residual": Fold("max", abs(MEAN - u())),
    "total": Fold("sum", u()),
    "lowest": Fold("argmin", u()),
    "least": Fold("min", u(), u() > 0.25),
    "some": Fold("any", u() > 0.99),
    "every": Fold("all", u() > 0),
    "many": Fold("sum", where(u() > 0.5, 1, 0)),
}
RELAX = Program("relax", (Field("u", "float64"),), (Stage("relax", {"u": MEAN}, STAR, FOLDS),))

# dt follows from the field, in each step; a second stage sums what the first has made
FASTEST = Stage("look", {}, HERE, {"fastest": Fold("max", abs(u()))})
FLOW = u() + Scalar("dt") * (4 * MEAN - 4 * u()) + Scalar("t") * 1e-3
CFL = Program(
    "cfl", (Field("u", "float64"),),
    (FASTEST, Stage("flow", {"u": FLOW}, STAR, {"total": Fold("sum", u())})),
    scalars={"dt": 0.2 / (1 + Scalar("fastest"))},
)  # fmt: skip

V = Read("v", (0, 0))
SOLVE = Stage(
    "solve", {"u": MEAN * 0.96 + V * 0.024}, ((-2, 2), (-2, 1)),     # keeps what others compute
    {"residual": Fold("max", abs(MEAN * 0.96 + V * 0.024 - u()))},
)  # fmt: skip
AROUND_V = Read("v", (0, -1)) + Read("v", (0, 1)) + Read("v", (-1, 0)) + Read("v", (1, 0))
PRE = Stage("pre", {"v": AROUND_V * 0.25, "u": u() * 1.1}, STAR)
POST = Stage(
    "post", {"v": V + u(1, 0) * 0.01, "u": u() + Scalar("t")}, ((-2, 2), (-1, 1)),
    {"total": Fold("sum", u())},
)  # fmt: skip


def solving(check_every: int, at_most: int = 23, until: float | None = 2e-2) -> Program:
    holds = None if until is None else (lambda now: now.residual < until)
    repeat = Repeat("solve", 1, 2, at_most, holds, check_every)
    fields = Field("u", "float64"), Field("v", "float64")
    return Program("solving", fields, (PRE, SOLVE, POST), repeats=(repeat,))


# dt of what is before the repeat; in it a length of its own, of two folds; after it both
SLOPE = Fold("sum", (MEAN - u()) * (MEAN - u()))
SEARCHING = Program(
    "searching", (Field("u", "float64"), Field("v", "float64")),
    (
        Stage("look", {}, HERE, {"fastest": Fold("max", abs(u())), "first": Fold("sum", V)}),
        Stage("push", {"v": V + u() * Scalar("dt")}, HERE),
        Stage("along", {}, STAR, {"slope": SLOPE, "area": Fold("sum", u() * u() + 1)}),
        Stage("go", {"u": u() + Scalar("length") * (MEAN - u()) + V * (1e-3 * Scalar("dt"))}, STAR,
              {"top": Fold("max", u())}),
        Stage("end", {"v": V + (Scalar("length") * Scalar("t") + Scalar("rate"))}, HERE,
              {"total": Fold("sum", V)}),
    ),
    scalars={
        "dt": 0.2 / (1 + Scalar("fastest")),
        "length": 0.5 + Scalar("slope") / Scalar("area"),
        "rate": Scalar("first") / Scalar("area"),
    },
    results=("top", "total", "length", "rate"),
    repeats=(Repeat("search", 2, 4, 9, lambda now: now.count > 3 * now.length, 2),),
)  # fmt: skip


def start(seed: int, *names: str) -> dict[str, npt.NDArray[Any]]:
    rng = np.random.default_rng(seed)
    return {name: rng.random(EXTENT) for name in names}


def ran(program: Program, fields: Fields, n_places: int, device: str = "reference",
        **options: Any) -> Computation:  # fmt: skip
    return Computation(
        program, EXTENT, devices=device, places_per_controller=n_places,
        comm=SerialCommunicator(), init=fields, **options,
    )  # fmt: skip


@pytest.mark.parametrize("device", ["reference", "cpu"])
@pytest.mark.parametrize("n_places", sample([3, 1, 2, 5], 9))
def test_results_of_the_last_step_are_those_of_the_reference(device: str, n_places: int) -> None:
    fields = start(1, "u")
    right = [*reference_steps(RELAX, fields, (False, False), n_steps=6)]
    with ran(RELAX, fields, n_places, device) as run:
        assert {**run.run(2)} == right[1].results
        found = run.run(4)
        assert {**found} == right[5].results == {**run.results}
        assert (run.residual, run.step) == (right[5].results["residual"], 6)
        assert np.array_equal(run.u.get(), right[5].fields["u"])


def test_steps_after_which_nobody_looks_have_no_folds() -> None:
    with ran(RELAX, start(1, "u"), 2) as run:
        run.run(5)
        verbs = [o.verb for o in run.plan.operations if o.occasional]
        assert {*verbs} == {"fold", "combine"} and not needed(RELAX)
        assert "residual, total, lowest, least, some, every, many of all ranks" in str(run.plan)
        (place, *_) = run._engine.places.values()
        (fold,) = (t for t in place.tasks if t.operation.verb == "fold" and t.operation.phase == 0)
        assert fold.step == 4


@pytest.mark.parametrize("device", sample(["reference", "cpu"], 9))
@pytest.mark.parametrize("n_places", sample([2, 1, 3, 5], 9))
def test_steps_compute_their_own_dt_and_end_at_a_time(device: str, n_places: int) -> None:
    fields = start(2, "u")
    right = [*reference_steps(CFL, fields, (False, False), until=1.05)]
    with ran(CFL, fields, n_places, device) as run:
        run.run(3)
        assert (run.step, run.time) == (3, right[2].time)
        found = run.run(until=1.05)
        assert (run.step, run.time, run.total) == (len(right), 1.05, right[-1].results["total"])
        assert found is not None and np.array_equal(run.u.get(), right[-1].fields["u"])
        assert run.run(until=1.0) is None and run.step == len(right)
        run.run(until=9.0, at_most=2)
        assert run.step == len(right) + 2


def test_a_dt_that_comes_to_nothing_ends_the_run() -> None:
    fields = {"u": np.full(EXTENT, np.inf)}
    with ran(CFL, fields, 2) as run, pytest.raises(RuntimeError, match="does not come there.* dt"):
        run.run(until=1.0)


@pytest.mark.parametrize("device", sample(["reference", "cpu"], 9))
@pytest.mark.parametrize("check_every, n_places", sample([(5, 2), (1, 3), (4, 1), (7, 5)], 9))
def test_a_repeat_ends_where_the_reference_ends(
    device: str, check_every: int, n_places: int
) -> None:
    program, fields = solving(check_every), start(3, "u", "v")
    right = [*reference_steps(program, fields, (False, False), dt=0.1, n_steps=5)][-1]
    with ran(program, fields, n_places, device, dt=0.1) as run:
        run.run(2)
        found = run.run(3)
        assert run.repeats == right.counts and {**found} == right.results
        for name, cells in right.fields.items():
            assert np.array_equal(run[name].get(), cells), name


@pytest.mark.parametrize("device", sample(["reference", "cpu"], 9))
@pytest.mark.parametrize("n_places", sample([2, 1, 3, 5], 9))
def test_repeats_compute_with_folds_of_their_own_and_of_others(device: str, n_places: int) -> None:
    fields = start(7, "u", "v")
    right = [*reference_steps(SEARCHING, fields, (False, False), until=0.9)]
    with ran(SEARCHING, fields, n_places, device) as run:
        run.run(3)
        assert (run.step, run.time) == (3, right[2].time)
        assert {**run.results} == right[2].results
        found = run.run(until=0.9)
        assert (run.step, run.time, run.repeats) == (len(right), 0.9, right[-1].counts)
        assert found is not None and {**found} == right[-1].results
        for name, cells in right[-1].fields.items():
            assert np.array_equal(run[name].get(), cells), name


def test_a_repeat_without_a_condition_is_done_as_often_as_it_says() -> None:
    program, fields = solving(1, 3, None), start(4, "u", "v")
    with ran(program, fields, 2, dt=0.1) as run:
        run.run(4)
        right = reference_run(program, fields, 4, (False, False), dt=0.1)
        assert run.repeats == {"solve": 3}
        assert np.array_equal(run.u.get(), right["u"])


@pytest.mark.parametrize(
    "options", sample([{"check": True}, {"tune": 0.2}, {"trace": True}], 2), ids=str
)
def test_repeats_are_checked_traced_and_tuned(options: dict[str, Any], tmp_path: Path) -> None:
    fields = start(7, "u", "v")
    right = [*reference_steps(SEARCHING, fields, (False, False), until=0.5)]
    device = "cpu" if "tune" in options else "reference"
    with ran(SEARCHING, fields, 2, device, **options) as run:
        run.run(1)
        found = run.run(until=0.5)
        assert found is not None and {**found} == right[-1].results
        assert (run.step, run.repeats) == (len(right), right[-1].counts)
        for name, cells in right[-1].fields.items():
            assert np.array_equal(run[name].get(), cells), name
        if "trace" in options:
            run.save_trace(tmp_path / "trace.json")
            spans = loads((tmp_path / "trace.json").read_text("utf-8"))["traceEvents"]
            n_launches = [
                sum(one["name"] == "launch" and one["args"]["step"] == n for one in spans
                    if one["ph"] == "X") for n in range(run.step)
            ]  # fmt: skip
            # of two places: three stages, and as often as they are repeated two
            assert n_launches == [2 * (3 + 2 * step.counts["search"]) for step in right]


def test_a_fault_in_a_part_is_told_with_its_step(monkeypatch: pytest.MonkeyPatch) -> None:
    program, fields = solving(5), start(3, "u", "v")
    monkeypatch.setattr(    # halos get nothing
        ReferenceExecutor, "copy_command", lambda *_: lambda wait_for=None: HostEvent(0, 0)
    )
    says = "step 0: .*in round 0 of this part of the step"
    run = ran(program, fields, 2, dt=0.1, check=True)
    with run, pytest.raises(CheckError, match=says):
        run.run(2)


def test_any_order_that_a_plan_allows_gives_the_same_folds() -> None:
    rng = random.Random(5)
    fields = start(5, "u")
    (*_, right) = reference_steps(CFL, fields, (False, False), n_steps=4)
    for check in (False, True):
        with ran(CFL, fields, rng.choice([2, 3, 5]), check=check) as run:
            assert {**run.run(4)} == right.results


def test_timelines_reports_and_explanations_know_folds(tmp_path: Path) -> None:
    with ran(RELAX, start(1, "u"), 2, trace=True) as run:
        run.run(3)
        run.save_trace(tmp_path / "trace.json")
        assert run.report().steps == 3
    assert "folds of all ranks" in (tmp_path / "trace.json").read_text("utf-8")
    with ran(solving(5), start(3, "u", "v"), 2, dt=0.1) as run:
        run.run(2)
        text = run.explain()
        assert run.report().steps == 2
    assert "repeats solve up to 23 times within a step, until its results say so, asked" in text


def test_what_is_folded_into_is_counted() -> None:
    with ran(RELAX, start(1, "u"), 2, "cpu") as run:
        made = sum(one.nbytes for one in run._engine._binder._foldings.values())
        last = run.explain().splitlines()[-2]
        assert int(last.split()[-2]) == made > 0
    sizes = dry_run(RELAX, EXTENT, 2, devices="cpu").sizes
    assert sum(size.folds for size in sizes) == made


@pytest.mark.whole
@pytest.mark.parametrize("shape", [(3, 2, (1 << 20) + 5), ((1 << 21) + 1, 2, 2)])
def test_long_axes_have_places_too(shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(0).integers(0, 200, shape).astype(np.uint8)
    values[-1, -1, -1] = 255
    with Computation([], shape, dtype="uint8", u=values, places_per_controller=2) as run:
        assert run.u.argmax() == values.argmax() == values.size - 1
        assert run.u[1:].argmin() == values[1:].argmin()


def test_a_watchdog_can_say_who_waits_for_which_fold() -> None:
    with ran(CFL, start(2, "u"), 2) as run:
        run.run(1)
        engine = run._engine
        for place in engine.places.values():
            place.waiting = [t for t in place.tasks if t.operation.verb in ("fold", "combine")]
        said = "\n".join(describe(engine))
    assert "not started: fold fastest@1" in said
    assert "not started: combine fastest of all ranks" in said
