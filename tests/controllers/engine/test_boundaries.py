# SPDX-License-Identifier: MIT
"""Rules at the ends of axes: on any number of places, the bits of the reference."""
from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from engine_runs import check_engine, check_orders, check_two_ranks, layout_of
from lazy_executor import LazyExecutor, random_devices
from lazy_world import World
from random_boundaries import bounded_program
from random_programs import ProgramCase
from sample import sample

import controllers as ct
from controllers import (
    Boundary,
    Computation,
    Coordinate,
    Coordinates,
    Field,
    Parameter,
    Program,
    Read,
    Scalar,
    Stage,
    Stencil,
    custom,
    extrapolate,
    fixed,
    mirror,
    reference_run,
)
from controllers.check import CheckedEngine, CheckError
from controllers.device import find_devices, find_simulator, reference_device
from controllers.device.event import Command, HostEvent
from controllers.executor.executor import Executor
from controllers.executor.opencl import OpenCLExecutor
from controllers.executor.reference import ReferenceExecutor
from controllers.memory.tile import Tile
from controllers.plan import Location, Plan
from controllers.program.extension import Fill
from controllers.program.surroundings import Surroundings
from hitmap import Layout, Shape

N_PLACES = (1, 2, 3, 5)
N_PROGRAMS = 100


@pytest.mark.parametrize("number", sample(range(N_PROGRAMS), 50))
def test_every_order_that_a_plan_allows_gives_the_bits_of_the_reference(number: int) -> None:
    case = bounded_program(number)
    for n_places in N_PLACES:
        check_orders(case, n_places, random.Random(1000 * number + n_places))


@pytest.mark.parametrize("number", sample(range(N_PROGRAMS), 100))
def test_devices_that_run_at_any_time_give_the_bits_of_the_reference(number: int) -> None:
    case, world = bounded_program(number), World(number, eagerness=[0.07, 0.2, 0.6][number % 3])
    rng = random.Random(number)
    executors = random_devices(world, rng, 4)
    check_engine(case, [*executors, executors[0]], layout_of(case, 5, rng))


@pytest.mark.parametrize("number", sample(range(N_PROGRAMS), 100))
def test_pocl_gives_the_bits_of_the_reference(number: int, pocl: OpenCLExecutor) -> None:
    case, rng = bounded_program(number), random.Random(number)
    for n_places in (1, 5) if number % 2 else (2, 3):
        reference = ReferenceExecutor(reference_device())
        executors = [rng.choice([pocl, pocl, reference]) for _ in range(n_places)]
        check_engine(case, executors, layout_of(case, n_places, rng))


@pytest.fixture(scope="module")
def pocl() -> OpenCLExecutor:
    return OpenCLExecutor(find_devices()[0])


@pytest.mark.parametrize("number", sample(range(N_PROGRAMS), 100))
def test_the_checked_mode_raises_no_alarm(number: int) -> None:
    case, rng = bounded_program(number), random.Random(number)
    one = ReferenceExecutor(reference_device())
    executors: list[Executor] = [one, one, ReferenceExecutor(reference_device())]
    check_engine(case, executors, layout_of(case, 3, rng), CheckedEngine)


WALL = Program(
    "wall",
    (Field("u", "float64", Boundary.of({0: (mirror(), fixed(1))}, 2)),),
    (Stage("mean", {"u": (Read("u", (-1, 0)) + Read("u", (1, 0))) / 2}, ((-1, 1), (0, 0))),),
)


class Forgetful(ReferenceExecutor):
    """Makes no cell outside the domain."""

    def fill_command(
        self, program: Program, fills: Sequence[tuple[Fill, Tile]], around: Surroundings
    ) -> Command:
        return lambda wait_for=None: HostEvent(0, 0)


def test_the_checked_mode_finds_wrong_cells_outside() -> None:
    start = np.random.default_rng(4).random((9, 4))
    case = ProgramCase(WALL, (), {"u": start}, (False, False), 3)
    layout = Layout.bands(Shape.of_extent(case.extent), 2)
    one = ReferenceExecutor(reference_device())
    check_engine(case, [one, one], layout, CheckedEngine)
    with pytest.raises(CheckError, match=r"u at \(-1, 0\), outside the domain, is not what"):
        check_engine(case, [Forgetful(reference_device()), one], layout, CheckedEngine)


def test_the_checked_mode_finds_that_cells_outside_were_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("controllers.plan.recording._fill", lambda *_: None)
    case = ProgramCase(WALL, (), {"u": np.ones((9, 4))}, (False, False), 3)
    one = ReferenceExecutor(reference_device())
    with pytest.raises(CheckError, match=r"u at .*nobody has written"):
        check_engine(case, [one], Layout.bands(Shape.of_extent((9, 4)), 1), CheckedEngine)


