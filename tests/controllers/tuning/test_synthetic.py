# SPDX-License-Identifier: MIT
"""Searches on synthetic programs, whose best way to run is known."""
from __future__ import annotations

import pytest
from sample import sample
from synthetic import (
    DEVICES,
    LINKS,
    Machine,
    SyntheticProgram,
    Way,
    made_cases,
    synthetic_reached,
    times,
    ways,
)

from controllers.plan import Location, Plan
from controllers.program.expression import count, flops
from hitmap import Layout, Shape

CASES = [*made_cases(50)]


SEARCHED = [(search, n) for n in range(len(CASES)) for search in ("hill_climb", "dichotomic")]


@pytest.mark.parametrize(("search", "number"), sample(SEARCHED, 19))
def test_a_search_finds_the_optimum_in_under_a_fifth_of_its_trials(
    search: str, number: int
) -> None:
    found = synthetic_reached(*CASES[number], search)
    assert found.n_tried < found.n_ways / 5, found
    assert found.share >= 0.98, found


def test_ways_differ_so_that_searching_them_pays() -> None:
    every = times(*CASES[0])
    assert len(every) == len(ways()) == 1332
    assert min(every.values()) < 0.98 * every[Way()]


def test_halving_takes_few_trials_where_there_is_one_valley() -> None:
    program = SyntheticProgram(8, 1, 1, (4096, 4096))
    machine = Machine(DEVICES[0], LINKS["slow network"], 2)
    halved = synthetic_reached(program, machine, "dichotomic")
    climbed = synthetic_reached(program, machine, "hill_climb")
    assert halved.n_enough is not None and climbed.n_enough is not None
    assert halved.n_enough < climbed.n_enough


def test_a_synthetic_program_costs_and_sends_what_its_model_says() -> None:
    made = SyntheticProgram(20, 2, 3, (40, 30))
    program = made.program()
    (stage,) = program.stages
    assert all(flops(count(update)) == 20 for update in stage.updates.values())
    layout = Layout.bands(Shape.of_extent(made.extent), 2)
    plan = Plan(program, layout, program.periodic, [Location(0), Location(1)])
    nbytes = sum(bundle.nbytes for bundle in plan.bundles if bundle.target == 0)
    assert nbytes == 4 * made.n_fields * made.reach * made.extent[1]      # in whole rows
