# SPDX-License-Identifier: MIT
from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hitmap import split_even, split_weighted


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


@given(st.integers(0, 10**6), st.integers(1, 50), st.integers(1, 1000))
def test_even_parts_between_multiples_differ_by_at_most_one_of_them(
    count: int, parts: int, align: int
) -> None:
    cuts = split_even(count, parts, align)
    sizes = [high - low for low, high in itertools.pairwise(cuts)]
    assert (cuts[0], cuts[-1], len(sizes)) == (0, count, parts)
    assert all(cut % align == 0 or cut == count for cut in cuts)
    assert max(sizes) - min(sizes) <= align


@settings(deadline=None)
@given(st.integers(0, 40), st.integers(1, 4), st.integers(1, 9))
def test_no_other_even_cuts_at_multiples_have_a_smaller_largest_part(
    count: int, parts: int, align: int
) -> None:
    def largest(cuts: list[int]) -> int:
        return max(high - low for low, high in itertools.pairwise(cuts))

    allowed = [*range(0, count, align), count]
    ways = itertools.combinations_with_replacement(allowed, parts - 1)
    least = min(largest([0, *sorted(way), count]) for way in ways)
    assert largest(split_even(count, parts, align)) == least


@given(
    st.integers(0, 10**6),
    st.lists(st.floats(0, 1e6), min_size=1, max_size=20).filter(any),
    st.integers(1, 1000),
)
def test_weighted_cuts_at_multiples_are_the_nearest_ones(
    count: int, weights: list[float], align: int
) -> None:
    cuts = split_weighted(count, weights, align)
    assert (cuts[0], cuts[-1]) == (0, count)
    for cut, so_far in zip(cuts[1:], itertools.accumulate(weights), strict=True):
        exact = count * so_far / math.fsum(weights)
        assert cut % align == 0 or cut == count
        assert abs(cut - exact) <= align / 2 + 1e-6


def test_align_is_positive() -> None:
    with pytest.raises(ValueError, match="align.*got 0"):
        split_even(10, 2, 0)
    with pytest.raises(ValueError, match="align.*got -1"):
        split_weighted(10, [1, 2], -1)
