# SPDX-License-Identifier: MIT
"""Rules at the ends of axes: on any number of places, the bits of the reference."""
from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import product

import pytest
from lazy_executor import LazyExecutor, World
from plan_simulation import Simulation
from random_boundaries import bounded_program, same
from random_programs import ProgramCase
from sample import sample

from controllers.device import find_devices, reference_device
from controllers.engine import Engine
from controllers.executor.executor import Executor
from controllers.executor.opencl import OpenCLExecutor
from controllers.executor.reference import ReferenceExecutor
from controllers.plan import Location, Plan
from hitmap import Layout, SerialCommunicator, Shape

N_PLACES = (1, 2, 3, 5)
N_PROGRAMS = 200


def layout_of(case: ProgramCase, n_places: int, rng: random.Random) -> Layout:
    domain = Shape.of_extent(case.extent)
    weights = [rng.choice([1, 5, 50]) for _ in range(n_places)]
    return rng.choice([
        Layout.bands(domain, n_places),
        Layout.blocks(domain, n_places),
        Layout.weighted(domain, weights),
        Layout.weighted_blocks(domain, weights),
    ])  # fmt: skip


@pytest.mark.parametrize("number", sample(range(N_PROGRAMS), 20))
def test_every_order_that_a_plan_allows_gives_the_bits_of_the_reference(number: int) -> None:
    case = bounded_program(number)
    for n_places in N_PLACES:
        rng = random.Random(1000 * number + n_places)
        layout = layout_of(case, n_places, rng)
        shares = {home: rng.random() < 0.5 for home in product(range(3), (0, 1))}
        homes = sorted((rng.randint(0, 2), rng.randint(0, 1)) for _ in range(n_places))
        locations = [Location(*home, shares_host=shares[home]) for home in homes]
        overlap = rng.choice(["on", "off", "auto"])
        plan = Plan(case.program, layout, case.periodic, locations, overlap=overlap)
        got = Simulation(plan, case.arrays, rng).run(case.n_steps)
        for field, expected in case.expected.items():
            assert same(got[field], expected), f"{field}, {n_places} places\n{plan}"


def check_engine(case: ProgramCase, executors: Sequence[Executor], layout: Layout) -> None:
    """Runs of all steps at once, and of one at a time after the fields are set anew."""
    numbers = {executor: n for n, executor in enumerate(dict.fromkeys(executors))}
    locations = [Location(0, numbers[one], one.shares_host) for one in executors]
    plan = Plan(case.program, layout, case.periodic, locations, overlap="on")
    engine = Engine(plan, dict(enumerate(executors)), SerialCommunicator())
    for parts in ([case.n_steps], [1] * case.n_steps):
        for place in plan.places:
            owned = layout.owned[place]
            for field, values in case.arrays.items():
                for tile in engine.to_set(field, place):
                    cells = values[owned.slices((0,) * values.ndim)]
                    engine.executors[place].move_to(tile, owned, cells)
        engine.loaded()
        for n_steps in parts:
            engine.run(n_steps)
        for field, expected in case.expected.items():
            for place in plan.places:
                owned = layout.owned[place]
                got = engine.executors[place].move_from(engine.newest(field, place), owned)
                right = expected[owned.slices((0,) * expected.ndim)]
                assert same(got, right), f"{field} at place {place}\n{plan}"
    engine.close()


@pytest.mark.parametrize("number", sample(range(N_PROGRAMS), 20))
def test_devices_that_run_at_any_time_give_the_bits_of_the_reference(number: int) -> None:
    case, world = bounded_program(number), World(number, eagerness=[0.07, 0.2, 0.6][number % 3])
    rng = random.Random(number)
    executors = [
        LazyExecutor(world, shares_host=rng.random() < 0.5, name=str(place)) for place in range(4)
    ]
    check_engine(case, [*executors, executors[0]], layout_of(case, 5, rng))


@pytest.mark.parametrize("number", sample(range(N_PROGRAMS), 25))
def test_pocl_gives_the_bits_of_the_reference(number: int, pocl: OpenCLExecutor) -> None:
    case, rng = bounded_program(number), random.Random(number)
    for n_places in (1, 5) if number % 2 else (2, 3):
        reference = ReferenceExecutor(reference_device())
        executors = [rng.choice([pocl, pocl, reference]) for _ in range(n_places)]
        check_engine(case, executors, layout_of(case, n_places, rng))


@pytest.fixture(scope="module")
def pocl() -> OpenCLExecutor:
    return OpenCLExecutor(find_devices()[0])
