# SPDX-License-Identifier: MIT
"""Chunks that pass through their devices give the reference's bits, several steps per pass."""
from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from chunk_runs import check_passes, kinds_of
from fold_programs import late_reads, random_folds
from lazy_executor import LazyExecutor
from lazy_world import World
from random_boundaries import bounded_program
from random_options import choices
from random_programs import ProgramCase, random_program
from random_steps import random_steps
from repeat_programs import random_repeats
from sample import sample
from small_kernels import FirstThatSuits, opencl

from controllers.executor.executor import Executor
from controllers.plan import Location
from hitmap import Layout, SerialCommunicator, Shape

MOST = 5            # launches of a pass
PROGRAMS = range(100)
STEPS = range(100)
LATE = range(60)
REPEATS = [number for number in range(100) if number != 73]     # a condition that holds nowhere


def check_chunks(
    case: ProgramCase, executors: Sequence[Executor], n_chunks: int, n_slots: int,
    n_launches: int, steps_per_launch: int = 1,
) -> None:  # fmt: skip
    """Of each kind that there may be, on devices that take chunks in turn."""
    layout = Layout.bands(Shape.of_extent(case.extent), n_chunks)
    homes = [number * len(executors) // n_chunks for number in range(n_chunks)]
    where = [Location(0, home, shares_host=False) for home in homes]
    places = {chunk: executors[home] for chunk, home in enumerate(homes)}
    for kind in kinds_of(case.program, layout):
        check_passes(
            kind, case, layout, where, places, SerialCommunicator(), n_launches=n_launches,
            n_slots=n_slots, steps_per_launch=steps_per_launch,
        )  # fmt: skip


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
    check_chunks(case, executors, *cut)


@pytest.mark.parametrize("number", sample(LATE, 20))
def test_renamed_fields_are_read_after_folds_as_they_were(number: int) -> None:
    case, rng = late_reads(number), random.Random(number)
    executors: list[Executor] = [
        LazyExecutor(World(number), shares_host=False, name=str(n)) for n in range(1 + number % 2)
    ]
    check_chunks(case, executors, rng.randint(2, 7), rng.randint(1, 4), 1)


@pytest.mark.parametrize("number", sample(REPEATS, 20))
def test_parts_that_are_repeated_are_passes_of_several_turns(number: int) -> None:
    case, rng = random_repeats(number), random.Random(number)
    executors: list[Executor] = [LazyExecutor(World(number), shares_host=False)]
    cut = rng.randint(2, 7), rng.randint(1, 4), rng.randint(1, MOST)
    check_chunks(case, executors, *cut)
