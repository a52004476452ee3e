# SPDX-License-Identifier: MIT
"""Stored values: whether they are kept or computed again, the bits of the reference."""
from __future__ import annotations

import random

import pytest
from engine_runs import check_engine, check_orders, layout_of
from sample import sample
from stored_programs import stored_program

from controllers.check import CheckedEngine
from controllers.device import find_devices, reference_device
from controllers.engine import Engine
from controllers.executor.executor import Executor
from controllers.executor.opencl import OpenCLExecutor
from controllers.executor.reference import ReferenceExecutor
from controllers.program.storing import with_temporaries

N_PLACES = (1, 2, 3, 5)
NUMBERS = sorted(range(40), key=lambda number: number != 9)    # the ninth is small


@pytest.mark.parametrize("number", sample(NUMBERS, 40))
def test_every_order_that_a_plan_allows_gives_the_bits_of_the_reference(number: int) -> None:
    case = stored_program(number)
    kept = with_temporaries(case.program, "always")
    for n_places in N_PLACES:
        check_orders(case, n_places, random.Random(1000 * number + n_places), kept)


@pytest.mark.whole
@pytest.mark.parametrize("number", sample(NUMBERS, 40))
def test_pocl_and_the_reference_give_the_same_bits(number: int, pocl: OpenCLExecutor) -> None:
    """The few of one or two steps in the checked mode."""
    case, rng = stored_program(number), random.Random(number)
    kept, kind = with_temporaries(case.program, "always"), Engine
    if case.n_steps < 3:
        kind = CheckedEngine
    for n_places in (1, 5) if number % 2 else (2, 3):
        reference = ReferenceExecutor(reference_device())
        executors: list[Executor] = [
            rng.choice([pocl, pocl, reference]) for _ in range(n_places)
        ]
        check_engine(case, executors, layout_of(case, n_places, rng), kind, program=kept)


@pytest.fixture(scope="module")
def pocl() -> OpenCLExecutor:
    return OpenCLExecutor(find_devices()[0])
