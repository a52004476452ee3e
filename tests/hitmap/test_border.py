# SPDX-License-Identifier: MIT
from hypothesis import given
from hypothesis import strategies as st

from hitmap import Region, Shape
from hitmap.border import split_border


def boxes(n_axes: int) -> st.SearchStrategy[Shape]:
    ends = st.tuples(st.integers(0, 8), st.integers(0, 8)).map(sorted)
    return st.lists(ends, min_size=n_axes, max_size=n_axes).map(
        lambda axes: Shape(tuple(a for a, _ in axes), tuple(b for _, b in axes))
    )


@given(st.integers(1, 3).flatmap(lambda n: st.tuples(boxes(n), st.lists(boxes(n), max_size=4))))
def test_border_and_inner_part_are_the_box_and_the_border_holds_what_leaves(
    drawn: tuple[Shape, list[Shape]],
) -> None:
    box, leaving = drawn
    border, inner = split_border(box, [sent & box for sent in leaving])
    if box.empty:
        return
    assert sum(part.n_cells for part in border) + inner.n_cells == box.n_cells
    assert Region.of([*border, inner]) == Region.of([box])
    assert all((sent & box & inner).empty for sent in leaving)


def test_the_faces_of_a_block_are_cut_and_its_corners_with_them() -> None:
    box = Shape.of_extent((6, 5))
    leaving = [box.slab(0, 5, 6), box.slab(1, 0, 1), Shape((5, 0), (6, 1))]
    border, inner = split_border(box, leaving)
    assert str(inner) == "[0:5, 1:5]"
    assert sum(part.n_cells for part in border) == 10


def test_a_box_that_leaves_as_a_whole_has_no_inner_part() -> None:
    box = Shape.of_extent((2, 9))
    border, inner = split_border(box, [box.slab(0, 0, 1), box.slab(0, 1, 2)])
    assert border == (box,)
    assert inner.empty
