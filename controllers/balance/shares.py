# SPDX-License-Identifier: MIT
"""Shares of the cells with which all devices end a step at the same time."""
from __future__ import annotations

from collections.abc import Sequence

from controllers.plan.rate import Rate


def equal_times(rates: Sequence[Rate], n_cells: int, least: float) -> list[float]:
    """Cells of each device, by which the slowest step is as short as it can be.

    least: cells that each has at the least, an equal part of all where there are too few; such
    devices may end before the others.

    >>> equal_times([Rate(0, 0.5), Rate(0, 0.125)], 100, 0)
    [20.0, 80.0]
    >>> equal_times([Rate(0, 1), Rate(20, 1)], 100, 0)
    [60.0, 40.0]
    >>> equal_times([Rate(0, 1), Rate(0, 99)], 100, 10)
    [90.0, 10.0]
    """
    least = min(float(least), n_cells / len(rates))
    rest = [*range(len(rates))]
    found = [least] * len(rates)
    while rest:
        left = n_cells - least * (len(rates) - len(rest))
        overhead = sum(rates[one].fixed_s / rates[one].cell_s for one in rest)
        seconds = (left + overhead) / sum(1 / rates[one].cell_s for one in rest)
        for one in rest:
            found[one] = (seconds - rates[one].fixed_s) / rates[one].cell_s
        short = [one for one in rest if found[one] < least]
        for one in short:
            found[one] = least
        rest = [one for one in rest if one not in short]
        if not short:
            break
    return found
