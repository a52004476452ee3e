# SPDX-License-Identifier: MIT
from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hitmap import Layout, Shape, Topology, split_even, split_weighted

DOMAIN = Shape((-3, 5), (10, 12))


@given(st.integers(0, 10**12), st.integers(1, 50))
def test_even_parts_differ_by_at_most_one_cell(count: int, parts: int) -> None:
    cuts = split_even(count, parts)
    sizes = [high - low for low, high in itertools.pairwise(cuts)]
    assert (cuts[0], cuts[-1], len(sizes)) == (0, count, parts)
    assert max(sizes) - min(sizes) <= 1
    assert sizes == sorted(sizes, reverse=True)


@given(
    st.integers(0, 10**12),
    st.lists(st.floats(0, allow_infinity=False), min_size=1, max_size=20).filter(any),
)
def test_weighted_parts_are_within_a_cell_of_their_share(
    count: int, weights: list[float]
) -> None:
    cuts = split_weighted(count, weights)
    assert (cuts[0], cuts[-1]) == (0, count)
    for weight, (low, high) in zip(weights, itertools.pairwise(cuts), strict=True):
        share = count * (weight / max(weights)) / math.fsum(w / max(weights) for w in weights)
        assert abs(high - low - share) <= 1 + 1e-9 * count
        assert weight > 0 or low == high


@pytest.mark.parametrize("weights", [[1, math.nan], [math.inf], [2, -1], [0, 0], []])
def test_weights_that_mean_nothing_are_refused(weights: list[float]) -> None:
    with pytest.raises(ValueError, match="finite and not negative, with a positive sum"):
        split_weighted(10, weights)


def test_cells_cannot_be_split_in_no_parts() -> None:
    with pytest.raises(ValueError, match="got 4 in 0"):
        split_even(4, 0)
    with pytest.raises(ValueError, match="got -4"):
        split_weighted(-4, [1])


def some_layouts() -> list[Layout]:
    pieces = (Shape((-3, 5), (2, 12)), Shape((2, 5), (10, 7)), Shape((2, 7), (10, 12)))
    return [
        *(Layout.bands(DOMAIN, n) for n in range(1, 16)),
        *(Layout.blocks(DOMAIN, n) for n in range(1, 16)),
        *(Layout.blocks(DOMAIN, n, axes=(1,)) for n in (1, 3, 9)),
        Layout.weighted(DOMAIN, [50, 1, 0, 7]),
        Layout(DOMAIN, pieces),
        Layout(Shape.of_extent((0, 4)), (Shape.of_extent((0, 4)),) * 2),
    ]


@pytest.mark.parametrize("layout", some_layouts(), ids=lambda layout: str(layout.owned))
def test_every_cell_has_one_owner(layout: Layout) -> None:
    owner: dict[tuple[int, ...], int] = {}
    for place, box in enumerate(layout.owned):
        for cell in itertools.product(*map(range, box.lower, box.upper)):
            assert owner.setdefault(cell, place) == place
    assert len(owner) == layout.domain.n_cells
    for cell, place in owner.items():
        box = Shape(cell, tuple(i + 1 for i in cell))
        assert layout.owners(box) == [(place, box)]


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(some_layouts()[:-1]), st.data())
def test_owners_are_those_whose_boxes_meet_the_box(layout: Layout, data: st.DataObject) -> None:
    ends = [
        sorted(data.draw(st.tuples(st.integers(lo, hi), st.integers(lo, hi))))
        for lo, hi in zip(DOMAIN.lower, DOMAIN.upper, strict=True)
    ]
    box = Shape(*map(tuple, zip(*ends, strict=True)))
    met = [(place, owned & box) for place, owned in enumerate(layout.owned)]
    assert layout.owners(box) == [(place, part) for place, part in met if not part.empty]


def test_more_places_than_rows_leave_places_without_cells() -> None:
    layout = Layout.bands(Shape.of_extent((2, 5)), 4)
    assert [box.n_cells for box in layout.owned] == [5, 5, 0, 0]
    assert "place 3: no cells" in str(layout)


def test_bands_and_weighted_bands_have_a_topology_along_axis_0() -> None:
    assert Layout.bands(DOMAIN, 3).topology == Topology((3, 1))
    assert Layout.weighted(DOMAIN, [1, 2]).topology == Topology((2, 1))


def test_blocks_keep_to_the_order_of_their_topology() -> None:
    layout = Layout.blocks(Shape.of_extent((4, 6, 9)), 12)
    topology = layout.topology
    assert topology == Topology((2, 2, 3))
    for place, box in enumerate(layout.owned):
        for axis in range(3):
            step = tuple(int(a == axis) for a in range(3))
            after = topology.neighbour(place, step, (False,) * 3)
            if after is not None:
                assert layout.owned[after].lower[axis] == box.upper[axis]


def test_a_layout_of_many_places_is_made_and_searched_quickly() -> None:
    layout = Layout.bands(Shape.of_extent((10**6, 3)), 4000)
    assert layout.owners(Shape((250, 0), (251, 3))) == [(1, Shape((250, 0), (251, 3)))]


def test_owned_boxes_must_be_disjoint_and_cover_the_domain() -> None:
    line = Shape.of_extent((6,))
    with pytest.raises(ValueError, match=r"places 0 and 1 both own \[2:3\]"):
        Layout(line, (Shape((0,), (3,)), Shape((2,), (6,))))
    with pytest.raises(ValueError, match="own 5 of the 6 cells"):
        Layout(line, (Shape((0,), (3,)), Shape((4,), (6,))))
    with pytest.raises(ValueError, match=r"place 0 owns \[0:7\], outside"):
        Layout(line, (Shape((0,), (7,)),))
    with pytest.raises(ValueError, match="at least 1 place"):
        Layout(line, ())
    with pytest.raises(ValueError, match="has 2 places, the layout has 1"):
        Layout(line, (line,), Topology((2,)))


def test_owners_are_asked_for_inside_the_domain_only() -> None:
    with pytest.raises(ValueError, match=r"\[5:7\] must lie inside"):
        Layout.bands(Shape.of_extent((6,)), 2).owners(Shape((5,), (7,)))
