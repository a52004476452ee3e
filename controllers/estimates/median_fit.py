# SPDX-License-Identifier: MIT
"""Median regression: the sum of few terms, none of them negative, that is closest to most points.

Half of the points may lie anywhere above, as times of a machine that was busy do.  Among the best
sums there is one that goes through as many points as it has terms: all such are tried.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

MOST_POINTS = 24
TRIMMED = 0.2       # of the points, those farthest away, say nothing on how well a sum fits
_SINGULAR = 1e-9


@dataclass(frozen=True)
class Fit:
    """The coefficients of the terms, and how far points lie from their sum, as parts of them.

    error: the mean of the distances without the longest ones.  n_terms: that are not 0.
    """

    coefficients: Floats
    error: float

    @property
    def n_terms(self) -> int:
        return int(np.count_nonzero(self.coefficients))


def median_fit(terms: Floats, seconds: Floats, weights: Floats) -> Fit:
    """The least sum of weighted distances |fit / seconds - 1|.

    terms: [points][terms], none negative; of a term that is a multiple of another one the first is
    taken: sums of both need not be tried, as most tasks have one number of units.

    >>> sizes = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    >>> seconds = np.array([3.0, 5.0, 70.0, 9.0, 11.0])     # one was disturbed
    >>> median_fit(np.stack([sizes, np.ones(5)], axis=1), seconds, np.ones(5)).coefficients
    array([2., 1.])
    """
    rows = terms / seconds[:, None]
    best, found = np.inf, np.zeros(terms.shape[1])
    for chosen in _subsets(_unlike(terms)):
        part = rows[:, chosen]
        for tried in _through(part):
            losses = np.abs(tried @ part.T - 1) @ weights
            least = int(np.argmin(losses))
            if losses[least] < best * (1 - _SINGULAR):
                best = losses[least]
                found = np.zeros(terms.shape[1])
                found[list(chosen)] = tried[least]
    return Fit(found, trimmed_mean(np.abs(rows @ found - 1)))


def trimmed_mean(distances: Floats) -> float:
    """Without the longest fifth.

    >>> trimmed_mean(np.array([0.1, 90.0, 0.1, 0.1, 0.1]))
    0.1
    """
    kept = np.sort(distances)[: max(1, len(distances) - int(TRIMMED * len(distances)))]
    return float(np.mean(kept))


def _unlike(terms: Floats) -> list[int]:
    """The terms that are no multiple of an earlier one, and not 0.

    >>> _unlike(np.array([[1.0, 2.0, 1.0, 0.0], [2.0, 4.0, 1.0, 0.0]]))
    [0, 2]
    """
    found: dict[int, Floats] = {}
    for number, term in enumerate(terms.T):
        if term.any():
            scaled = term / term.max()
            if all(np.abs(scaled - seen).max() > _SINGULAR for seen in found.values()):
                found[number] = scaled
    return [*found]


def _subsets(terms: Sequence[int]) -> Iterator[Sequence[int]]:
    for n in range(1, len(terms) + 1):
        yield from combinations(terms, n)


def _through(rows: Floats) -> Iterator[Floats]:
    """The coefficients, none negative, of all sums that go through as many points as terms."""
    n_points, n_terms = rows.shape
    systems = rows[_groups(n_points, n_terms)]
    if n_terms == 1:
        found = 1 / systems[systems[:, 0, 0] > 0, :, 0]
    elif n_terms == 2:
        (a, b), (c, d) = systems.transpose(1, 2, 0)
        determinants = a * d - b * c
        apart = np.abs(determinants) > _SINGULAR * np.hypot(a, b) * np.hypot(c, d)
        found = (np.stack([d - b, a - c])[:, apart] / determinants[apart]).T
    else:
        scale = np.prod(np.sqrt(np.einsum("ijk,ijk->ij", systems, systems)), axis=1)
        systems = systems[np.abs(np.linalg.det(systems)) > _SINGULAR * scale]
        found = np.linalg.solve(systems, np.ones((len(systems), n_terms, 1)))[:, :, 0]
    found = found[(found >= 0).all(axis=1)]
    if len(found):
        yield found


@lru_cache(maxsize=3 * MOST_POINTS)
def _groups(n_points: int, n_terms: int) -> npt.NDArray[np.int64]:
    """The numbers of so many points, in all ways to choose them."""
    return np.array([*combinations(range(n_points), n_terms)], np.int64).reshape(-1, n_terms)
