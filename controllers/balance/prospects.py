# SPDX-License-Identifier: MIT
"""What sets of devices would give: the seconds of a step, by a model of computing and exchange.

Of up to MOST_ALL devices all sets are prospects; of more each device alone, all of them, and the
set that the model has for the fastest one, with and without each of the others.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

from controllers.links.link import Links
from controllers.links.subset import Exchange, fastest_subset, together
from controllers.plan import Location
from controllers.plan.overlap import HAND_OVER_S, LINK_BYTES_PER_S
from controllers.plan.rate import Rate
from controllers.program.program import Program
from hitmap.shape import Shape

Devices: TypeAlias = "tuple[int, ...]"      # numbers in order of rank

MOST_ALL = 4
DOUBT, GUESS = 0.25, 0.8    # parts of a step by which a model may be wrong, or a guess by class
MOST_EXCHANGE = 4   # times what the model has
ON_HOST_S = 20e-6           # of an exchange within the host's memory
LAUNCH_S = {"gpu": 6e-6, "accelerator": 20e-6}      # of a step by itself; of others as below
_OTHER_LAUNCH_S = 20e-6


@dataclass(frozen=True)
class Prospect:
    """Some devices, and what a step with them takes: as the model has it, at least, at most."""

    devices: Devices
    seconds: float
    least_s: float
    most_s: float


def prospects(
    rates: Sequence[Rate], n_cells: int, exchange: Exchange, *, is_guess: bool
) -> list[Prospect]:
    """Of devices with such rates, those that promise most first.

    >>> found = prospects([Rate(0, 1e-9), Rate(0, 4e-9)], 10**6, lambda some: 1e-4, is_guess=False)
    >>> [(one.devices, round(1e3 * one.seconds, 3)) for one in found]
    [((0, 1), 0.9), ((0,), 1.0), ((1,), 4.0)]
    """
    doubt = GUESS if is_guess else DOUBT

    def alone_free(devices: Sequence[int]) -> float:
        return exchange(devices) if len(devices) > 1 else 0.0

    found = []
    for devices in _sets(rates, n_cells, alone_free):
        exchange_s = alone_free(devices)
        computing_s = together(rates, devices, n_cells, lambda some: 0.0).seconds
        found.append(Prospect(
            devices, computing_s + exchange_s, (1 - doubt) * computing_s,
            computing_s / (1 - doubt) + MOST_EXCHANGE * exchange_s,
        ))  # fmt: skip
    return sorted(found, key=lambda one: (one.seconds, len(one.devices)))


def _sets(rates: Sequence[Rate], n_cells: int, exchange: Exchange) -> Iterator[Devices]:
    every = range(len(rates))
    if len(rates) <= MOST_ALL:
        for n in range(1, len(rates) + 1):
            yield from combinations(every, n)
        return
    best = fastest_subset(rates, n_cells, exchange).devices
    changed = (tuple(sorted({*best} ^ {one})) for one in every)
    yield from dict.fromkeys([*((one,) for one in every), best, *filter(None, changed), (*every,)])


@dataclass(frozen=True)
class Exchanges:
    """What an exchange takes between devices in bands: that of the slowest with its neighbours.

    nbytes: of a border.  links: of all devices, where they are known; else about as on any machine.
    """

    locations: Sequence[Location]
    nbytes: float
    links: Links | None = None

    @classmethod
    def of(
        cls, program: Program, domain: Shape, locations: Sequence[Location],
        links: Links | None = None,
    ) -> Exchanges:  # fmt: skip
        """Of all fields of a program, cut across the first axis."""
        row = domain.n_cells // max(1, domain.extent[0])
        itemsizes = sum(program.itemsize(field.name) for field in program.fields)
        return cls(locations, max(program.reach[0]) * row * itemsizes, links)

    def __call__(self, devices: Sequence[int]) -> float:
        """Seconds, with devices in this order."""
        ways = [*zip(devices, devices[1:])]
        found = dict.fromkeys(devices, 0.0)
        for one, other in ways:
            for device in (one, other):
                found[device] += self._way(one, other) + self._way(other, one)
        return max(found.values())

    def _way(self, source: int, target: int) -> float:
        if self.links is not None:
            return self.links.between[source][target].seconds(self.nbytes)
        on_host = self.locations[source].shares_host and self.locations[target].shares_host
        latency_s = ON_HOST_S if on_host else HAND_OVER_S
        return latency_s + self.nbytes / LINK_BYTES_PER_S


def alone(rate: Rate, kind: str) -> Rate:
    """The rate of a device with what a step takes on the host beside its kernels.

    >>> alone(Rate(0.0, 1e-9), "gpu")
    Rate(fixed_s=6e-06, cell_s=1e-09)
    """
    return Rate(rate.fixed_s + LAUNCH_S.get(kind, _OTHER_LAUNCH_S), rate.cell_s)
