# SPDX-License-Identifier: MIT
"""How the time of a task grows with its size, and shrinks with its units: up to three terms.

    seconds = a * size^p / units  +  b * size^p  +  c

a is what units divide among them, b what they do not, c what each execution costs.  All are found
by median regression, for each exponent p by itself; that exponent is taken whose sum fits best.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import log2
from statistics import median
from typing import NamedTuple

import numpy as np

from controllers.estimates.estimate import Estimate, spread
from controllers.estimates.history import SHORTEST_S, History, Times
from controllers.estimates.median_fit import MOST_POINTS, Fit, Floats, median_fit, trimmed_mean
from controllers.estimates.task_key import Case

EXPONENTS = (1.0, 0.5, 0.75, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0)
FINEST = 1 / 32     # between exponents
MOST_START = 0.9    # of an execution's time
NOISE = 1e-3        # what fits better than this, fits
_LEAST_SIZES = 3    # from which on exponents are tried
APART = 1.1         # times the least size: where all are nearer, they say nothing on how time grows


@dataclass(frozen=True)
class Growth:
    """The terms of one task on one device, as far as executions have told.

    error: by which part these lie off, without those farthest away.  largest: size, by which sizes
    are divided.  ranges: of sizes and of units, that were seen.
    """

    exponent: float
    fit: Fit
    error: float
    largest: float
    ranges: tuple[tuple[float, float], tuple[float, float]]
    n_points: int
    n_executions: int

    def estimate(self, case: Case) -> Estimate:
        """Of another case; the farther away it is, the less sure."""
        each, whole, start = self._coefficients
        size = (case.size / self.largest) ** self.exponent
        seconds = each * size / case.units + whole * size + start
        beyond = _beyond(case.size, *self.ranges[0]) + _beyond(case.units, *self.ranges[1])
        width = self._width * (1 + beyond)
        return Estimate.about(max(seconds, SHORTEST_S), width, "regression", self.n_executions)

    @cached_property
    def _coefficients(self) -> list[float]:     # as numbers: hundreds of estimates are asked for
        return [*map(float, self.fit.coefficients)]

    @cached_property
    def _width(self) -> float:
        """How unsure it is amid what was seen."""
        n_found = self.fit.n_terms + (self.exponent != 1)
        return max(NOISE, spread(self.error, self.n_points, n_found))

    def line(self, units: int) -> tuple[float, float]:
        """Seconds of an execution and of a unit of size, where it is taken for a line.

        From the least to the largest size seen; through 0 where that is no line of any device.
        """
        low, high = self.ranges[0]
        cases = [Case(low, units), Case(high, units)]
        least_s, most_s = _terms(cases, self.exponent, self.largest) @ self.fit.coefficients
        most_s = max(float(most_s), SHORTEST_S)
        each_s = (most_s - float(least_s)) / (high - low) if high > low else 0.0
        start_s = most_s - each_s * high
        if not 0 <= start_s <= MOST_START * most_s:
            start_s = 0.0
        return start_s, (most_s - start_s) / high


class _Points(NamedTuple):
    """What is fitted: for each case its median seconds, and a weight."""

    cases: list[Case]
    seconds: Floats
    weights: Floats


def growth_of(history: History) -> Growth | None:
    """What the cases of a history tell; None where there are none that take longer by size.

    >>> history = History()
    >>> for n in (1.0, 2.0, 3.0, 4.0, 5.0):
    ...     history.add(Case(n), 1 + 2 * n**3, when=0.0)
    >>> found = growth_of(history)
    >>> found.exponent, round(found.estimate(Case(6.0)).seconds, 6)
    (3.0, 433.0)
    """
    newest = sorted(history.cases.items(), key=lambda one: (one[1].newest, one[0]))[-MOST_POINTS:]
    found = dict(sorted(one for one in newest if one[0].size > 0))
    if not found:
        return None
    cases = [*found]
    exponent, fit = _best(found)
    sizes, units = [case.size for case in cases], [float(case.units) for case in cases]
    fitted = _terms(cases, exponent, max(sizes)) @ fit.coefficients
    off = [s / usual - 1 for usual, one in zip(fitted, found.values()) for s in one.seconds]
    return Growth(
        exponent, fit, trimmed_mean(np.abs(off)), max(sizes),
        ((min(sizes), max(sizes)), (min(units), max(units))), len(cases), len(off),
    )  # fmt: skip


def _best(found: Mapping[Case, Times]) -> tuple[float, Fit]:
    """The exponent and the terms that fit best."""
    sizes = sorted({case.size for case in found})
    apart = sizes[-1] >= APART * sizes[0]
    points = _Points(
        [*found], np.array([median(times.seconds) for times in found.values()]),
        np.sqrt([float(len(times.executions)) for times in found.values()]),
    )  # fmt: skip
    best = _fitted(points, EXPONENTS[0], with_start=apart)
    if apart and len(sizes) >= _LEAST_SIZES:
        best = min((_fitted(points, exponent) for exponent in EXPONENTS), key=_cost)
        step = 0.125
        while step >= FINEST:
            sides = (_fitted(points, best[0] + side) for side in (-step, step))
            best = min((best, *sides), key=_cost)
            step /= 2
    return best[:2]


def _fitted(
    points: _Points, exponent: float, *, with_start: bool = True
) -> tuple[float, Fit, int]:
    cases, seconds, weights = points
    terms = _terms(cases, exponent, max(case.size for case in cases))
    if not with_start:
        terms[:, 2] = 0
    return exponent, median_fit(terms, seconds, weights), len(cases)


def _cost(tried: tuple[float, Fit, int]) -> float:
    """Numbers that were found cost: of as many as there are points nothing is known."""
    exponent, fit, n_points = tried
    n_found = fit.n_terms + (exponent != 1)
    left = n_points - n_found
    return max(fit.error, NOISE) * (n_points / left if left > 0 else 10 * n_points * (1 - left))


def _terms(cases: list[Case], exponent: float, largest: float) -> Floats:
    sizes = (np.array([case.size for case in cases]) / largest) ** exponent
    units = np.array([float(case.units) for case in cases])
    return np.stack([sizes / units, sizes, np.ones(len(cases))], axis=1)


def _beyond(value: float, low: float, high: float) -> float:
    """How often a value has to be doubled or halved to come where something was seen.

    >>> _beyond(3.0, 2.0, 4.0), _beyond(16.0, 2.0, 4.0), _beyond(1.0, 2.0, 4.0)
    (0.0, 2.0, 1.0)
    """
    if value <= 0:
        return 1.0
    return max(0.0, log2(value / high), log2(low / value))
