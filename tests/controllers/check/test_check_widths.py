# SPDX-License-Identifier: MIT
"""The checked mode with halos of several launches: no alarm, and faults are found."""
from __future__ import annotations

import random
from itertools import product
from typing import Any

import numpy as np
import pytest
from engine_runs import check_engine, compare, fill, layout_of
from fold_programs import random_folds
from injection import without_operations
from mpi_jobs import helpers_path, run_ranks
from random_boundaries import bounded_program
from random_programs import ProgramCase, random_program
from random_steps import random_steps
from sample import sample

import controllers as ct
from controllers import CheckError, Computation, Stencil
from controllers.check import CheckedEngine
from controllers.device import reference_device
from controllers.engine.relay import Relay
from controllers.executor.executor import Executor
from controllers.executor.reference import ReferenceExecutor
from controllers.placement.halo_width import plan_of_width, replanned
from controllers.plan import Location, Plan, RoundPlan
from controllers.program.reference import reference_steps
from hitmap import Layout, SerialCommunicator, Shape

KINDS = {
    "program": random_program, "steps": random_steps, "folds": random_folds,
    "boundaries": bounded_program,
}  # fmt: skip
CROSS = Stencil.of("cross", [(-1, 1)] * 2, [0, 1, 0, 1, 4, 1, 0, 1, 0], 8).program("float32")
START = np.random.default_rng(0).random((23, 17), dtype=np.float32)
THREE = Layout.bands(Shape.of_extent(START.shape), 3)
HOMES = [Location(0, n) for n in range(3)]


def executors_of(n_places: int) -> list[Executor]:
    return [ReferenceExecutor(reference_device()) for _ in range(n_places)]


@pytest.mark.parametrize(
    ("kind", "number"), sample([(kind, number) for kind in KINDS for number in range(30)], 30)
)
def test_random_programs_of_wide_halos_are_no_alarm(kind: str, number: int) -> None:
    case, rng = KINDS[kind](number), random.Random(number)
    n_places = rng.choice((1, 2, 3, 5))
    layout, width = layout_of(case, n_places, rng), rng.randint(2, 5)
    check_engine(case, executors_of(n_places), layout, CheckedEngine, n_launches=width)


@pytest.mark.parametrize("number", sample(range(30), 30))
def test_changes_of_width_under_way_are_no_alarm(number: int) -> None:
    case, rng = random_program(number), random.Random(number)
    executors = executors_of(3)
    layout, locations = layout_of(case, 3, rng), [Location(0, n) for n in range(3)]
    plan = plan_of_width(4, case.program, layout, case.periodic, locations)
    homes, comm = dict(enumerate(executors)), SerialCommunicator()
    widest = CheckedEngine(plan, homes, comm)
    relay = Relay(widest, lambda like, width: CheckedEngine(
        replanned(like.plan, width, plan), homes, comm, like.tiles
    ))  # fmt: skip
    engine: Any = widest
    fill(engine, case.arrays)
    for _ in range(case.n_steps):
        engine.run(1)
        before, engine = engine, relay.engine(rng.randint(1, 4))
        if engine is not before:
            engine.take_over(before)
    for field, expected in case.expected.items():
        compare(engine, field, expected)
    relay.close(engine)


def checked(case: ProgramCase, plan: Plan) -> None:
    engine = CheckedEngine(plan, dict(enumerate(executors_of(3))), SerialCommunicator())
    try:
        fill(engine, case.arrays)
        engine.run(case.n_steps)
    finally:
        engine.close()


FAULTS = {
    "no exchange": lambda o: o.verb in ("copy", "download", "upload"),
    "no exchange of one place": lambda o: o.verb == "copy" and o.place == 1,
}


@pytest.mark.whole
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_left_out_is_found(fault: str, periodic: bool) -> None:
    case = ProgramCase(CROSS, (), {"u": START}, (periodic, periodic), 9)
    plan = plan_of_width(3, CROSS, THREE, case.periodic, HOMES)
    checked(case, plan)
    plan.operations = (*without_operations(plan, FAULTS[fault]),)
    with pytest.raises(CheckError, match="reads"):
        checked(case, plan)


def test_a_launch_of_a_round_that_computes_too_few_cells_is_found() -> None:
    case = ProgramCase(CROSS, (), {"u": START}, (False, False), 9)

    class Narrow(RoundPlan):
        def parts_of(self, number: int, phase: int, place: int) -> Any:
            own = self.updated(self.sweeps[number], place)
            return [(own, False)], Shape(own.lower, own.lower)

    with pytest.raises(CheckError, match="reads u at"):
        checked(case, Narrow(CROSS, THREE, (False, False), HOMES, n_launches=3))


@pytest.mark.parametrize(("device", "boundary"), sample(
    [*product(["cpu", "reference"], ["periodic", "fixed", "mirror"])], 5
))  # fmt: skip
def test_widths_change_in_checked_runs(device: str, boundary: Any) -> None:
    with Computation(
        CROSS, START, boundary=boundary, devices=device, places_per_controller=3, halo_width=4,
        check=True, comm=SerialCommunicator(),
    ) as run:  # fmt: skip
        right = [*reference_steps(run.program, {"u": START}, n_steps=15)]
        for width in (4, 1, 3):
            run.use_halo_width(width)
            run.run(5)
            assert np.array_equal(run.gather(), right[run.step - 1].fields["u"])


def relax(u: Any, f: Any) -> Any:
    new = (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] + f) * 0.25
    return {"u": new, "moved": ct.max(abs(new - u))}


@pytest.mark.whole
def test_turns_of_a_repeat_are_checked_with_wide_halos() -> None:
    solve = ct.repeat(ct.step(relax), until=lambda now: now.moved < 0.05, check_every=3, at_most=20)
    with Computation(
        [solve], ct.Grid(y=17, x=23), boundary="periodic", devices="reference", check=True,
        places_per_controller=3, halo_width=5, u=0, f=lambda y, x: np.sin(y) * np.cos(x),
        comm=SerialCommunicator(),
    ) as run:  # fmt: skip
        fields = {name: np.asarray(run[name]) for name in run.fields}
        right = [*reference_steps(run.program, fields, n_steps=3)]
        for width, now in zip((5, 2, 3), right):
            run.use_halo_width(width)
            run.run(1)
            assert all(np.array_equal(np.asarray(run[f]), now.fields[f]) for f in run.fields)


JOB = """
import numpy as np
from controllers import Computation, Stencil, reference_run
cross = Stencil.of("cross", [(-1, 1)] * 2, [0, 1, 0, 1, 4, 1, 0, 1, 0], 8).program("float32")
start = np.random.default_rng(0).random((23, 17), dtype=np.float32)
with Computation(cross, start, devices="reference", halo_width=4, check=True) as run:
    for width in (4, 3, 1):
        run.use_halo_width(width)
        run.run(5)
    got = run.gather()
right = reference_run(cross, {"u": start}, 15, (False, False))["u"]
assert got is None or np.array_equal(got, right)
print("all right", flush=True)
"""


@pytest.mark.whole
def test_ranks_check_wide_halos() -> None:
    job = run_ranks(2, JOB, env=helpers_path())
    assert job.returncode == 0 and job.stdout.count("all right") == 2, job.stdout + job.stderr
