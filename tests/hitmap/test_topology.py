# SPDX-License-Identifier: MIT
from __future__ import annotations

import pytest

from hitmap import Topology


@pytest.mark.parametrize("dims", [(5,), (3, 4), (2, 3, 2), (1, 2, 1, 3)])
def test_places_and_coordinates_are_one_to_one_in_c_order(dims: tuple[int, ...]) -> None:
    topology = Topology(dims)
    coordinates = [topology.coordinates(place) for place in range(topology.n_places)]
    assert coordinates == sorted(coordinates)
    assert [topology.place(at) for at in coordinates] == list(range(topology.n_places))


@pytest.mark.parametrize(
    ("n_places", "extent", "axes", "dims"),
    [
        (6, (100, 100), (0, 1), (3, 2)),  # a tie: more places along axis 0
        (6, (100, 101), (0, 1), (2, 3)),
        (7, (100, 100), (0, 1), (7, 1)),
        (12, (10, 1000), (0, 1), (1, 12)),
        (8, (64, 64, 64), (0, 1, 2), (2, 2, 2)),
        (8, (64, 64, 64), (1, 2), (1, 4, 2)),
        (4, (2, 1000, 1000), (0,), (4, 1, 1)),
        (6, (3, 4), (0, 1), (2, 3)),
        (4, (3, 1), (0, 1), (4, 1)),  # (2, 2) would leave two places without cells, not one
        (1, (0, 5), (0, 1), (1, 1)),
    ],
)
def test_balanced_cuts_where_the_surface_is_least(
    n_places: int, extent: tuple[int, ...], axes: tuple[int, ...], dims: tuple[int, ...]
) -> None:
    assert Topology.balanced(n_places, extent, axes).dims == dims


def test_neighbours_end_or_wrap() -> None:
    topology = Topology((3, 4))
    assert topology.neighbour(0, (1, 1), (False, False)) == 5
    assert topology.neighbour(0, (-1, 0), (False, True)) is None
    assert topology.neighbour(0, (-1, 0), (True, False)) == 8
    assert topology.neighbour(0, (0, 9), (False, True)) == 1
    assert Topology((1,)).neighbour(0, (1,), (True,)) == 0


def test_what_is_not_in_the_grid_is_refused() -> None:
    with pytest.raises(ValueError, match=r"at least 1 place.*\(2, 0\)"):
        Topology((2, 0))
    with pytest.raises(ValueError, match="0..5, got 6"):
        Topology((2, 3)).coordinates(6)
    with pytest.raises(ValueError, match=r"grid of \(2, 3\), got \(0, 3\)"):
        Topology((2, 3)).place((0, 3))
    with pytest.raises(ValueError, match="n_places: at least 1, got 0"):
        Topology.balanced(0, (4,), (0,))
    with pytest.raises(ValueError, match=r"axes.*got \(1,\)"):
        Topology.balanced(2, (4,), (1,))
