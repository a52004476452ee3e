# SPDX-License-Identifier: MIT
"""Ways to exchange: whichever a plan takes, the bits are the same, and only what differs is tried."""
from __future__ import annotations

import random
from itertools import product

import pytest
from engine_runs import check_engine, layout_of
from lazy_executor import LazyExecutor, World
from random_programs import random_program
from sample import sample
from small_kernels import opencl

from controllers.check import CheckedEngine
from controllers.device import reference_device
from controllers.executor.executor import Executor
from controllers.executor.reference import ReferenceExecutor
from controllers.plan import ExchangeWay

WAYS = [*ExchangeWay().others]
N_PROGRAMS = 24


def test_the_ways_are_all_there_are() -> None:
    assert WAYS[0] == ExchangeWay() and len({*WAYS}) == len(WAYS) == 12
    assert [way.overlap for way in ExchangeWay("on").others] == ["on"] * 4


@pytest.mark.parametrize(("number", "way"), sample(product(range(N_PROGRAMS), WAYS), 13))
def test_devices_that_run_at_any_time_give_the_bits_of_the_reference(
    number: int, way: ExchangeWay
) -> None:
    case, rng = random_program(number), random.Random(number)
    world, n_places = World(number, eagerness=[0.07, 0.2, 0.6][number % 3]), 1 + number % 5
    executors = [
        LazyExecutor(world, shares_host=rng.random() < 0.3, name=str(place))
        for place in range(n_places)
    ]
    check_engine(case, executors, layout_of(case, n_places, rng), way=way)


@pytest.mark.parametrize(("number", "way"), sample(product(range(N_PROGRAMS), WAYS), 41))
def test_pocl_gives_the_bits_of_the_reference(number: int, way: ExchangeWay) -> None:
    case, rng = random_program(number), random.Random(number)
    devices = [opencl(True, "cpu"), opencl(False, "other"), opencl(False, "third")]
    executors: list[Executor] = [rng.choice(devices) for _ in range(2 + number % 4)]
    check_engine(case, executors, layout_of(case, len(executors), rng), way=way)


@pytest.mark.parametrize(("number", "way"), sample(product(range(N_PROGRAMS), WAYS), 41))
def test_the_checked_mode_raises_no_alarm(number: int, way: ExchangeWay) -> None:
    case, rng = random_program(number), random.Random(number)
    executors: list[Executor] = [
        ReferenceExecutor(reference_device()), opencl(False, "other"), opencl(False, "third")
    ]
    check_engine(case, executors, layout_of(case, 3, rng), CheckedEngine, way=way)
