# SPDX-License-Identifier: MIT
from __future__ import annotations

import pytest

from controllers.language.weights import Stencil
from controllers.placement.partition import (
    check_some_computed,
    domain_of,
    make_layout,
    periodic_axes,
)
from hitmap import Layout, Shape

MEAN = Stencil.of("mean", [(-1, 1), (0, 3)], [1] * 12, 12).program("float32")
DOMAIN = Shape.of_extent((12, 8))


def test_the_words_name_the_layouts_of_hitmap() -> None:
    assert make_layout(DOMAIN, 3, "bands", None).owned == Layout.bands(DOMAIN, 3).owned
    assert make_layout(DOMAIN, 6, "blocks", None).owned == Layout.blocks(DOMAIN, 6).owned
    weights = [1, 3, 2]
    weighted = make_layout(DOMAIN, 3, "weighted", weights)
    assert weighted.owned == Layout.weighted(DOMAIN, weights).owned
    assert [box.extent[0] for box in weighted.owned] == [2, 6, 4]


def test_without_a_word_weights_decide() -> None:
    assert make_layout(DOMAIN, 2, None, None).owned == Layout.bands(DOMAIN, 2).owned
    assert make_layout(DOMAIN, 2, None, [5, 1]).owned[0].extent == (10, 8)


def test_an_unknown_partition_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"bands, blocks, weighted.*'stripes'"):
        make_layout(DOMAIN, 2, "stripes", None)


@pytest.mark.parametrize(
    ("partition", "weights"), [("bands", [1, 1]), ("blocks", [1, 1]), ("weighted", None)]
)
def test_weights_and_the_word_weighted_come_together(
    partition: str, weights: list[float] | None
) -> None:
    with pytest.raises(ValueError, match=rf"weighted.*{partition!r}"):
        make_layout(DOMAIN, 2, partition, weights)


def test_a_wrong_number_of_weights_is_refused() -> None:
    with pytest.raises(ValueError, match=r"3 places .* got 2.*\[1, 2\].*order of rank"):
        make_layout(DOMAIN, 3, "weighted", [1, 2])


@pytest.mark.parametrize("weights", [[1.0, -1.0], [0.0, 0.0], [1.0, float("nan")]])
def test_weights_that_are_no_shares_are_refused(weights: list[float]) -> None:
    with pytest.raises(ValueError, match="not negative"):
        make_layout(DOMAIN, 2, "weighted", weights)


def test_a_field_has_less_than_2_to_the_63_bytes() -> None:
    assert domain_of(MEAN, (2**61 - 1, 1)).n_cells == 2**61 - 1
    with pytest.raises(ValueError, match="less than 2\\^63 bytes, got .*use a smaller one"):
        domain_of(MEAN, (2**61, 1))


@pytest.mark.parametrize(
    ("extent", "periodic", "axis"),
    [((2, 9), (False, False), 0), ((9, 3), (False, False), 1), ((2, 3), (True, False), 1)],
)
def test_a_domain_in_which_no_cell_would_be_computed_is_refused(
    extent: tuple[int, ...], periodic: tuple[bool, ...], axis: int
) -> None:
    with pytest.raises(ValueError, match=f"axis {axis}, .* {extent[axis]} cells.*larger field"):
        check_some_computed(MEAN, Shape.of_extent(extent), periodic)
    check_some_computed(MEAN, Shape.of_extent(extent), (True, True))
    check_some_computed(MEAN, Shape.of_extent((3, 4)), (False, False))


def test_one_boundary_is_that_of_all_axes() -> None:
    assert periodic_axes("periodic", 3) == (True, True, True)
    assert periodic_axes(["fixed"], 2) == (False, False)
    assert periodic_axes(["fixed", "periodic"], 2) == (False, True)
    assert periodic_axes(("periodic",), 1) == (True,)


def test_an_unknown_boundary_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"fixed, periodic.*'open'"):
        periodic_axes(["fixed", "open"], 2)


@pytest.mark.parametrize("words", [[], ["fixed"] * 2, ["fixed"] * 4])
def test_a_wrong_number_of_boundaries_is_refused(words: list[str]) -> None:
    with pytest.raises(ValueError, match=rf"3 axes .* got {len(words)}"):
        periodic_axes(words, 3)
