# SPDX-License-Identifier: MIT
"""Which devices pay: the set whose step is shortest, given their rates and what they exchange.

A device more makes shares smaller and exchanges more: it pays where what it takes off the others is
more than what its messages cost.  Shares are such that all that compute end together.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

from controllers.plan.rate import Rate

MOST_EXACT = 12     # devices of which all sets are considered


@dataclass(frozen=True)
class Subset:
    """Some devices in order, the cells of each, and the seconds of a step with them."""

    devices: tuple[int, ...]
    cells: tuple[float, ...]
    seconds: float


# The seconds of an exchange between some devices, in order; 0 for one alone.
Exchange = Callable[[Sequence[int]], float]


def fastest_subset(rates: Sequence[Rate], n_cells: int, exchange: Exchange) -> Subset:
    """The set of devices with the shortest step over so many cells; of equals the smaller one.

    With more than MOST_EXACT devices: from the best alone, one after another that helps most.

    >>> rates = [Rate(1e-5, 1e-11), Rate(1e-5, 1e-10)]
    >>> fastest_subset(rates, 10**8, lambda devices: 0.0).devices
    (0, 1)
    >>> fastest_subset(rates, 10**8, lambda devices: 2e-4 * (len(devices) > 1)).devices
    (0,)
    """
    if not rates:
        raise ValueError("rates: of at least 1 device, got none")
    every = range(len(rates))
    if len(rates) <= MOST_EXACT:
        sets = (some for n in range(1, len(rates) + 1) for some in combinations(every, n))
        return min((together(rates, some, n_cells, exchange) for some in sets), key=_seconds)
    best = min((together(rates, (one,), n_cells, exchange) for one in every), key=_seconds)
    while True:
        larger = (
            together(rates, tuple(sorted((*best.devices, one))), n_cells, exchange)
            for one in every if one not in best.devices
        )  # fmt: skip
        found = min(larger, key=_seconds, default=best)
        if found.seconds >= best.seconds:
            return best
        best = found


def together(
    rates: Sequence[Rate], devices: Sequence[int], n_cells: int, exchange: Exchange
) -> Subset:
    """A step of some devices, with the shares that let all of them end at the same time.

    A device whose fixed time exceeds that gets none, and the step is not shorter for it.
    """
    cells = _shares([rates[device] for device in devices], n_cells)
    busy = [rates[device].seconds(some) for device, some in zip(devices, cells) if some]
    return Subset(tuple(devices), tuple(cells), max(busy) + exchange(devices))


def _shares(rates: Sequence[Rate], n_cells: int) -> list[float]:
    """The cells of each device: fixed_s + cell_s * cells is the same for all that have any."""
    some = [*range(len(rates))]
    while True:
        speeds = [1 / rates[n].cell_s for n in some]
        fixed = sum(speed * rates[n].fixed_s for n, speed in zip(some, speeds))
        seconds = (n_cells + fixed) / sum(speeds)
        late = [n for n in some if rates[n].fixed_s >= seconds]
        if not late or len(some) == 1:
            break
        slowest = max(late, key=lambda n: rates[n].fixed_s)
        some.remove(slowest)
    found = [0.0] * len(rates)
    for n, speed in zip(some, speeds):
        found[n] = max(0.0, (seconds - rates[n].fixed_s) * speed)
    if len(some) == 1:
        found[some[0]] = float(n_cells)
    return found


def _seconds(subset: Subset) -> tuple[float, int]:
    return subset.seconds, len(subset.devices)
