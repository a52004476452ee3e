# SPDX-License-Identifier: MIT
"""What each element of one memory holds, and which commands have touched it.

A shadow: kept beside the memory by the checker alone, from the operations that are executed, not
from what the plan believes.
"""
from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from controllers.check.ordering import VectorClock
from hitmap.strided import Strided

NEVER = -1      # the stamp of an element that nobody has written

Bits = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]


class Elements:
    """The elements of one memory.

    stamps: which value of which cell an element holds.  bits: that value, as a number.
    """

    def __init__(self, n_elements: int) -> None:
        self.stamps: Numbers = np.full(n_elements, NEVER, np.int64)
        self.bits: Numbers = np.zeros(n_elements, np.int64)
        self._written: Numbers = np.zeros(n_elements, np.int64)     # which command of ...
        self._writer: Numbers = np.zeros(n_elements, np.int64)      # ... which thread
        self._read: dict[int, Numbers] = {}     # by thread: which command has read it last

    def content(self, where: Strided) -> Numbers:
        """Stamps and bits of some elements, one row each."""
        return np.stack([where.view(self.stamps).ravel(), where.view(self.bits).ravel()])

    def put(self, where: Strided, content: Numbers) -> None:
        """New stamps and bits for some elements."""
        for row, values in zip((self.stamps, self.bits), content, strict=True):
            where.view(row)[...] = values.reshape(where.extent)

    def forget(self) -> None:
        """Nothing is in the memory, and nobody uses it."""
        self.stamps.fill(NEVER)
        self._written.fill(0)
        self._read.clear()

    def read(self, where: Strided, clock: VectorClock, thread: int) -> Bits:
        """Record a read; true where it need not come after the write of what it reads."""
        early = self._written_after(where, clock)
        if thread not in self._read:
            self._read[thread] = np.zeros_like(self.stamps)
        where.view(self._read[thread])[...] = clock[thread]
        return early

    def write(self, where: Strided, clock: VectorClock, thread: int) -> Bits:
        """Record a write; true where it need not come after all earlier reads and writes."""
        early = self._written_after(where, clock)
        for reader, counts in self._read.items():
            early |= where.view(counts) > clock[reader]
        where.view(self._written)[...] = clock[thread]
        where.view(self._writer)[...] = thread
        return early

    def busy(self, clock: VectorClock) -> Bits:
        """Where commands that need not be complete by `clock` read or write."""
        found: Bits = self._written > clock[self._writer]
        for reader, counts in self._read.items():
            found |= counts > clock[reader]
        return found

    def _written_after(self, where: Strided, clock: VectorClock) -> Bits:
        early: Bits = where.view(self._written) > clock[where.view(self._writer)]
        return early


def bits_of(values: npt.NDArray[Any]) -> Numbers:
    """The bits of numbers of up to 64 bits, as whole numbers."""
    words = np.ascontiguousarray(values).view(f"u{values.itemsize}")
    return words.astype(np.uint64).view(np.int64)