def test_a_plan_says_what_is_made_outside_the_domain() -> None:
    plan = Plan(WALL, Layout.bands(Shape.of_extent((9, 4)), 2), (False, False), [Location()] * 2)
    assert [str(plan.geometry("u", place).box) for place in range(2)] == [
        "[-1:6, 0:4]", "[4:10, 0:4]",
    ]  # fmt: skip
    assert re.findall(r"fill +(.+?)(?:  .*)?$", str(plan), re.MULTILINE) == [
        "u.1@0 [0:1, 0:4] -> u.1@0 [-1:0, 0:4]", "u.1@1 [9:10, 0:4]",
    ]  # fmt: skip
    steady = WALL.with_boundaries({"u": Boundary.of({0: (fixed(0), fixed(1))}, 2)})
    plan = Plan(steady, plan.layout, (False, False), plan.locations)
    assert all(operation.verb != "fill" for operation in plan.operations)
    assert str(plan).endswith("once u is set: 8 cells outside the domain, in all buffers")
    assert [[o.verb for o in opening].count("fill") for opening in plan.opening] == [4, 4]


def several(dtypes: Sequence[str]) -> Program:
    """A stage that moves each field along both axes, by the cells of the next one."""
    rules: list[Any] = [
        "mirror", {0: (fixed(0.5), mirror()), 1: extrapolate(1)},
        {0: (mirror(-1), custom(lambda inside, k: inside(0) - k)), 1: mirror()},
    ]  # fmt: skip
    names = [f"f{n}" for n in range(len(dtypes))]
    updates = {
        name: Read(name, (-1, 0)) / 2 + Read(other, (1, 2)) / 4
        for name, other in zip(names, [*names[1:], names[0]])
    }
    fields = [
        Field(name, dtype, Boundary.of(rules[n % 3], 2))
        for n, (name, dtype) in enumerate(zip(names, dtypes))
    ]
    return Program("several", tuple(fields), (Stage("move", updates, ((-1, 1), (0, 2))),))


@pytest.mark.parametrize(
    ("dtypes", "n_launches"),
    sample([(["float32"] * 3, 1), (["float32", "float64", "float32"], 2),
            (["float64"] * 18, 2)], 3),
)
def test_cells_outside_alike_fields_are_made_by_one_launch(
    pocl: OpenCLExecutor, monkeypatch: pytest.MonkeyPatch, dtypes: list[str], n_launches: int
) -> None:
    program, rng = several(dtypes), np.random.default_rng(len(dtypes))
    start = {f.name: rng.random((9, 7)).astype(f.dtype) for f in program.fields}
    layout = Layout.bands(Shape.of_extent((9, 7)), 1)
    plan = Plan(program, layout, (False, False), [Location()])
    fills = [o for part in (plan.operations, *plan.opening) for o in part if o.verb == "fill"]
    assert all(len(fill.writes) == len(dtypes) for fill in fills)
    assert [o.phase for o in plan.operations if o.verb == "fill"] == [0, 1]
    made: list[str] = []
    kernel_command = OpenCLExecutor.kernel_command

    def counted(self: OpenCLExecutor, built: Any, *arguments: Any) -> Command:
        made.append(built.name)
        return kernel_command(self, built, *arguments)

    monkeypatch.setattr(OpenCLExecutor, "kernel_command", counted)
    check_engine(ProgramCase(program, (), start, (False, False), 3), [pocl], layout)
    assert made.count("make_outside") == len(fills) * n_launches


def test_computations_take_rules_for_all_fields_or_field_by_field() -> None:
    start = np.random.default_rng(4).random((13, 8))
    rules: list[Any] = [
        {"u": {0: (mirror(), "keep")}}, ["mirror", "periodic"], {1: (fixed(2), extrapolate(1))},
    ]  # fmt: skip
    for boundary in rules:
        with Computation(
            WALL, start.shape, boundary=boundary, devices="reference", places_per_controller=3
        ) as run:
            run.scatter(start)
            run.run(4)
            run.redistribute(partition="blocks")
            run.run(1)
            got, right = run.gather(), reference_run(run.program, start, 5)
            assert got is not None and got.tobytes() == right.tobytes(), boundary
            run.scatter(right)      # what is outside belongs to the new values
            run.run(2)
            got, right = run.gather(), reference_run(run.program, right, 2)
            assert got is not None and got.tobytes() == right.tobytes(), boundary


