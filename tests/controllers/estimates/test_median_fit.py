# SPDX-License-Identifier: MIT
"""No other sum of the terms is closer, and points that lie far off change nothing."""
from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.estimates.median_fit import median_fit


def loss(found: np.ndarray, terms: np.ndarray, seconds: np.ndarray, weights: np.ndarray) -> float:
    return float(np.abs(terms @ found / seconds - 1) @ weights)


@given(st.integers(0, 10**6), st.integers(1, 9), st.integers(1, 3))
@settings(max_examples=60)
def test_no_sum_without_negative_terms_is_closer(seed: int, n_points: int, n_terms: int) -> None:
    rng = np.random.default_rng(seed)
    terms = rng.uniform(0, 2, (n_points, n_terms)) * rng.integers(0, 2, (n_points, n_terms))
    seconds, weights = rng.uniform(0.5, 3, n_points), rng.uniform(0.2, 1, n_points)
    fit = median_fit(terms, seconds, weights)
    assert (fit.coefficients >= 0).all()
    best = loss(fit.coefficients, terms, seconds, weights)
    for _ in range(200):
        near = np.maximum(0, fit.coefficients + rng.normal(size=n_terms) * 10 ** rng.uniform(-6, 0))
        for other in (near, rng.uniform(0, 4, n_terms)):
            assert best <= loss(other, terms, seconds, weights) * (1 + 1e-7) + 1e-12


def test_four_points_of_ten_may_lie_anywhere_above() -> None:
    sizes = np.arange(1.0, 11.0)
    terms = np.stack([sizes, np.ones(10)], axis=1)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        seconds = 3 * sizes + 1
        seconds[rng.choice(10, 4, replace=False)] *= 10 ** rng.uniform(0.5, 6, 4)
        assert np.allclose(median_fit(terms, seconds, np.ones(10)).coefficients, [3, 1])


def test_where_no_term_fits_nothing_is_said() -> None:
    fit = median_fit(np.zeros((3, 2)), np.ones(3), np.ones(3))
    assert fit.coefficients.tolist() == [0, 0] and fit.error == 1 and fit.n_terms == 0
