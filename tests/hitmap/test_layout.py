# SPDX-License-Identifier: MIT
from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hitmap import Layout, Shape, Topology

DOMAIN = Shape((-3, 5), (10, 12))


def some_layouts() -> list[Layout]:
    pieces = (Shape((-3, 5), (2, 12)), Shape((2, 5), (10, 7)), Shape((2, 7), (10, 12)))
    return [
        *(Layout.bands(DOMAIN, n) for n in range(1, 16)),
        *(Layout.blocks(DOMAIN, n) for n in range(1, 16)),
        *(Layout.blocks(DOMAIN, n, axes=(1,)) for n in (1, 3, 9)),
        Layout.weighted(DOMAIN, [50, 1, 0, 7]),
        *(Layout.weighted_blocks(DOMAIN, [1, 0, 3.5, 2, 2, 9, 1][:n]) for n in range(1, 8)),
        *(Layout.tiled(DOMAIN, block) for block in (3, (5, 100), (1, 2))),
        Layout.bands(DOMAIN, 4, align=2),
        Layout.blocks(DOMAIN, 9, align=(4, 3)),
        Layout.weighted(DOMAIN, [50, 1, 0, 7], align=3),
        Layout.weighted_blocks(DOMAIN, [3, 1, 1, 2, 0, 1], align=(2, 3)),
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


@settings(max_examples=100, deadline=None)
@given(
    st.tuples(st.integers(-5, 5), st.integers(-5, 5), st.integers(-5, 5)),
    st.tuples(st.integers(0, 40), st.integers(0, 40), st.integers(0, 40)),
    st.lists(st.floats(0, 10), min_size=1, max_size=9).filter(any),
    st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9)),
)
def test_every_interior_cut_is_a_multiple_of_align(
    lower: tuple[int, ...], extent: tuple[int, ...], weights: list[float], align: tuple[int, ...]
) -> None:
    domain = Shape.of_extent(extent).shift(lower)
    n_places = len(weights)
    for layout in (
        Layout.bands(domain, n_places, align),
        Layout.blocks(domain, n_places, align=align),
        Layout.weighted(domain, weights, align),
        Layout.weighted_blocks(domain, weights, align),
    ):
        assert layout.n_places == n_places
        for box in layout.owned:
            for axis, step in enumerate(align):
                for cut in (box.lower[axis], box.upper[axis]):
                    inside = cut < domain.upper[axis]
                    assert (cut - domain.lower[axis]) % step == 0 or not inside


def test_align_is_one_number_for_all_axes_or_one_for_each() -> None:
    domain = Shape.of_extent((100, 100))
    assert Layout.blocks(domain, 4, align=32).owned[0].extent == (64, 64)
    assert Layout.blocks(domain, 4, align=(1, 32)).owned[0].extent == (50, 64)
    for wrong in (0, (4, 0), (4, 4, 4)):
        with pytest.raises(ValueError, match="align: a positive number, or one for each of 2"):
            Layout.bands(domain, 2, align=wrong)


def test_blocks_are_arranged_so_that_align_leaves_few_places_without_cells() -> None:
    layout = Layout.blocks(Shape.of_extent((100, 100)), 6, align=(1, 64))
    assert layout.topology == Topology((3, 2))


def area_of_cuts(layout: Layout) -> int:
    """Cells on one side of all cuts: half of what the boxes have more than the domain."""

    def surface(box: Shape) -> int:
        return sum(box.n_cells // count for count in box.extent)

    return sum(surface(box) for box in layout.owned if not box.empty) - surface(layout.domain)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 20), min_size=1, max_size=7).filter(any))