@pytest.mark.parametrize(("devices", "n_steps", "boundary"), sample(product(
    ("reference", "cpu"), (2, 3, 4),
    ("fixed:0.5", ["periodic", "fixed:0.5"], {0: (fixed(1), "keep"), 1: (fixed(0), fixed(2))}),
), 10))  # fmt: skip
def test_several_steps_per_launch_know_fixed_numbers(
    devices: str, n_steps: int, boundary: Any
) -> None:
    around = [Read("u", (i, j)) for i in (-1, 0, 2) for j in (-1, 1)]
    wide = Stage("mean", {"u": sum(around) / 5}, ((-1, 2), (-1, 1)))
    program = Program("p", (Field("u", "float32"),), (wide,))
    if devices == "cpu":    # whose kernels of several steps want symmetric ones
        program = five().program("float32")
    start = np.random.default_rng(4).random((37, 29)).astype(np.float32)
    with Computation(
        program, start, boundary=boundary, steps_per_launch=n_steps, devices=devices,
        places_per_controller=3, partition="blocks",
    ) as run:  # fmt: skip
        assert run.plan.steps_per_launch == n_steps
        run.run(7)
        got, right = run.gather(), reference_run(run.program, start, 7)
        assert got is not None and got.tobytes() == right.tobytes()


def test_several_steps_per_launch_are_refused_where_what_is_outside_changes() -> None:
    program = five().program("float32")
    for boundary, reason in (
        ("extrapolate:1", r"keep, periodic, mirror or a number.* of u is extrapolate\(1\)"),
        (fixed(Scalar("t")), "scalars change from step to step, t"),
    ):
        with pytest.raises(ValueError, match=f"launches of 2 steps .*{reason}"):
            Computation(program, (40, 40), boundary=boundary, steps_per_launch=2,
                        devices="reference", dt=1)  # fmt: skip
        with Computation(program, (400, 400), boundary=boundary, devices="cpu", dt=1) as run:
            assert run.plan.steps_per_launch == 1


def five() -> Stencil:
    return Stencil.of("five", [(-1, 1)] * 2, [0, 1, 0, 1, 1, 1, 0, 1, 0], 5)


@pytest.mark.whole
def test_every_kind_of_rule_is_tried_on_every_side() -> None:
    found = {
        (axis, side, type(rule).__name__)
        for number in range(N_PROGRAMS)
        for boundary in bounded_program(number).program.boundaries.values()
        for axis, sides in enumerate(boundary.axes)
        for side, rule in enumerate(sides)
    }
    kinds = ("Keep", "Periodic", "Fixed", "Mirror", "Extrapolate", "Custom")
    assert found == {*product(range(3), range(2), kinds)}


def shaken() -> Program:
    """A program whose boundaries depend on where and when, read once and again in a step."""
    y, x, t, push = Coordinate(0), Coordinate(1), Scalar("t"), Scalar("push")
    moved = fixed(np.sin(3 * t) * x + push)
    sponge = custom(lambda inside, distance: inside(distance - 1) * y + push / distance)
    u = Field("u", "float64", Boundary.of({0: (moved, mirror()), 1: (sponge, fixed(y * y))}, 2))
    v = Field("v", "float64", Boundary.of([(moved, "keep"), fixed(x - y)], 2))
    star = ((-2, 2), (-2, 2))
    around = sum(Read("u", offset) for offset in [(-2, -1), (2, 1), (-1, 2), (1, -2)])
    stages = (
        Stage("push_u", {"u": (around + Read("v", (-1, 1))) / 6}, star),
        Stage("pull_v", {"v": (around - Read("v", (1, -1))) / 6}, star),
    )
    grid = Coordinates(("y", "x"), (0.0, -1.0), (0.25, 0.5))
    return Program("shaken", (u, v), stages, grid=grid, scalars={"push": Parameter(0.25)})


@pytest.mark.whole
@pytest.mark.parametrize(("devices", "check"), [
    ("cpu", "off"), ("reference", "on"),
    *(pytest.param(*how, marks=pytest.mark.whole) for how in [("reference", "off"), ("cpu", "on")]),
])  # fmt: skip
def test_what_is_outside_may_depend_on_where_and_when(devices: str, check: str) -> None:
    program = shaken()
    rng = np.random.default_rng(8)
    state = {name: rng.random((9, 7)) for name in ("u", "v")}
    right = reference_run(program, state, 3, dt=0.125)
    with Computation(
        program, (9, 7), dt=0.125, devices=devices, check=check, places_per_controller=4,
        partition="blocks",
    ) as run:  # fmt: skip
        assert run.plan.steps_per_launch == 1
        for name, start in state.items():
            run[name].scatter(start)
        run.run(1)
        run.run(2)
        for name, values in right.items():
            got = run[name].gather()
            assert got is not None and got.tobytes() == values.tobytes(), name


