# SPDX-License-Identifier: MIT
"""Chunks, slots and steps of a pass are found beside all others that there are, in few trials."""
from __future__ import annotations

import itertools
import random

import pytest
from sample import sample
from timed_chunks import SPANS, Machine, made_machine

from controllers.plan.chunks.pipeline import Kind
from controllers.tuning.size_grid import SLOTS, TIMES, SizeGrid
from controllers.tuning.size_search import NOTCHES, Point, SizeSearch
from controllers.tuning.sizes import Size

MOST = 1024     # chunks of a place
NOISE = 0.003


def begun(seed: int) -> tuple[Machine, SizeGrid]:
    """A device that is made up, and any number of steps in as few chunks as that needs."""
    machine, rng = made_machine(seed), random.Random(seed)
    spans = [span for span in SPANS if machine.least(span, 3)]
    span = rng.choice([one for one in spans if (machine.least(one, 3) or MOST) < MOST / 16])
    first = Size(span, machine.least(span, 3) or 1, 3)
    return machine, SizeGrid(first, spans, machine.least, min(MOST, machine.rows))


def every(grid: SizeGrid) -> list[Size]:
    found = (grid.at(Point(*at)) for at in itertools.product(*map(range, grid.ends)))
    return [size for size in found if size is not None]


@pytest.mark.parametrize("seed", sample(range(20), 10))
def test_the_best_of_all_sizes_is_reached_in_under_a_tenth_of_the_trials(seed: int) -> None:
    machine, grid = begun(seed)
    rng, search, tried = random.Random(seed), SizeSearch(grid.ends, grid.first), set[Size]()
    while (point := search.next) is not None:
        size = grid.at(point)
        if size is None:
            search.refuse(point)
            continue
        tried.add(size)
        step_s = machine.step_s(size.span, size.chunks, size.slots)
        search.tell(point, step_s * rng.uniform(1 - NOISE, 1 + NOISE), machine.kind)
    found = grid.at(search.best)
    assert found is not None
    sizes = every(grid)
    times = {size: machine.step_s(size.span, size.chunks, size.slots) for size in sizes}
    assert min(times.values()) >= 0.97 * times[found]
    assert len(tried) < len({*sizes}) / 10 and len(sizes) > 300


def test_a_size_is_the_least_number_of_chunks_or_some_times_that() -> None:
    grid = SizeGrid(Size(4, 20, 3), (2, 4, 8), lambda span, slots: span * slots, 100)
    assert grid.ends == (3, len(TIMES), len(SLOTS)) and grid.first == (1, TIMES.index(1.5), 2)
    assert grid.at(grid.first) == Size(4, 20, 3)
    assert grid.at(Point(2, 1, 0)) == Size(8, 10, 1)
    assert grid.at(Point(2, len(TIMES) - 1, 5)) is None     # more than there may be
    alone = SizeGrid(Size(4, 20, 3), (), lambda span, slots: 4, 100, slots=(), times=(1,))
    assert alone.ends == (1, 1, 1) and alone.at(alone.first) == Size(4, 20, 3)
    small = SizeGrid(Size(4, 4, 3), (), lambda span, slots: 4, 100, fits=lambda size: False)
    assert small.at(small.first) == Size(4, 4, 3) and small.at(Point(0, 1, 2)) is None
    none = SizeGrid(Size(1, 4, 1), (1, 2), lambda span, slots: 4 if span == 1 else None, 100)
    assert none.at(Point(1, 0, 0)) is None


FIRST: list[tuple[Kind, Point]] = [
    ("copy", Point(5, 4, 3)), ("compute", Point(3, 4, 3)), ("neither", Point(4, 4, 4))
]


@pytest.mark.parametrize(("kind", "then"), FIRST)
def test_what_bounds_a_pass_says_where_to_go_first(kind: Kind, then: Point) -> None:
    search = SizeSearch(Point(9, 9, 9), Point(4, 4, 3))
    assert search.next == search.best == (4, 4, 3)
    search.tell(Point(4, 4, 3), 1.0, kind)
    assert search.next == then


def test_where_times_are_flat_it_looks_further_and_where_they_are_not_it_stops() -> None:
    for times, tried in ((1.01, NOTCHES), (1.1, NOTCHES[:1])):
        search, found = SizeSearch(Point(9, 1, 1), Point(0, 0, 0)), []
        search.tell(Point(0, 0, 0), 1.0, "copy")
        while (point := search.next) is not None:
            found.append(point.span)
            search.tell(point, times, "copy")
        assert found == [*tried] and search.best == (0, 0, 0)


def test_what_does_not_fit_is_left_and_nothing_is_tried_twice() -> None:
    search, found = SizeSearch(Point(3, 3, 3), Point(0, 0, 0)), []
    while (point := search.next) is not None:
        found.append(point)
        if point.slots:
            search.refuse(point)
        else:
            search.tell(point, 9.0 - sum(point), "neither")
    assert len(found) == len({*found}) and search.best == (2, 2, 0)
