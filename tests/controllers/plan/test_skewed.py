# SPDX-License-Identifier: MIT
"""Skewed chunks compute each cell of a launch once, and rows cross the link once."""
from __future__ import annotations

import itertools
import random

import pytest
from random_boundaries import bounded_program
from random_programs import ProgramCase, random_program
from sample import sample

from controllers.plan import ChunkPlan, Location, SkewedPlan
from controllers.plan.chunk_size import traffic
from controllers.plan.skewed import why_overlapped
from hitmap import Layout, Region, Shape

MAKERS = random_program, bounded_program


def suited(number: int) -> ProgramCase:
    """A random program that skewed chunks are for, from a number on."""
    cases = (MAKERS[number % 2](at) for at in itertools.count(number))
    return next(
        case for case in cases if not case.program.renames and not case.program.repeats
        and not why_overlapped(case.program, Layout.bands(Shape.of_extent(case.extent), 2), [])
    )  # fmt: skip


def planned(kind: type[ChunkPlan], case: ProgramCase, rng: random.Random) -> ChunkPlan:
    layout = Layout.bands(Shape.of_extent(case.extent), rng.randint(2, 6))
    return kind(
        case.program, layout, case.periodic, [Location(shares_host=False)] * layout.n_places,
        n_launches=rng.randint(1, 5), n_slots=rng.randint(1, 4),
    )  # fmt: skip


@pytest.mark.parametrize("number", sample(range(80), 8))
def test_no_cell_is_computed_twice_and_no_row_brought_twice(number: int) -> None:
    found = suited(number)
    plan = planned(SkewedPlan, found, random.Random(number))
    whole = planned(ChunkPlan, found, random.Random(number))
    for launch in range(plan.n_launches):
        for sweep in range(len(plan.sweeps)):
            boxes = [plan.computed(sweep, launch, place) for place in plan.places]
            each = sum(box.n_cells for box in boxes)
            assert Region.of(boxes).n_cells == each
            assert each <= sum(
                whole.computed(sweep, launch, place).n_cells for place in whole.places
            )
    moved = traffic(plan)
    assert moved.up <= traffic(whole).up and moved.down == traffic(whole).down
    if not plan.periodic[0]:
        assert plan.n_phases == 1
        nbytes = {one.name: found.program.itemsize(one.name) for one in found.program.fields}
        assert moved.up <= sum(plan.layout_of(f).domain.n_cells * nbytes[f] for f in nbytes)
