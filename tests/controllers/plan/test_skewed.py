# SPDX-License-Identifier: MIT
"""Skewed chunks compute each cell of a launch once, and rows cross the link once."""
from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

import numpy as np
import pytest
from random_boundaries import bounded_program
from random_programs import ProgramCase, random_program
from sample import sample

from controllers import Stencil
from controllers.plan import ChunkPlan, Location, Operation, SkewedPlan, TileKey
from controllers.plan.chunks.chunk_margins import why_overlapped
from controllers.plan.chunks.chunk_size import traffic
from controllers.program.sweep import Version
from hitmap import Layout, Region, Shape

MAKERS = random_program, bounded_program


def suited(number: int) -> ProgramCase:
    """A random program that skewed chunks are for, from a number on."""
    cases = (MAKERS[number % 2](at) for at in itertools.count(number))
    return next(
        case for case in cases
        if not why_overlapped(case.program, Layout.bands(Shape.of_extent(case.extent), 2))
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
    found_bytes = traffic(plan)
    assert found_bytes.up <= traffic(whole).up and found_bytes.down == traffic(whole).down
    if not plan.periodic[0]:
        assert plan.n_phases == 1
        nbytes = {one.name: found.program.itemsize(one.name) for one in found.program.fields}
        assert found_bytes.up <= sum(plan.layout_of(f).domain.n_cells * nbytes[f] for f in nbytes)


@pytest.mark.parametrize("number", sample(range(100), 10))
def test_bytes_over_the_link_are_the_least_and_the_excess_that_is_printed(number: int) -> None:
    case = suited(number)
    for kind in (ChunkPlan, SkewedPlan):
        plan = planned(kind, case, random.Random(number))
        up, down = (moved(plan, verb) for verb in ("upload", "download"))
        cells = least_cells(plan)
        least = sum(case.program.itemsize(field) * n_cells for field, n_cells in cells.items())
        found = traffic(plan)
        assert (up, down) == (found.up, found.down)
        assert least == found.least and up + down == least + found.excess
        assert found.excess >= 0


def moved(plan: ChunkPlan, verb: str) -> int:
    """Bytes of all operations of a pass that bring something, or take it back."""
    found = 0
    for one in plan.operations:
        for access in (one.writes if verb == "upload" else one.reads) if one.verb == verb else ():
            assert isinstance(access.memory, TileKey)
            n_cells = sum(box.n_cells for box in access.cells)
            found += n_cells * plan.program.itemsize(access.memory.field)
    return found // plan.n_phases


def least_cells(plan: ChunkPlan) -> dict[str, int]:
    """Cells that a pass reads as they were before it, and those that it leaves computed, by field.

    Each cell of a version knows where it was as the pass began, -1 of what has been computed.
    """
    domains = {field: plan.layout_of(field).domain for field in plan.kept_fields}
    begun = {
        Version(field, 0): np.arange(domain.n_cells).reshape(domain.extent)
        for field, domain in domains.items()
    }
    first = {version: version.field for version in begun}
    read = {field: np.zeros(domain.n_cells, bool) for field, domain in domains.items()}
    for _ in range(plan.n_launches):
        cells, of = {**begun}, {**first}
        for sweep in plan.sweeps:
            for use in sweep.uses:
                domain = domains[use.version.field]
                box = sweep.read(use, sweep.cells) & domain
                seen = cells[use.version][box.slices(domain.lower)]
                read[of[use.version]][seen[seen >= 0]] = True
            for one in sweep.updates:
                version = one.version
                before = Version(version.field, version.number - 1)
                domain = domains[version.field]
                if not sweep.completes:
                    cells[version], of[version] = cells[before].copy(), of[before]
                cells[version][(sweep.cells & domain).slices(domain.lower)] = -1
        left = {field: plan.liveness.last(field) for field in domains}
        begun = {Version(field, 0): cells[version] for field, version in left.items()}
        first = {Version(field, 0): of[version] for field, version in left.items()}
    return {
        field: int(read[field].sum() + (begun[Version(field, 0)] < 0).sum()) for field in domains
    }


@pytest.mark.parametrize("n_slots", [1, 3, 4])
def test_a_chunk_comes_and_leaves_while_another_one_is_computed(n_slots: int) -> None:
    cross = Stencil.of("cross", [(-1, 1)] * 2, [0, 1, 0, 1, 4, 1, 0, 1, 0], 8).program("float32")
    layout = Layout.bands(Shape.of_extent((40, 8)), 5)
    where = [Location(shares_host=False)] * 5
    plan = SkewedPlan(cross, layout, (False, False), where, n_launches=4, n_slots=n_slots)
    operations = plan.operations
    rows = {one.number: one.writes[0].cells[0].lower[0] for one in operations}
    launches = [one.number for one in operations if one.verb == "launch" and one.place == 2]
    (come,) = (n for n in rows if operations[n].verb == "upload" and rows[n] == 8 * 3)
    left = [one.number for one in operations if one.verb == "download" and one.place == 1]
    assert come < launches[0]       # enqueued before
    for number in (come, *left):    # ... and not after any of them, directly or by others
        assert launches[0] > max(_before(operations, number))
    assert not {*left, come} & {n for one in launches for n in _before(operations, one)}


def _before(operations: Sequence[Operation], number: int) -> set[int]:
    """What is complete in a pass before an operation starts, in-order queues included."""
    found, todo = {number}, [number]
    while todo:
        one = operations[todo.pop()]
        queue = [n for n in range(one.number) if operations[n].lane == one.lane][-1:]
        after = [edge.number for edge in one.after if not edge.steps_back]
        todo += [n for n in (*queue, *after) if n not in found]
        found |= {*queue, *after}
    return found - {number}
