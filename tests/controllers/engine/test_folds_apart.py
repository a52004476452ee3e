# SPDX-License-Identifier: MIT
"""Launches of several steps of programs that fold: the last step of a run is one of its own."""
from __future__ import annotations

import runpy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sample import sample

from controllers import (
    Boundary,
    Computation,
    Field,
    Program,
    Read,
    Stage,
    dry_run,
    reference_run,
)
from controllers.plan.course import RunLaunches
from controllers.program.expression import where
from controllers.program.fold import Fold
from controllers.program.reference import reference_steps
from hitmap import SerialCommunicator

EXTENT = (47, 41)
HIMENO = Path(__file__).parents[3] / "examples" / "himeno.py"
Fields = Mapping[str, npt.NDArray[Any]]


def u(*offset: int) -> Read:
    return Read("u", offset or (0, 0))


A, FAR = Read("a", (0, 1)), Read("b", (0, -2))      # what the folds alone read reaches further
NEW = A * 0.2 * (u(0, -1) + u(0, 1) + u(-1, 0) + u(1, 0)) + 0.1 * u()
FOLDS = {
    "residual": Fold("max", abs(NEW - u())),
    "total": Fold("sum", u() * FAR),
    "lowest": Fold("argmin", u()),
    "least": Fold("min", u(1, 1), u() > 0),
    "many": Fold("sum", where(NEW > 0.5, 1, 0)),
}
REACH = ((-1, 1), (-2, 1))


def relax(rule: str) -> Program:
    boundary = Boundary.of(rule, 2)
    fields = tuple(Field(name, "float32", boundary) for name in "uab")
    return Program("relax", fields, (Stage("relax", {"u": NEW}, REACH, FOLDS),))


def start() -> dict[str, npt.NDArray[Any]]:
    rng = np.random.default_rng(7)
    return {name: rng.random(EXTENT, np.float32) for name in ("u", "a", "b")}


def ran(program: Program, n_places: int, device: str, **options: Any) -> Computation:
    return Computation(
        program, EXTENT, devices=device, places_per_controller=n_places,
        comm=SerialCommunicator(), init=start(), **options,
    )  # fmt: skip


CASES = [
    (rule, n_places, n_steps, width)
    for rule in ("keep", "fixed:0.5", "periodic", "mirror")
    for n_places in (1, 2, 3)
    for n_steps, width in ((2, None), (3, None), (5, None), (2, 4))
    if width is None or n_places > 1
]


@pytest.mark.parametrize("device", ["reference", "cpu"])
@pytest.mark.parametrize(("rule", "n_places", "n_steps", "width"), sample(CASES, 100))
def test_results_and_fields_are_those_of_the_reference(
    device: str, rule: str, n_places: int, n_steps: int, width: int | None
) -> None:
    program = relax(rule)
    right = [*reference_steps(program, start(), n_steps=24)]
    options = {} if width is None else {"halo_width": width}
    with ran(program, n_places, device, steps_per_launch=n_steps, **options) as run:
        assert run.plan.steps_per_launch == n_steps
        for count in (1, 4, 2, 6, 3, 8):
            found = run.run(count)
            assert {**found} == right[run.step - 1].results, run.step
            assert run.u.get().tobytes() == right[run.step - 1].fields["u"].tobytes()


@pytest.mark.parametrize("device", ["reference", "cpu"])
def test_whoever_looks_on_the_way_sees_the_step_that_is_asked_for(device: str) -> None:
    program = relax("keep")
    right = [*reference_steps(program, start(), n_steps=40)]
    bound = float(right[16].results["residual"]) * 1.001
    last = next(n for n in range(5, 41, 5) if right[n - 1].results["residual"] < bound)
    with ran(program, 2, device, steps_per_launch=3) as run:
        record = run.record("total", every=4)
        run.run(until=lambda now: now.residual < bound, check_every=5, at_most=40)
        assert run.step == last
        totals = [right[n - 1].results["total"] for n in range(4, last + 1, 4)]
        assert record.get().tolist() == totals
        seen = [(now.step, float(now.residual)) for now in run.steps(7, every=3)]
        steps = last + 3, last + 6, last + 7
        assert seen == [(n, right[n - 1].results["residual"]) for n in steps]


def test_launches_of_a_run_come_to_its_steps() -> None:
    plain = dry_run(relax("keep"), EXTENT, 1, devices="cpu").plan
    apart = dry_run(relax("keep"), EXTENT, 1, devices="cpu", steps_per_launch=4).plan
    assert (plain.steps_per_launch, plain.folds_apart) == (1, False) and apart.folds_apart
    assert "relax" in str(apart) and any(one.occasional for one in apart.operations)
    for plan in (plain, apart):
        for n_steps in range(14):
            found = RunLaunches.of(plan, n_steps)
            assert found.steps(found.count) == n_steps
            parts = np.diff([found.steps(n) for n in range(found.count + 1)])
            assert all(0 < n <= plan.steps_per_launch for n in parts)
            assert plan is plain or n_steps == 0 or parts[-1] == 1


def test_what_is_folded_into_is_counted() -> None:
    with ran(relax("keep"), 2, "cpu", steps_per_launch=3) as run:
        made = sum(one.nbytes for one in run._engine._binder._foldings.values())
        assert int(run.explain().splitlines()[-2].split()[-2]) == made > 0
    sizes = dry_run(relax("keep"), EXTENT, 2, devices="cpu", steps_per_launch=3).sizes
    assert sum(size.folds for size in sizes) == made


@pytest.mark.whole
def test_many_coefficients_take_several_steps_by_default_on_cpus() -> None:
    computation = runpy.run_path(str(HIMENO))["computation"]
    shape = (20, 22, 40)
    with computation(*shape, devices="cpu", steps_per_launch=1) as one:
        right = [float(one.run(n).gosa) for n in (1, 6, 4)], one.p.get().tobytes()
    with computation(*shape, devices="cpu") as run:
        assert run.plan.steps_per_launch == 4
        assert ([float(run.run(n).gosa) for n in (1, 6, 4)], run.p.get().tobytes()) == right
        program = run.program
    assert dry_run(program, shape, 1, devices="gpu").plan.steps_per_launch == 1


def test_what_folds_alone_read_is_there_while_launches_are_tuned() -> None:
    right = reference_run(relax("keep"), start(), 60)
    with ran(relax("keep"), 1, "cpu", steps_per_launch=3, tune=0.3) as run:
        run.run(60)
        assert run.report().tuning is not None
        assert run.u.get().tobytes() == right["u"].tobytes()
