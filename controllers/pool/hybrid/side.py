# SPDX-License-Identifier: MIT
"""A side of a hybrid task: cores of the host, or a device."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from controllers.estimates.device_rates import class_rate
from controllers.pool.way import Way


@dataclass(frozen=True)
class Side:
    """A way to do a share: on a device, or on so many cores of the host for each of `n_jobs`.

    taken: cores that the sides before it compute with.  n_alone: jobs where no other side works,
    and the host has the cores of devices, too.
    """

    way: Way
    cores: int = 1
    n_jobs: int = 1
    taken: int = 0
    n_alone: int = 1


def key_of(sides: Sequence[Side], n: int) -> tuple[object, ...]:
    """Of tasks that they divide into n units."""
    return *((side.way, side.cores, side.n_jobs) for side in sides), n


def likely(sides: Sequence[Side]) -> int:
    """Which side is fastest, by the classes of devices; the first one of those that are alike."""
    devices = [side.way.lane.device for side in sides]
    rates = [side.cores * side.n_jobs if device is None else class_rate(device)
             for side, device in zip(sides, devices)]  # fmt: skip
    return rates.index(max(rates))
