# SPDX-License-Identifier: MIT
"""Programs of several fields and stages: on any number of places, the bits of the reference."""
from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from engine_runs import check_engine, check_orders, compare, fill, layout_of
from lazy_executor import LazyExecutor
from lazy_world import World
from mpi_jobs import helpers_path, run_ranks
from random_programs import ProgramCase, random_program
from sample import sample
from small_kernels import FirstThatSuits, opencl

from controllers import Computation
from controllers.check import CheckedEngine
from controllers.device import reference_device
from controllers.engine import Engine
from controllers.executor.executor import Executor
from controllers.executor.opencl import OpenCLExecutor
from controllers.executor.reference import ReferenceExecutor
from controllers.plan import Location, Plan
from controllers.program.expression import Read
from controllers.program.program import Field, Program
from controllers.program.reference import reference_run
from controllers.program.stage import Stage
from hitmap import Layout, SerialCommunicator, Shape

N_PLACES = (1, 2, 3, 5)
N_PROGRAMS = 100
STRATEGIES_OF_SEVERAL = "cell", "rows", "marching"


@pytest.mark.parametrize("number", sample(range(N_PROGRAMS), 20))
def test_every_order_that_a_plan_allows_gives_the_bits_of_the_reference(number: int) -> None:
    case = random_program(number)
    for n_places in N_PLACES:
        check_orders(case, n_places, random.Random(1000 * number + n_places))


@pytest.mark.parametrize("number", sample(range(N_PROGRAMS), 50))
def test_the_engine_gives_the_bits_of_the_reference(number: int) -> None:
    case = random_program(number)
    for n_places in N_PLACES:
        rng = random.Random(number + 1000 * n_places)
        one = ReferenceExecutor(reference_device())
        separate: list[Executor] = [ReferenceExecutor(reference_device()) for _ in range(n_places)]
        executors = rng.choice([[one] * n_places, separate])
        check_engine(case, executors, layout_of(case, n_places, rng))


@pytest.mark.parametrize("number", sample(range(N_PROGRAMS), 50))
def test_devices_that_run_at_any_time_give_the_bits_of_the_reference(number: int) -> None:
    case, world = random_program(number), World(number, eagerness=[0.07, 0.2, 0.6][number % 3])
    rng = random.Random(number)
    executors = [
        LazyExecutor(world, shares_host=rng.random() < 0.5, name=str(place)) for place in range(4)
    ]
    check_engine(case, [*executors, executors[0]], layout_of(case, 5, rng))


@pytest.mark.parametrize("number", sample(range(N_PROGRAMS), 50))
def test_the_checked_mode_raises_no_alarm(number: int) -> None:
    case, rng = random_program(number), random.Random(number)
    one = ReferenceExecutor(reference_device())
    executors: list[Executor] = [one, one, ReferenceExecutor(reference_device())]
    check_engine(case, executors, layout_of(case, 3, rng), CheckedEngine)


RANKS = """
import random, sys
import numpy as np
from random_programs import random_program
from controllers.check import CheckedEngine
from controllers.device import reference_device
from controllers.engine import Engine
from controllers.executor.reference import ReferenceExecutor
from controllers.plan import Location, Plan
from hitmap import Layout, Shape, default_communicator

comm = default_communicator()
wrong = []
for number in map(int, sys.argv[1:]):
    case = random_program(number)
    layout = Layout.blocks(Shape.of_extent(case.extent), 5)
    locations = [Location(place % comm.size, place) for place in range(5)]
    plan = Plan(case.program, layout, case.periodic, locations, only_rank=comm.rank)
    executors = {place: ReferenceExecutor(reference_device()) for place in plan.places}
    messages = comm.Dup()
    engine = (CheckedEngine if number % 20 else Engine)(plan, executors, messages)
    for place in plan.places:
        owned = layout.owned[place]
        for field, values in case.arrays.items():
            for tile in engine.to_set(field, place):
                executors[place].move_to(tile, owned, values[owned.slices(layout.domain.lower)])
    engine.loaded()
    engine.run(case.n_steps)
    for field, expected in case.expected.items():
        for place in plan.places:
            owned = layout.owned[place]
            got = executors[place].move_from(engine.newest(field, place), owned)
            if got.tobytes() != expected[owned.slices(layout.domain.lower)].tobytes():
                wrong.append((number, field, place))
    engine.close()
    messages.Free()
wrong = [one for rank in comm.allgather(wrong) for one in rank]
if comm.rank == 0:
    print(f"wrong: {wrong}")
"""


@pytest.mark.parametrize("step", sample([40, 10], 2))
def test_two_ranks_give_the_bits_of_the_reference(tmp_path: Path, step: int) -> None:
    (tmp_path / "job.py").write_text(RANKS)
    numbers = map(str, range(0, N_PROGRAMS, step))
    job = run_ranks(2, [str(tmp_path / "job.py"), *numbers], env=helpers_path())
    assert job.returncode == 0 and "wrong: []" in job.stdout, job.stdout + job.stderr


@pytest.mark.whole
def test_fields_of_unlike_dtypes_go_through_one_staging_memory() -> None:
    make = Stage("make", {"v": Read("u", (0, 1)).astype("float64") * 2, "k": Read("u", (0, 0))},
                 ((0, 0), (0, 1)))  # fmt: skip
    use = Stage("use", {"u": Read("v", (1, 0)).astype("float32") - Read("k", (1, 0))},
                ((0, 1), (0, 0)))  # fmt: skip
    dtypes = {"u": "float32", "v": "float64", "k": "float32"}
    program = Program("unlike", tuple(Field(*field) for field in dtypes.items()), (make, use))
    rng = np.random.default_rng(1)
    arrays = {name: rng.random((9, 7)).astype(dtype) for name, dtype in dtypes.items()}
    periodic, layout = (True, False), Layout.bands(Shape.of_extent((9, 7)), 4)
    case = ProgramCase(program, (), arrays, periodic, 5)
    separate = [OpenCLExecutor(opencl(False, "other").device, zero_copy=False) for _ in range(2)]
    world = World(3, eagerness=0.2)
    lazy = [LazyExecutor(world, shares_host=shares) for shares in (True, False)]
    for executors, kind in ((separate, CheckedEngine), (lazy, Engine)):
        check_engine(case, [executors[place % 2] for place in range(4)], layout, kind)


