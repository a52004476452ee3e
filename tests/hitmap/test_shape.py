# SPDX-License-Identifier: MIT
from __future__ import annotations

import numpy as np
import pytest

from hitmap import Shape


def test_extent_is_0_on_an_empty_axis() -> None:
    box = Shape((0, 5), (4, 3))
    assert (box.extent, box.n_cells, box.empty) == ((4, 0), 0, True)


def test_of_extent_takes_numpy_integers_and_refuses_negative_ones() -> None:
    assert Shape.of_extent([np.int64(3), 4]) == Shape((0, 0), (3, 4))
    with pytest.raises(ValueError, match=r"0 or more.*-1"):
        Shape.of_extent((3, -1))
    with pytest.raises(TypeError):
        Shape.of_extent((3.5, 1))  # type: ignore[arg-type]


def test_ends_must_have_as_many_axes() -> None:
    with pytest.raises(ValueError, match="same number of axes, got 2 and 1"):
        Shape((0, 0), (1,))
    with pytest.raises(ValueError, match="same number of axes"):
        Shape((0, 0), (1, 1)) & Shape((0,), (1,))


def test_intersection_of_distant_boxes_is_empty() -> None:
    assert (Shape((0, 0), (2, 2)) & Shape((5, 0), (6, 2))).empty


def test_an_empty_box_is_inside_any_box_and_adds_nothing_to_a_hull() -> None:
    box, nothing = Shape((0, 0), (2, 2)), Shape((9, 9), (9, 12))
    assert nothing in box
    assert box.hull(nothing) == nothing.hull(box) == box


@pytest.mark.parametrize("beyond", [Shape((-1, 0), (2, 2)), Shape((0, 0), (2, 3))])
def test_a_box_that_leaves_another_is_not_inside_it(beyond: Shape) -> None:
    assert beyond not in Shape((0, 0), (2, 2))


def test_grow_undoes_itself() -> None:
    box = Shape((3, 4), (7, 9))
    assert box.grow((1, 2), (0, 5)).grow((-1, -2), (0, -5)) == box


def test_a_slab_may_lie_outside_of_its_box() -> None:
    assert Shape((0, 0), (6, 4)).slab(1, 4, 6) == Shape((0, 4), (6, 6))
    with pytest.raises(ValueError, match=r"axis.*0..1, got 2"):
        Shape((0, 0), (6, 4)).slab(2, 0, 1)


def test_slices_select_the_cells_of_the_box() -> None:
    whole = Shape((-2, 3), (4, 9))
    index = np.arange(whole.n_cells).reshape(whole.extent)
    assert index[Shape((-1, 5), (1, 6)).slices(whole.lower)].tolist() == [[8], [14]]
    assert index[Shape((2, 5), (1, 6)).slices(whole.lower)].size == 0


def test_slices_refuse_a_box_before_the_origin() -> None:
    with pytest.raises(ValueError, match=r"\[-1:1\] must not start before"):
        Shape((-1,), (1,)).slices((0,))
