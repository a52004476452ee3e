# SPDX-License-Identifier: MIT
"""How fast devices were in earlier runs, by the estimator (`controllers.estimates`).

Of each device the times of its steps, for each program and class of extents (to the nearest power
of 2), which only say with which shares a run begins; and those of sets of devices, for runs that
choose among them.
"""
from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Mapping, Sequence

from controllers.device import Device
from controllers.estimates.estimates import Estimates
from controllers.estimates.task_key import Case, TaskKey, units_of
from controllers.plan.rate import Rate
from controllers.program.program import Program
from controllers.program.structure import described
from hitmap.shape import Shape

# With settled shares, in the first window with any, and alone: the first one that is known says.
SETTLED, AT_FIRST, ON_SCRATCH = "steps", "steps of a first window", "steps on scratch"


class Remembered:
    """How long one device takes for a program on such a domain, as far as it is known.

    Parts of a device are apart, and devices of one name: others may use one of them.
    """

    def __init__(self, device: Device, program: Program, domain: Shape) -> None:
        self._estimates = Estimates.of_user()
        self._units = units_of(device)
        of = f"extents of 2^{extent_class(domain.extent)}"
        self._keys = {
            how: TaskKey.of(described(program), f"{how}, {of}", device)
            for how in (SETTLED, AT_FIRST, ON_SCRATCH)
        }

    def load(self) -> Rate | None:
        """The line of times with settled shares, else as above; None where nothing is known."""
        for key in self._keys.values():
            growth = self._estimates.growth(key)
            cases = self._estimates.history(key).cases
            if growth is not None and any(case.units == self._units for case in cases):
                return Rate(*growth.line(self._units))
        return None

    def store(self, seen: Mapping[int, float], how: str = SETTLED) -> None:
        """Keep how long steps have taken, by their cells, beside what is kept."""
        key = self._keys[how]
        for n_cells, seconds in seen.items():
            self._estimates.add(key, Case(n_cells, self._units), seconds)
        self._estimates.keep()


class RememberedSets:
    """Seconds of a step that sets of devices have shown, for a program on one domain.

    devices: all that there are.  known: as loaded, or as stored last.
    """

    def __init__(
        self, devices: Sequence[str], program: Program, domain: Shape, options: object
    ) -> None:
        self._estimates, self._devices = Estimates.of_user(), devices
        self._case = Case(domain.n_cells)
        self._task = described(program)
        self._variant = f"steps of {domain}, options {zlib.crc32(str(options).encode()):08x}"
        self.known: dict[tuple[int, ...], float] = {}

    def load(self, among: Iterable[tuple[int, ...]]) -> dict[tuple[int, ...], float]:
        """What is known of these: by the numbers of the devices, in order of rank."""
        for numbers in among:
            found = self._estimates.estimate(self._key(numbers), self._case)
            if found is not None:
                self.known[numbers] = found.seconds
        return self.known

    def store(self, seen: Mapping[tuple[int, ...], float]) -> None:
        """Keep what is new of it, beside what is kept."""
        for numbers, seconds in seen.items():
            if self.known.get(numbers) != seconds:
                self._estimates.add(self._key(numbers), self._case, seconds)
        self.known = dict(seen)
        self._estimates.keep()

    def _key(self, numbers: Sequence[int]) -> TaskKey:
        names = " and ".join(
            f"{name} ({number})" if self._devices.count(name) > 1 else name
            for number, name in ((number, self._devices[number]) for number in numbers)
        )
        of_all = zlib.crc32("\n".join(self._devices).encode())
        return TaskKey(self._task, self._variant, names, f"among devices {of_all:08x}")


def extent_class(extent: Sequence[int]) -> tuple[int, ...]:
    """Exponents of the powers of 2 nearest to the extents.

    >>> extent_class((1000, 1100, 1500))
    (10, 10, 11)
    """
    return tuple(round(math.log2(max(1, n))) for n in extent)
