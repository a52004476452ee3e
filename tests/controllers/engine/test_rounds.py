# SPDX-License-Identifier: MIT
"""Rounds of launches without an exchange, on any number of places, give the reference's bits."""
from __future__ import annotations

import random
from itertools import product
from typing import Any

import numpy as np
import pytest
from engine_runs import check_engine, compare, fill, layout_of
from fold_programs import random_folds
from lazy_executor import random_devices
from lazy_world import World
from random_options import choices
from random_programs import ProgramCase, random_program
from random_steps import random_steps
from sample import sample
from small_kernels import of_strategy

import controllers as ct
from controllers.device import reference_device
from controllers.engine import Engine
from controllers.engine.relay import Relay
from controllers.executor.executor import Executor
from controllers.executor.reference import ReferenceExecutor
from controllers.language.traced import program_of
from controllers.placement.halo_width import plan_of_width, replanned
from controllers.plan import Location
from hitmap import Layout, SerialCommunicator, Shape

N_PLACES = (1, 2, 3, 5)
RING = ct.Grid(y=11, x=13)
MOST = 5            # launches of a round
PROGRAMS = range(60)
STEPS = range(60)


@pytest.mark.parametrize("number", sample(PROGRAMS, 25))
def test_changes_of_width_under_way_leave_the_bits(number: int) -> None:
    case, rng = random_program(number), random.Random(number)
    n_places = rng.choice(N_PLACES)
    executors = [ReferenceExecutor(reference_device()) for _ in range(n_places)]
    locations = [Location(0, n) for n in range(n_places)]
    layout = layout_of(case, n_places, rng)
    plan = plan_of_width(MOST, case.program, layout, case.periodic, locations, overlap="on")
    homes: dict[int, Executor] = dict(enumerate(executors))
    widest = Engine(plan, homes, SerialCommunicator())

    def narrow(like: Engine, width: int) -> Engine:
        return Engine(replanned(like.plan, width, plan), homes, SerialCommunicator(), like.tiles)

    relay, engine = Relay(widest, narrow), widest
    fill(engine, case.arrays)
    for _ in range(case.n_steps):
        engine.run(1)
        before, engine = engine, relay.engine(rng.randint(1, MOST))
        if engine is not before:
            engine.take_over(before)
    for field, expected in case.expected.items():
        compare(engine, field, expected)
    relay.close(engine)


@pytest.mark.parametrize("number", sample([*STEPS[40:], *STEPS[:40]], 60))
def test_random_steps_of_wide_halos_give_the_bits_of_the_reference(number: int) -> None:
    case, chosen, rng = random_steps(number), choices()[number], random.Random(number)
    n_places = rng.choice(N_PLACES)
    devices = of_strategy(chosen["strategy"], number)
    executors: list[Executor] = [rng.choice(devices) for _ in range(n_places)]
    layout, count = layout_of(case, n_places, rng), rng.randint(2, MOST)
    try:
        check_engine(case, executors, layout, steps_per_launch=chosen["steps"], n_launches=count)
    except ValueError as error:     # of several steps, which few kernels compute
        if chosen["steps"] == 1 or "no kernel computes" not in str(error):
            raise
        check_engine(case, executors, layout, n_launches=count)


# few, on few places: where operations may be done in any order, each case takes long
@pytest.mark.parametrize("number", sample(PROGRAMS[:40], 10))
def test_devices_that_run_at_any_time_give_the_bits_of_the_reference(number: int) -> None:
    case, rng = random_program(number), random.Random(number)
    world = World(number, eagerness=[0.07, 0.2, 0.6][number % 3])
    executors = random_devices(world, rng, 2)
    layout = layout_of(case, 3, rng)
    check_engine(case, [*executors, executors[0]], layout, n_launches=rng.randint(2, 3))


@pytest.mark.parametrize("number", sample(STEPS, 15))
def test_wide_halos_fold_each_cell_once(number: int) -> None:
    case, rng = random_folds(number), random.Random(number)
    n_places = rng.choice(N_PLACES)
    executors: list[Executor] = [ReferenceExecutor(reference_device()) for _ in range(n_places)]
    layout, count = layout_of(case, n_places, rng), rng.randint(2, MOST)
    check_engine(case, executors, layout, n_launches=count)


def around(u: Any) -> Any:
    return {"u": (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1]) * 0.25}


def with_source(u: Any, *, y: Any) -> Any:
    return {"u": around(u)["u"] + ct.point(RING, (9.5, 10.5)) + 0.01 * y}


RESTRICTED = {
    "box": ct.step(around, over=np.s_[1:-2, 3:]),
    "parity": ct.step(around, over=ct.parity(0)),
    "mask": ct.step(around, over=lambda x: x > 5),
    "source": ct.step(with_source),
}


@pytest.mark.parametrize(
    ("name", "strategy"), sample(product(RESTRICTED, ["cell", "rows", "marching"]), 4)
)
def test_cells_beyond_the_ends_of_a_ring_are_those_that_they_show(name: str, strategy: str) -> None:
    start = np.random.default_rng(0).random((11, 13), dtype=np.float32)
    traced = program_of([RESTRICTED[name]], RING, dtype="float32", boundary="periodic")
    case = ProgramCase(traced.program, (), {"u": start}, (True, True), 9)
    device, _ = of_strategy(strategy, 3)
    layout = Layout.blocks(Shape.of_extent(start.shape), 4)
    check_engine(case, [device] * 4, layout, n_launches=4)