TURN = Program(
    "turn",
    (Field("u", "float32"), Field("v", "float32")),
    (Stage("turn", {"u": Read("v", (0, 1)), "v": Read("v", (0, 0)) - Read("u", (1, 0))},
           ((0, 1), (0, 1))),),
)  # fmt: skip


def test_a_stage_of_several_updates_has_one_launch_per_box() -> None:
    locations = [Location(0, place, shares_host=False) for place in range(2)]
    layout = Layout.bands(Shape.of_extent((12, 9)), 2)
    plan = Plan(TURN, layout, (False, True), locations, overlap="on")
    launches = [one for one in plan.operations if one.verb == "launch" and one.phase == 0]
    assert [(one.place, str(one.writes[0].cells[0])) for one in launches] == [
        (0, "[0:6, 0:9]"), (1, "[6:7, 0:9]"), (1, "[7:11, 0:9]"),
    ]  # fmt: skip
    assert all([access.memory.field for access in one.writes] == ["u", "v"] for one in launches)
    assert "launch   turn: u.1@0 [0:6, 0:9], v.1@0 [0:6, 0:9] from v.0@0" in str(plan)


@pytest.mark.parametrize("extent, capacity", [((12, 19), 0), ((12, 19), 3), ((1, 2), 0)])
def test_rows_of_all_fields_are_aligned_alike_on_a_device(
    extent: tuple[int, int], capacity: int
) -> None:
    far = Stage("far", {"u": Read("u", (0, -3)) + Read("v", (0, 0))}, ((0, 0), (-3, 0)))
    program = Program("far", TURN.fields, (far,))
    layout = Layout.blocks(Shape.of_extent(extent), 4)
    locations = [Location(0, place, shares_host=place == 0) for place in range(4)]
    plan = Plan(program, layout, (False, True), locations, halo_capacity=[(0, 0), (capacity, 0)])
    for place in range(4):
        u, v = (plan.geometry(field, place) for field in "uv")
        assert u.box.lower[-1] == v.box.lower[-1] or place == 0
        assert layout.owned[place] in v.box


COUPLED = Program(
    "coupled",
    (Field("u", "float64"), Field("k", "float64")),
    (Stage("s", {"u": (Read("u", (-1, 0)) + Read("u", (0, 2))) * Read("k", (0, -1))},
           ((-1, 0), (-1, 2))),),
)  # fmt: skip


@pytest.mark.parametrize("periodic", [(False, True), (True, False)])
def test_launches_of_several_steps_may_read_other_fields(periodic: tuple[bool, bool]) -> None:
    rng = np.random.default_rng(3)
    arrays = {name: rng.random((17, 15)) for name in ("u", "k")}
    layout = Layout.blocks(Shape.of_extent((17, 15)), 4)
    executors = {place: ReferenceExecutor(reference_device()) for place in range(4)}
    locations = [Location(0, place) for place in range(4)]
    plan = Plan(COUPLED, layout, periodic, locations, steps_per_launch=3)
    engine = Engine(plan, executors, SerialCommunicator())
    fill(engine, arrays)
    for n_steps in (2, 3, 5):
        engine.run(n_steps)
    for field, expected in reference_run(COUPLED, arrays, 10, periodic).items():
        compare(engine, field, expected)
    engine.close()


@pytest.mark.parametrize("number", [5, 18])
def test_a_computation_of_several_fields_goes_on_where_it_is_divided_anew(number: int) -> None:
    case = random_program(number)
    boundary = ["periodic" if wraps else "fixed" for wraps in case.periodic]
    with Computation(
        case.program, case.extent, comm=SerialCommunicator(), devices="reference",
        places_per_controller=3, boundary=boundary,
    ) as run:  # fmt: skip
        fill(run._engine, case.arrays)
        run.run(case.n_steps)
        run.redistribute(partition="blocks")
        for field, expected in case.expected.items():
            compare(run._engine, field, expected)
        run.run(3)
        later = reference_run(case.program, case.arrays, case.n_steps + 3, case.periodic)
        for field, expected in later.items():
            compare(run._engine, field, expected)


@pytest.mark.parametrize("number", sample(range(N_PROGRAMS), N_PROGRAMS + 1))
def test_kernels_of_every_strategy_give_the_bits_of_the_reference(number: int) -> None:
    """Each program by one of them; `test_random_steps` has 150 more."""
    strategy = STRATEGIES_OF_SEVERAL[number % 3]
    case = random_program(number)
    devices = [opencl(zero_copy, "other") for zero_copy in (True, False)]
    for device in devices:
        device.choices = FirstThatSuits(device.device, strategy, number // 3)
    for n_places in N_PLACES:
        rng = random.Random(number + 1000 * n_places)
        executors = [rng.choice(devices) for _ in range(n_places)]
        check_engine(case, executors, layout_of(case, n_places, rng))


@pytest.mark.whole
@pytest.mark.parametrize("number", range(0, N_PROGRAMS, 5))
def test_kernels_that_suit_a_cpu_give_the_bits_of_the_reference(number: int) -> None:
    case, rng = random_program(number), random.Random(number)
    check_engine(case, [opencl(True, "cpu")] * 3, layout_of(case, 3, rng))
