# SPDX-License-Identifier: MIT
"""Random traced programs of every pair of options: on any number of places, the same bits."""
from __future__ import annotations

import random
from itertools import product
from typing import Any

import numpy as np
import pytest
from engine_runs import check_engine, check_two_ranks, layout_of
from lazy_executor import random_devices
from lazy_world import World
from random_options import N_CASES, OPTIONS, all_pairs, choices, pairs_of
from random_steps import planned, random_steps
from sample import sample
from small_kernels import of_strategy

import controllers as ct
from controllers.check import CheckedEngine
from controllers.device import reference_device
from controllers.executor.executor import Executor
from controllers.executor.reference import ReferenceExecutor
from controllers.kgt import generate
from controllers.language.traced import program_of
from controllers.program.program import INTEGERS
from controllers.program.storing import with_temporaries

N_PLACES = (1, 2, 3, 5)


def test_every_pair_of_options_that_go_together_occurs() -> None:
    found = frozenset().union(*map(pairs_of, choices()))
    assert all_pairs() - found == set(), "make more cases, or choose better"
    assert found <= all_pairs(), "what does not go together"
    singles = {(name, value) for name, values in OPTIONS.items() for value in values}
    assert {one for pair in all_pairs() for one in pair} == singles


@pytest.mark.parametrize("number", sample(range(N_CASES), 30))
def test_a_case_is_what_was_chosen(number: int) -> None:
    chosen, case = choices()[number], random_steps(number)
    program = case.program
    assert (program.n_axes, len(program.fields)) == (chosen["axes"], chosen["fields"])
    assert len(program.stages) == chosen["stages"]
    assert bool(program.renames) == (chosen["renames"] != "none")
    assert any(name.endswith("_a") for name in case.arrays) == chosen["structs"]
    assert ("rate" in program.scalars) == (chosen["scalars"] == "parameter")
    assert program.periodic[0] == (chosen["boundary"] == "periodic")
    dtypes = {dtype in INTEGERS for dtype in program.dtypes.values()}
    assert (len(dtypes) == 2) == (chosen["dtypes"] == "mixed")
    for name, values in case.expected.items():
        written = name in program.written or name in program.renames
        assert written or np.array_equal(values, case.arrays[name])


@pytest.mark.parametrize(("number", "n_places"), sample(product(range(N_CASES), N_PLACES), 41))
def test_all_numbers_of_places_give_the_bits_of_the_reference(number: int, n_places: int) -> None:
    case, rng = random_steps(number), random.Random(1000 * number + n_places)
    one = ReferenceExecutor(reference_device())
    separate: list[Executor] = [ReferenceExecutor(reference_device()) for _ in range(n_places)]
    executors, layout = rng.choice([[one] * n_places, separate]), layout_of(case, n_places, rng)
    per_launch = choices()[number]["steps"]
    check_engine(
        case, executors, layout, steps_per_launch=per_launch, program=planned(number)
    )


@pytest.mark.parametrize(("number", "n_places"), sample(product(range(N_CASES), N_PLACES), 601))
def test_pocl_gives_the_bits_of_the_reference(number: int, n_places: int) -> None:
    case, chosen = random_steps(number), choices()[number]
    rng = random.Random(1000 * number + n_places)
    devices = of_strategy(chosen["strategy"], number)
    executors: list[Executor] = [rng.choice(devices) for _ in range(n_places)]
    layout = layout_of(case, n_places, rng)
    try:
        check_engine(
            case, executors, layout, steps_per_launch=chosen["steps"], program=planned(number)
        )
    except ValueError as error:     # of several steps, which few kernels compute
        assert chosen["steps"] > 1 and "no kernel computes" in str(error), error
        check_engine(case, executors, layout)


# 42: fields of two dtypes share staging memory, and go one by one before the first step
@pytest.mark.parametrize("number", sample([42, *range(N_CASES)], N_CASES + 1))
def test_devices_that_run_at_any_time_give_the_bits_of_the_reference(number: int) -> None:
    case, rng = random_steps(number), random.Random(number)
    world = World(number, eagerness=[0.07, 0.2, 0.6][number % 3])
    executors = random_devices(world, rng, 4)
    layout = layout_of(case, 5, rng)
    check_engine(case, [*executors, executors[0]], layout, program=planned(number))


@pytest.mark.parametrize("number", sample(range(N_CASES), 150))
def test_the_checked_mode_raises_no_alarm(number: int) -> None:
    case, rng = random_steps(number), random.Random(number)
    one = ReferenceExecutor(reference_device())
    executors: list[Executor] = [one, one, ReferenceExecutor(reference_device())]
    check_engine(
        case, executors, layout_of(case, 3, rng), CheckedEngine, program=planned(number)
    )


def test_values_are_stored_on_a_ring_beside_a_field_called_as_a_variable_of_kernels() -> None:
    @ct.step
    def flow(k: Any) -> Any:
        square = ct.stored(k * k)
        flux = ct.stored(square[1] - square)
        return dict(k=k - flux + flux[-1])

    program = program_of(flow, ct.Grid(x=9, boundary="periodic")).program
    kept = with_temporaries(program, "always")
    assert len(kept.stages) == 3
    for stage in kept.stages:
        assert "__kernel" in generate(kept, stage).source


@pytest.mark.whole
def test_two_ranks_give_the_bits_of_the_reference() -> None:
    check_two_ranks("steps", range(0, N_CASES, 10))
