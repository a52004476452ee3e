# SPDX-License-Identifier: MIT
"""Regions against boolean masks over a small grid."""
from __future__ import annotations

import itertools
from collections.abc import Iterable
from random import Random

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hitmap import Region, Shape

GRID = 7


def mask(shapes: Iterable[Shape], n_axes: int) -> npt.NDArray[np.bool_]:
    """[GRID on each axis]: which cells are in any of the shapes."""
    cells = np.zeros((GRID,) * n_axes, bool)
    for shape in shapes:
        cells[shape.slices((0,) * n_axes)] = True
    return cells


def interval(at: tuple[int, int]) -> tuple[int, int]:
    return at[0], min(GRID, at[0] + at[1])


def boxes(n_axes: int) -> st.SearchStrategy[Shape]:
    ends = st.tuples(st.integers(0, GRID), st.integers(0, GRID)).map(interval)
    pairs = st.lists(ends, min_size=n_axes, max_size=n_axes)
    return pairs.map(lambda p: Shape(tuple(lo for lo, _ in p), tuple(hi for _, hi in p)))


@st.composite
def two_lists(draw: st.DrawFn) -> tuple[int, list[Shape], list[Shape]]:
    n_axes = draw(st.integers(1, 4))
    some = st.lists(boxes(n_axes), max_size=5)
    return n_axes, draw(some), draw(some)


@settings(max_examples=150, deadline=None)
@given(two_lists())
def test_operations_are_those_of_sets_of_cells(case: tuple[int, list[Shape], list[Shape]]) -> None:
    n_axes, ones, others = case
    one, other = Region.of(ones), Region.of(others)
    left, right = mask(ones, n_axes), mask(others, n_axes)
    for region, cells in (
        (one, left),
        (one | other, left | right),
        (one & other, left & right),
        (one - other, left & ~right),
    ):
        assert (mask(region.boxes, n_axes) == cells).all()
        assert region.n_cells == cells.sum(), "boxes must be disjoint"
        assert not any(box.empty for box in region.boxes)
        assert list(region.boxes) == sorted(region.boxes, key=lambda box: box.lower)
    assert (one == other) == bool((left == right).all())
    assert (one | other) - other == one - other
    for box in others:
        assert (box in one) == bool(left[box.slices((0,) * n_axes)].all())


@settings(max_examples=50, deadline=None)
@given(two_lists(), st.randoms(use_true_random=False))
def test_equal_cells_make_equal_regions(
    case: tuple[int, list[Shape], list[Shape]], random: Random
) -> None:
    n_axes, shapes, _ = case
    cells = [tuple(at) for at in np.argwhere(mask(shapes, n_axes)).tolist()]
    assume(len(cells) <= 300)  # for speed
    random.shuffle(cells)
    region = Region.of(Shape(at, tuple(i + 1 for i in at)) for at in cells)
    assert region == Region.of(shapes)
    assert hash(region) == hash(Region.of(shapes))


def test_a_dense_set_of_cells_is_one_box() -> None:
    offsets = itertools.product(range(-2, 3), repeat=4)
    region = Region.of(Shape(at, tuple(i + 1 for i in at)) for at in offsets)
    assert region.boxes == (Shape((-2,) * 4, (3,) * 4),)


def test_a_frame_is_cut_along_axis_0_first() -> None:
    frame = Region.of([Shape.of_extent((4, 4, 4))]) - Shape((1, 1, 1), (3, 3, 3))
    assert str(frame) == (
        "[0:1, 0:4, 0:4] + [1:3, 0:1, 0:4] + [1:3, 1:3, 0:1] + [1:3, 1:3, 3:4] + "
        "[1:3, 3:4, 0:4] + [3:4, 0:4, 0:4]"
    )


def test_shift_and_hull() -> None:
    region = Region.of([Shape((0, 0), (1, 1)), Shape((3, 5), (4, 6))])
    assert region.shift((1, -1)).hull == Shape((1, -1), (5, 5))


def test_an_empty_region_has_no_cells_and_no_hull() -> None:
    nothing = Region.of([Shape((3, 3), (3, 9))])
    assert (nothing.empty, nothing.n_cells, str(nothing)) == (True, 0, "no cells")
    with pytest.raises(ValueError, match="no hull"):
        _ = nothing.hull


def test_boxes_must_have_as_many_axes() -> None:
    with pytest.raises(ValueError, match=r"same number of axes.*\[0:1\]"):
        Region.of([Shape((0,), (1,)), Shape((0, 0), (1, 1))])