def test_parameters_of_boundaries_may_change_between_runs() -> None:
    program, start = WALL.with_boundaries({}), np.random.default_rng(8).random((9, 4))
    program = replace(
        program, scalars={"wall": Parameter(2.0)},
        fields=(Field("u", "float64", Boundary.of({0: fixed(Scalar("wall"))}, 2)),),
    )  # fmt: skip
    with Computation(program, (9, 4), devices="cpu", places_per_controller=2) as run:
        run.scatter(start)
        run.run(2)
        run.run(2, wall=-1.0)
        got = run.gather()
    right = reference_run(program, start, 2)
    right = reference_run(program, right, 2, scalars={"wall": -1.0})
    assert got is not None and got.tobytes() == right.tobytes()


def test_lazy_devices_keep_the_scalars_of_each_step() -> None:
    program = shaken()
    program = replace(program, scalars={**program.scalars, "dt": Parameter(0.5)})
    rng = np.random.default_rng(8)
    case = ProgramCase(program, (), {n: rng.random((9, 7)) for n in "uv"}, (False, False), 5)
    world = World(3, eagerness=0.1)
    lazy = [LazyExecutor(world, shares_host=n % 2 == 0, name=str(n)) for n in range(3)]
    check_engine(case, lazy, Layout.bands(Shape.of_extent((9, 7)), 3))


@pytest.mark.parametrize(("match", "make"), [
    ("reads cells", lambda: fixed(Read("u", (0, 0)))),
    ("scalar 'q'", lambda: Field("u", "float64", Boundary.of(fixed(Scalar("q")), 2))),
    ("where the cells", lambda: Field("u", "float64", Boundary.of(fixed(Coordinate(0)), 2))),
    ("of another kind", lambda: Field("u", "int32", Boundary.of(fixed(Scalar("t")), 2))),
])  # fmt: skip
def test_what_cannot_be_outside_is_refused(match: str, make: Callable[[], Any]) -> None:
    with pytest.raises(ValueError, match=match):
        replace(WALL, fields=(make(),))


@pytest.mark.parametrize(("devices", "dtype"), sample(product(
    ("reference", "cpu"), ("float32", "int32")
), 4))  # fmt: skip
def test_four_axes_have_rules_of_their_own(devices: str, dtype: str) -> None:
    reads = [Read("u", offset) for offset in [(-2, 1, 0, -1), (1, -1, 3, 1), (0, 0, -1, 2)]]
    ends = ((-2, 1), (-1, 1), (-1, 3), (-1, 2))
    stage = Stage("far", {"u": reads[0] - 2 * reads[1] + reads[2]}, ends)
    program = Program("p", (Field("u", dtype),), (stage,))
    start = np.random.default_rng(9).integers(-9, 9, (3, 4, 2, 5)).astype(dtype)
    rules = [("mirror", mirror(-1)), extrapolate(1), (mirror(), fixed(3)), "periodic"]
    with Computation(
        program, start, boundary=rules, devices=devices, places_per_controller=5, partition="blocks"
    ) as run:
        run.run(3)
        got, right = run.gather(), reference_run(run.program, start, 3)
    assert got is not None and got.tobytes() == right.tobytes()


@pytest.mark.whole
def test_two_ranks_give_the_bits_of_the_reference() -> None:
    check_two_ranks("bounded", range(0, N_PROGRAMS, 10))


def test_a_domain_too_short_for_a_rule_is_refused_when_a_plan_is_made() -> None:
    program = WALL.with_boundaries({"u": Boundary.of({0: extrapolate(2)}, 2)})
    with pytest.raises(ValueError, match="extrapolate.2. needs cells on axis 0 .*larger domain"):
        Plan(program, Layout.bands(Shape.of_extent((2, 9)), 1), (False, False), [Location()])
    with pytest.raises(ValueError, match="axis 1 is to be periodic.*leave out one"):
        walls = WALL.with_boundaries({"u": Boundary.of("mirror", 2)})
        Plan(walls, Layout.bands(Shape.of_extent((9, 9)), 1), (False, True), [Location()])


@pytest.mark.whole
@pytest.mark.skipif(find_simulator() is None, reason="Oclgrind is not installed")
@pytest.mark.parametrize(
    "boundary", sample([ct.mirror(), ct.fixed(2), ct.extrapolate(1), "periodic"], 2), ids=str
)
def test_a_simulator_finds_nothing_wrong_with_what_is_outside(boundary: Any) -> None:
    step = ct.step(lambda u: dict(u=u[0, 1] + u[1, 1] + u[-1, -1] + u[1, 0]))
    start = np.random.default_rng(3).random((7, 6))
    options: Any = {"boundary": boundary, "check": "oclgrind"}
    with ct.Computation(step, ct.Grid.of(start), u=start, **options) as run:
        run.run(2)
        assert np.array_equal(run.u.get(), ct.reference_run(run.program, start, 2))
