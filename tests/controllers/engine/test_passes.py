# SPDX-License-Identifier: MIT
"""Chunks that pass through their devices give the reference's bits, several steps per pass."""
from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest
from engine_runs import compare, fill
from fold_programs import random_folds
from lazy_executor import LazyExecutor
from lazy_world import World
from random_boundaries import bounded_program, same
from random_options import choices
from random_programs import ProgramCase, random_program
from random_steps import random_steps
from sample import sample
from small_kernels import FirstThatSuits, opencl

from controllers.engine import ChunkEngine
from controllers.executor.executor import Executor
from controllers.placement.halo_width import replanned_pass
from controllers.plan import ChunkPlan, Location, SkewedPlan
from controllers.plan.chunk_margins import why_overlapped
from controllers.plan.folding import needed
from hitmap import Layout, SerialCommunicator, Shape

MOST = 5            # launches of a pass
PROGRAMS = range(100)
STEPS = range(100)


def check_chunks(
    case: ProgramCase, executors: Sequence[Executor], n_chunks: int, n_slots: int,
    n_launches: int, steps_per_launch: int = 1,
) -> None:  # fmt: skip
    """Chunks with margins and, where there is nothing against them, skewed ones."""
    layout = Layout.bands(Shape.of_extent(case.extent), n_chunks)
    kinds = [ChunkPlan, SkewedPlan][: 1 + (not why_overlapped(case.program, layout))]
    for kind in kinds:
        check_kind(kind, case, executors, n_chunks, n_slots, n_launches, steps_per_launch)


def check_kind(
    kind: type[ChunkPlan], case: ProgramCase, executors: Sequence[Executor], n_chunks: int,
    n_slots: int, n_launches: int, steps_per_launch: int,
) -> None:  # fmt: skip
    """Runs of all steps at once, and of some at a time, on devices that take chunks in turn."""
    homes = [number * len(executors) // n_chunks for number in range(n_chunks)]
    plan = kind(
        case.program, Layout.bands(Shape.of_extent(case.extent), n_chunks), case.periodic,
        [Location(0, home, shares_host=False) for home in homes],
        steps_per_launch=steps_per_launch, n_launches=n_launches, n_slots=n_slots,
    )  # fmt: skip
    places = {chunk: executors[home] for chunk, home in enumerate(homes)}
    engine = ChunkEngine(plan, places, SerialCommunicator(), shorter=replanned_pass)
    for parts in ([case.n_steps], [1] * case.n_steps):
        fill(engine, case.arrays)
        for n_steps in parts:
            engine.run(n_steps)
        for field, expected in case.expected.items():
            compare(engine, field, expected)
        if case.program.folds:
            for name, right in case.results.items():
                assert same(np.asarray(engine.folds.results[name]), np.asarray(right)), name
    engine.close()


@pytest.mark.parametrize("number", sample(PROGRAMS, 20))
def test_devices_that_run_at_any_time_give_the_bits_of_the_reference(number: int) -> None:
    case, rng = random_program(number), random.Random(number)
    world = World(number, eagerness=[0.07, 0.2, 0.6][number % 3])
    executors: list[Executor] = [
        LazyExecutor(world, shares_host=False, name=str(n)) for n in range(rng.choice((1, 1, 2)))
    ]
    check_chunks(case, executors, rng.randint(2, 7), rng.randint(1, 4), rng.randint(1, MOST))


@pytest.mark.parametrize("number", sample(PROGRAMS, 30))
def test_rules_at_the_ends_of_axes_hold_in_each_chunk(number: int) -> None:
    case, rng = bounded_program(number), random.Random(number)
    executors: list[Executor] = [LazyExecutor(World(number), shares_host=False)]
    check_chunks(case, executors, rng.randint(2, 7), rng.randint(1, 4), rng.randint(1, MOST))


@pytest.mark.parametrize("number", sample(STEPS, 30))
def test_random_steps_give_the_bits_of_the_reference(number: int) -> None:
    case, chosen, rng = random_steps(number), choices()[number], random.Random(number)
    device = opencl(False, "other")
    device.choices = FirstThatSuits(device.device, chosen["strategy"], number // 3)
    cut = rng.randint(2, 7), rng.randint(1, 4), rng.randint(1, MOST)
    try:
        check_chunks(case, [device], *cut, chosen["steps"])
    except ValueError as error:     # of several steps, which few kernels compute
        if chosen["steps"] == 1 or "no kernel computes" not in str(error):
            raise
        check_chunks(case, [device], *cut)


@pytest.mark.parametrize("number", sample(STEPS, 30))
def test_results_are_those_of_the_last_step(number: int) -> None:
    case, rng = random_folds(number), random.Random(number)
    executors: list[Executor] = [LazyExecutor(World(number), shares_host=False)]
    cut = rng.randint(2, 7), rng.randint(1, 4), rng.randint(1, MOST)
    if needed(case.program):
        with pytest.raises(ValueError, match="steps use what they fold"):
            check_chunks(case, executors, *cut)
    else:
        check_chunks(case, executors, *cut)
