# SPDX-License-Identifier: MIT
import numpy as np
import pytest

from hitmap import Shape
from hitmap.strided import Geometry, Strided, packed


@pytest.mark.parametrize("extent", [(7,), (5, 6), (3, 4, 5), (2, 3, 4, 5)])
def test_a_box_of_a_tile_is_the_cells_of_the_slices_of_its_array(extent: tuple[int, ...]) -> None:
    box = Shape.of_extent(extent).shift(tuple(range(-1, len(extent) - 1)))
    cells = box.grow((-1,) * len(extent), (0,) * len(extent))
    flat = np.arange(np.prod(extent))
    expected = flat.reshape(extent)[cells.slices(box.lower)]
    assert np.array_equal(Geometry.dense(box).strided(cells).view(flat), expected)


@pytest.mark.parametrize(
    ("cells", "contiguous"),
    [
        (Shape((0, 0), (2, 5)), True),      # whole rows
        (Shape((1, 1), (2, 4)), True),      # a part of one row
        (Shape((0, 1), (2, 4)), False),     # parts of two rows
        (Shape((0, 4), (3, 5)), False),     # a column
        (Shape((2, 4), (3, 5)), True),      # one cell
    ],
)
def test_contiguous_means_one_run_of_memory(cells: Shape, contiguous: bool) -> None:
    where = Geometry.dense(Shape.of_extent((3, 5))).strided(cells)
    numbers = where.view(np.arange(15)).ravel()
    assert where.contiguous == contiguous == bool((np.diff(numbers) == 1).all())


def test_packed_boxes_follow_one_another() -> None:
    parts = packed([Shape((0, 0), (2, 3)), Shape((5, 5), (6, 7))])
    assert [part.view(np.arange(8)).ravel().tolist() for part in parts] == [[*range(6)], [6, 7]]


def test_cells_outside_the_tile_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\[0:2\].*not in the tile"):
        Geometry.dense(Shape((1,), (4,))).strided(Shape((0,), (2,)))


def test_a_view_outside_the_memory_is_refused() -> None:
    with pytest.raises(ValueError, match="8 elements"):
        Strided(4, (1,), (5,)).view(np.arange(8))
