# SPDX-License-Identifier: MIT
"""How fast devices were in earlier runs: kept where the fastest configurations are kept.

One entry for each device, driver, program and class of extents (to the nearest power of 2), which
only says with which shares a run begins; and one for all devices of a run that chooses among them.
"""
from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence

from controllers.device import Device
from controllers.kernel.winners import winners_folder
from controllers.plan.rate import Rate
from controllers.process.entry_cache import UNREADABLE, EntryCache
from controllers.program.program import Program
from controllers.program.structure import described
from hitmap.shape import Shape

_MAX_BYTES = 1 << 20


class Remembered:
    """The rate of one device for a program on such a domain, as far as it is known."""

    def __init__(self, device: Device, program: Program, domain: Shape) -> None:
        folder = winners_folder()
        self._entries = None if folder is None else EntryCache(folder, ".rate", _MAX_BYTES)
        self._key = (
            "rate 1", device.name, device.platform, device.version, str(device.compute_units),
            "whole" if device.part is None else str(device.part.index),
            described(program), str(extent_class(domain.extent)),
        )  # fmt: skip

    def load(self) -> Rate | None:
        """What is kept, if anything of use is."""
        content = None if self._entries is None else self._entries.load(self._key)
        if content is None:
            return None
        try:
            found = json.loads(content)
            rate = Rate(float(found["fixed_s"]), float(found["cell_s"]))
        except UNREADABLE:
            return None
        usable = 0 <= rate.fixed_s < math.inf and 0 < rate.cell_s < math.inf
        return rate if usable else None

    def store(self, rate: Rate) -> None:
        """Keep it, in place of the last one."""
        if self._entries is not None:
            content = {"fixed_s": rate.fixed_s, "cell_s": rate.cell_s}
            self._entries.store(self._key, json.dumps(content).encode())


class RememberedSets:
    """Seconds of a step that sets of devices have shown, for a program on one domain.

    known: as loaded, or as stored last.
    """

    def __init__(
        self, devices: Sequence[str], program: Program, domain: Shape, options: object
    ) -> None:
        folder = winners_folder()
        self._entries = None if folder is None else EntryCache(folder, ".devices", _MAX_BYTES)
        self._key = ("devices 1", *devices, described(program), str(domain), str(options))
        self.known: dict[tuple[int, ...], float] = {}

    def load(self) -> dict[tuple[int, ...], float]:
        """What is kept, if anything of use is: by the numbers of the devices, in order of rank."""
        content = None if self._entries is None else self._entries.load(self._key)
        if content is not None:
            try:
                found = {(*map(int, numbers),): float(s) for numbers, s in json.loads(content)}
            except UNREADABLE:
                found = {}
            self.known = {numbers: s for numbers, s in found.items() if 0 < s < math.inf}
        return self.known

    def store(self, seen: Mapping[tuple[int, ...], float]) -> None:
        """Keep it, in place of what was kept."""
        self.known = dict(seen)
        if self._entries is not None:
            self._entries.store(self._key, json.dumps([*seen.items()]).encode())


def extent_class(extent: Sequence[int]) -> tuple[int, ...]:
    """Exponents of the powers of 2 nearest to the extents.

    >>> extent_class((1000, 1100, 1500))
    (10, 10, 11)
    """
    return tuple(round(math.log2(max(1, n))) for n in extent)
