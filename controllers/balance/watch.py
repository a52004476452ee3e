# SPDX-License-Identifier: MIT
"""How long launches take on the devices of a rank: in some steps of a window."""
from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from controllers.device.event import Profile
from controllers.engine import Engine, Runner
from controllers.plan import Operation

LEFT_OUT = 2        # steps at the beginning of a window: caches hold what was before
MOST_REPEATS = 8    # of a part of a step
PAIRS = 16          # of steps that are looked at in a window; to read times takes some 20 us each


class Watch:
    """A log of the launches of an engine; `times` are of the window since `begin`.

    It looks at pairs of steps at even distances.
    """

    def __init__(self, engine: Engine, n_steps: int = 1) -> None:
        self._launches = engine.ends.launches
        self._devices = {place: engine.plan.locations[place].controller
                         for place in engine.plan.places}  # fmt: skip
        self.begin(n_steps)

    def begin(self, n_steps: int) -> None:
        """A window begins, probably of so many steps."""
        self.expect(n_steps)
        self._n_steps = 0
        self._profiles: dict[int, list[tuple[int, Profile]]] = {}
        self._times: dict[int, list[float]] = {}

    def expect(self, n_steps: int) -> None:
        """It will probably have so many in all."""
        self._interval = max(2, (n_steps - LEFT_OUT) // PAIRS)

    def steps(self, first: int, last: int) -> Iterator[int]:
        """Of the next ones, which are these."""
        for step in range(first, last + 1):
            number = self._n_steps - LEFT_OUT
            self._n_steps += 1
            if number >= 0 and number % self._interval < 2:
                yield step

    def add(self, step: int, operation: Operation, profile: Profile) -> None:
        if operation.number in self._launches:
            self.note(step, operation.place, profile)

    def within(self, engine: Runner, step: int) -> PartWatch:
        """Who watches a part of a step."""
        return PartWatch(self, engine, step)

    def note(self, step: int, place: int, profile: Profile) -> None:
        """A launch of a step at a place."""
        self._profiles.setdefault(step, []).append((self._devices[place], profile))

    def read(self) -> None:
        """All that was started is complete."""
        for profiles in self._profiles.values():
            sums: dict[int, float] = {}
            for device, profile in profiles:
                sums[device] = sums.get(device, 0.0) + (profile.end - profile.start) * 1e-9
            for device, seconds in sums.items():
                self._times.setdefault(device, []).append(seconds)
        self._profiles = {}

    def times(self, parts: Mapping[int, float]) -> dict[int, float]:
        """Seconds of the launches of a step, which such a part of the steps does not exceed.

        By the number of the device; a half where nothing is said.
        """
        return {
            device: float(np.quantile(found, parts.get(device, 0.5)))
            for device, found in self._times.items()
        }


class PartWatch:
    """The first launches of a part of a step, which is repeated as often as it asks for.

    All devices repeat it as often: so many tell how long each takes beside the others.
    """

    def __init__(self, whole: Watch, engine: Runner, step: int) -> None:
        self._whole, self._step = whole, step
        self._launches = engine.ends.launches

    def steps(self, first: int, last: int) -> range:
        """The first ones."""
        return range(first, min(last + 1, first + MOST_REPEATS))

    def add(self, step: int, operation: Operation, profile: Profile) -> None:
        if operation.number in self._launches:
            self._whole.note(self._step, operation.place, profile)

    def within(self, engine: Runner, step: int) -> PartWatch:
        """Parts have none."""
        raise AssertionError("a part of a step is run by one engine")