def test_weighted_blocks_have_the_least_cuts_of_all_ways_to_form_bands(weights: list[int]) -> None:
    total = sum(weights)
    domain = Shape.of_extent((total * 840, total * 840))     # all shares are whole rows, nearly
    n_places = len(weights)
    ways = []
    for n_bands in range(1, n_places + 1):
        for ends in itertools.combinations(range(1, n_places), n_bands - 1):
            groups = [weights[i:j] for i, j in itertools.pairwise([0, *ends, n_places])]
            rows = [domain.extent[0] * sum(group) / total for group in groups]
            used = [sum(map(bool, group)) for group in groups]
            inside = sum(high * max(0, n - 1) for high, n in zip(rows, used, strict=True))
            ways.append(inside + domain.extent[1] * (sum(map(bool, used)) - 1))
    least = min(ways)
    assert area_of_cuts(Layout.weighted_blocks(domain, weights)) == pytest.approx(least, abs=50)


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from([(4001,), (401, 507), (87, 99, 101), (31, 40, 37, 33)]),
    st.lists(st.floats(0.1, 10) | st.just(0.0), min_size=1, max_size=12).filter(any),
)
def test_weighted_blocks_are_in_proportion_up_to_one_cut_per_axis(
    extent: tuple[int, ...], weights: list[float]
) -> None:
    layout = Layout.weighted_blocks(Shape.of_extent(extent), weights)
    for weight, box in zip(weights, layout.owned, strict=True):
        share = layout.domain.n_cells * weight / math.fsum(weights)
        at_most, at_least = 1, 1
        for count in box.extent:    # every cut is at most half a cell off
            at_most, at_least = at_most * (count + 1), at_least * max(0, count - 1)
        if weight > 0:
            assert at_least <= share * (1 + 1e-9)
            assert share <= at_most * (1 + 1e-9)
        else:
            assert box.empty


def test_weighted_blocks_of_equal_weights_are_as_good_as_blocks() -> None:
    for extent, n_places in [((60, 60), 6), ((30, 60), 8), ((24, 24, 24), 8), ((12,) * 4, 16)]:
        domain = Shape.of_extent(extent)
        even = Layout.blocks(domain, n_places)
        weighted = Layout.weighted_blocks(domain, [1] * n_places)
        assert area_of_cuts(weighted) == area_of_cuts(even)
        assert len({box.n_cells for box in weighted.owned}) == 1


def test_a_prime_number_of_places_makes_bands_of_unlike_numbers_of_blocks() -> None:
    domain = Shape.of_extent((100, 100))
    layout = Layout.weighted_blocks(domain, [1] * 7)
    assert [box.extent[1] for box in layout.owned] == [33, 34, 33, 50, 50, 50, 50]
    assert area_of_cuts(layout) < area_of_cuts(Layout.blocks(domain, 7))


def test_weights_of_any_size_make_blocks_and_meaningless_ones_are_refused() -> None:
    domain = Shape.of_extent((4, 4))
    layout = Layout.weighted_blocks(domain, [0, 5e-324, 1e308, 1e308])
    assert [box.n_cells for box in layout.owned] == [0, 0, 8, 8]
    with pytest.raises(ValueError, match="finite and not negative"):
        Layout.weighted_blocks(domain, [1, -1])


def test_weighted_blocks_of_many_places_are_made_quickly() -> None:
    layout = Layout.weighted_blocks(Shape.of_extent((500, 600, 700)), [1, 2, 3, 4] * 250)
    assert layout.n_places == 1000


def test_a_tiled_layout_has_a_place_per_block_in_c_order() -> None:
    layout = Layout.tiled(DOMAIN, (6, 4))
    assert [str(box) for box in layout.owned] == [
        "[-3:3, 5:9]", "[-3:3, 9:12]", "[3:9, 5:9]", "[3:9, 9:12]", "[9:10, 5:9]", "[9:10, 9:12]",
    ]  # fmt: skip
    assert layout.topology == Topology((3, 2))
    assert Layout.tiled(Shape.of_extent((0, 4)), 3).n_places == 2


def test_blocks_that_are_too_many_are_refused() -> None:
    with pytest.raises(ValueError, match="cut .* cells into 250000; use larger"):
        Layout.tiled(Shape.of_extent((1000, 1000)), 2)
    with pytest.raises(ValueError, match="block: a positive number"):
        Layout.tiled(DOMAIN, 0)
