# SPDX-License-Identifier: MIT
"""Places that divide rounds in their own ways give the reference's bits, whenever runs end."""
from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from engine_runs import check_two_ranks, fill, locations_of, random_way
from lazy_executor import random_devices
from lazy_world import World
from random_boundaries import same
from random_paces import MOST_LENGTH, random_paces
from sample import sample
from small_kernels import opencl

from controllers.device import reference_device
from controllers.engine import Engine, PacedEngine
from controllers.engine.relay import Relay
from controllers.executor.executor import Executor
from controllers.executor.reference import ReferenceExecutor
from controllers.placement.halo_width import plan_of_width, replanned
from controllers.plan import ExchangeWay, Location, PacedPlan, Plan, RoundPlan
from controllers.plan.rounds.paces import pace_of, shortened_pace
from controllers.program.reference import reference_run
from hitmap import SerialCommunicator

CASES = range(60)
BUILT = 12          # every so many cases have kernels, one for each number of steps


def run_case(number: int, executors: Sequence[Executor], way: ExchangeWay) -> set[type[Plan]]:
    """All runs of a case, with the bits after each; which kinds of plans it had."""
    paced = random_paces(number)
    case = paced.case
    homes = dict(enumerate(executors))
    locations = locations_of(executors)
    plan = plan_of_width(
        paced.widest, case.program, paced.layout, case.periodic, locations,
        steps_per_launch=paced.lengths, way=way,
    )  # fmt: skip

    def bound(plan: Plan, like: Engine | None = None) -> Engine:
        kind = PacedEngine if plan.steps_are_rounds else Engine
        return kind(plan, homes, SerialCommunicator(), None if like is None else like.tiles)

    widest = bound(plan)
    relay = Relay(widest, lambda like, width: bound(replanned(like.plan, width, plan), like))
    engine, done, seen = widest, 0, {type(plan)}
    fill(engine, case.arrays)
    for width, count in paced.runs:
        before, engine = engine, relay.engine(width)
        if engine is not before:
            engine.take_over(before)
            seen.add(type(engine.plan))
        engine.run(count)
        done += count
        right = reference_run(case.program, case.arrays, done, case.periodic)
        for field, expected in right.items():
            for place in plan.places:
                owned = plan.owned(field, place)
                got = executors[place].move_from(engine.newest(field, place), owned)
                cells = expected[owned.slices((0,) * owned.n_axes)]
                assert same(got, cells), f"{field} at {place} after {done}\n{engine.plan}"
    relay.close(engine)
    return seen


@pytest.mark.parametrize("number", sample([*CASES[12:], *CASES[:12]], 30))
def test_random_programs_on_places_with_unlike_launches(number: int) -> None:
    rng = random.Random(number)
    places = range(len(random_paces(number).lengths))
    if number % BUILT == 0:
        try:
            run_case(number, [opencl(place % 2 > 0, "cpu") for place in places], random_way(rng))
            return
        except ValueError as error:     # of several steps, which few kernels compute
            if "no kernel computes" not in str(error):
                raise
    run_case(number, [ReferenceExecutor(reference_device()) for _ in places], random_way(rng))


def test_random_cases_have_all_kinds_of_plans() -> None:
    plans = set()
    for number in CASES:
        paced = random_paces(number)
        locations = [Location(0, n) for n in range(len(paced.lengths))]
        for width in {paced.widest, *(width for width, _ in paced.runs)}:
            plans.add(type(plan_of_width(
                width, paced.case.program, paced.layout, paced.case.periodic, locations,
                steps_per_launch=paced.lengths,
            )))  # fmt: skip
    assert plans == {PacedPlan, RoundPlan, Plan}


@pytest.mark.parametrize("number", sample(CASES, 60))
def test_devices_that_run_at_any_time(number: int) -> None:
    world = World(number, eagerness=[0.07, 0.2, 0.6][number % 3])
    rng = random.Random(number)
    executors = random_devices(world, rng, len(random_paces(number).lengths))
    run_case(number, executors, random_way(rng))


def test_paces_make_up_the_width() -> None:
    for width in range(1, 30):
        for length in range(1, MOST_LENGTH + 9):
            pace = pace_of(width, length)
            assert sum(pace) == width and max(pace) <= length
            assert len(pace) == -(-width // length) and max(pace) - min(pace) <= 1
            for rest in range(1, width):
                end = shortened_pace(pace, rest, 2)
                assert sum(end) == rest and len(end) <= len(pace)
                assert (len(pace) - len(end)) % 2 == 0
                assert all(a <= b for a, b in zip(end, pace))


@pytest.mark.whole
def test_two_ranks() -> None:
    check_two_ranks("paces", (0, 7))
