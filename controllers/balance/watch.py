# SPDX-License-Identifier: MIT
"""How long launches take on the devices of a rank: in some steps of a window, their median."""
from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from controllers.device.event import Profile
from controllers.engine import Engine
from controllers.plan import Operation

LEFT_OUT = 2        # steps at the beginning of a window: caches hold what was before
MOST_PAIRS = 16     # of steps that are looked at in a run; to read times takes some 20 us each


class Watch:
    """A log of the launches of an engine; `times` are those of the window since `begin`."""

    def __init__(self, engine: Engine) -> None:
        self._launches = engine.ends.launches
        self._devices = {place: engine.plan.locations[place].controller
                         for place in engine.plan.places}  # fmt: skip
        self.begin()

    def begin(self) -> None:
        """A window begins."""
        self._left_out = 0
        self._profiles: dict[int, list[tuple[int, Profile]]] = {}
        self._times: dict[int, list[float]] = {}

    def steps(self, first: int, last: int) -> Iterator[int]:
        """All, or where there are many of them pairs at even distances."""
        skipped = min(LEFT_OUT - self._left_out, last - first + 1)
        self._left_out += skipped
        first += skipped
        interval = max(2, -(-(last - first + 1) // MOST_PAIRS))
        for pair in range(first, last + 1, interval):
            yield from range(pair, min(pair + 2, last + 1))

    def add(self, step: int, operation: Operation, profile: Profile) -> None:
        if operation.number in self._launches:
            device = self._devices[operation.place]
            self._profiles.setdefault(step, []).append((device, profile))

    def read(self) -> None:
        """All that was started is complete."""
        for profiles in self._profiles.values():
            sums: dict[int, float] = {}
            for device, profile in profiles:
                sums[device] = sums.get(device, 0.0) + (profile.end - profile.start) * 1e-9
            for device, seconds in sums.items():
                self._times.setdefault(device, []).append(seconds)
        self._profiles = {}

    @property
    def times(self) -> dict[int, float]:
        """Seconds of the launches of a step, by the number of the device."""
        return {device: median(found) for device, found in self._times.items()}
