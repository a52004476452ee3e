# SPDX-License-Identifier: MIT
"""Stored values: whether they are kept or computed again, the bits of the reference."""
from __future__ import annotations

import random
from itertools import product

import pytest
from plan_simulation import Simulation
from random_boundaries import same
from random_programs import ProgramCase
from sample import sample
from stored_programs import stored_program

from controllers.check import CheckedEngine
from controllers.device import find_devices, reference_device
from controllers.engine import Engine
from controllers.executor.executor import Executor
from controllers.executor.opencl import OpenCLExecutor
from controllers.executor.reference import ReferenceExecutor
from controllers.plan import Location, Plan
from controllers.program.storing import with_temporaries
from hitmap import Layout, SerialCommunicator, Shape

N_PLACES = (1, 2, 3, 5)
NUMBERS = sorted(range(40), key=lambda number: number != 9)    # the ninth is small


def layout_of(case: ProgramCase, n_places: int, rng: random.Random) -> Layout:
    domain = Shape.of_extent(case.extent)
    weights = [rng.choice([1, 5, 50]) for _ in range(n_places)]
    return rng.choice([
        Layout.bands(domain, n_places),
        Layout.blocks(domain, n_places),
        Layout.weighted_blocks(domain, weights),
    ])  # fmt: skip


@pytest.mark.parametrize("number", sample(NUMBERS, 40))
def test_every_order_that_a_plan_allows_gives_the_bits_of_the_reference(number: int) -> None:
    case = stored_program(number)
    kept = with_temporaries(case.program, "always")
    for n_places in N_PLACES:
        rng = random.Random(1000 * number + n_places)
        homes = sorted(rng.choice([*product(range(3), (0, 1))]) for _ in range(n_places))
        locations = [Location(*home, shares_host=home[0] != 1) for home in homes]
        overlap = rng.choice(["on", "off", "auto"])
        plan = Plan(
            kept, layout_of(case, n_places, rng), case.periodic, locations, overlap=overlap
        )
        got = Simulation(plan, case.arrays, rng).run(case.n_steps)
        assert [*got] == [*case.expected]
        for field, expected in case.expected.items():
            assert same(got[field], expected), f"{field}, {n_places} places\n{plan}"


def check_engine(case: ProgramCase, executors: list[Executor], layout: Layout) -> None:
    """The fields after all steps, of an engine that keeps all stored values; watched if few."""
    kind = CheckedEngine if case.n_steps < 3 else Engine
    program = with_temporaries(case.program, "always")
    locations = [
        Location(0, number, one.shares_host) for number, one in enumerate(executors)
    ]
    plan = Plan(program, layout, case.periodic, locations, overlap="on")
    engine = kind(plan, dict(enumerate(executors)), SerialCommunicator())
    for place, (field, values) in product(plan.places, case.arrays.items()):
        owned = layout.owned[place]
        for tile in engine.to_set(field, place):
            cells = values[owned.slices((0,) * values.ndim)]
            engine.executors[place].move_to(tile, owned, cells)
    engine.loaded()
    engine.run(case.n_steps)
    for place, (field, expected) in product(plan.places, case.expected.items()):
        owned = layout.owned[place]
        got = engine.executors[place].move_from(engine.newest(field, place), owned)
        right = expected[owned.slices((0,) * expected.ndim)]
        assert same(got, right), f"{field} at place {place}\n{plan}"
    engine.close()


@pytest.mark.parametrize("number", sample(NUMBERS, 40))
def test_pocl_and_the_reference_give_the_same_bits(number: int, pocl: OpenCLExecutor) -> None:
    case, rng = stored_program(number), random.Random(number)
    for n_places in (1, 5) if number % 2 else (2, 3):
        reference = ReferenceExecutor(reference_device())
        executors: list[Executor] = [
            rng.choice([pocl, pocl, reference]) for _ in range(n_places)
        ]
        check_engine(case, executors, layout_of(case, n_places, rng))


@pytest.fixture(scope="module")
def pocl() -> OpenCLExecutor:
    return OpenCLExecutor(find_devices()[0])
