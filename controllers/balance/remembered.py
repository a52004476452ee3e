# SPDX-License-Identifier: MIT
"""How fast devices were in earlier runs: kept where the fastest configurations are kept.

One entry for each device, driver, program and class of extents (to the nearest power of 2).  It
only says with which shares a run begins.
"""
from __future__ import annotations

import json
import math
from collections.abc import Sequence

from controllers.balance.speed import Speed
from controllers.device import Device
from controllers.kernel.winners import winners_folder
from controllers.process.entry_cache import UNREADABLE, EntryCache
from controllers.program.program import Program
from controllers.program.structure import described
from hitmap.shape import Shape

_MAX_BYTES = 1 << 20


class Remembered:
    """The speed of one device for a program on such a domain, as far as it is known."""

    def __init__(self, device: Device, program: Program, domain: Shape) -> None:
        folder = winners_folder()
        self._entries = None if folder is None else EntryCache(folder, ".speed", _MAX_BYTES)
        self._key = (
            "speed 1", device.name, device.platform, device.version, str(device.compute_units),
            "whole" if device.part is None else str(device.part.index),
            described(program), str(extent_class(domain.extent)),
        )  # fmt: skip

    def load(self) -> Speed | None:
        """What is kept, if anything of use is."""
        content = None if self._entries is None else self._entries.load(self._key)
        if content is None:
            return None
        try:
            found = json.loads(content)
            speed = Speed(float(found["overhead_s"]), float(found["cell_s"]))
        except UNREADABLE:
            return None
        usable = 0 <= speed.overhead_s < math.inf and 0 < speed.cell_s < math.inf
        return speed if usable else None

    def store(self, speed: Speed) -> None:
        """Keep it, in place of the last one."""
        if self._entries is not None:
            content = {"overhead_s": speed.overhead_s, "cell_s": speed.cell_s}
            self._entries.store(self._key, json.dumps(content).encode())


def extent_class(extent: Sequence[int]) -> tuple[int, ...]:
    """Exponents of the powers of 2 nearest to the extents.

    >>> extent_class((1000, 1100, 1500))
    (10, 10, 11)
    """
    return tuple(round(math.log2(max(1, n))) for n in extent)
