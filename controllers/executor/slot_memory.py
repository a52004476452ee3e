# SPDX-License-Identifier: MIT
"""Slots: device memory through which the chunks of one call after another pass.

Calls are done one by one, so that all use the same memory, each divided as its arrays need.
"""
from __future__ import annotations

from collections.abc import Sequence

import pyopencl as cl

from controllers.memory.allocation import device_memory
from controllers.memory.ledger import Ledger

ALIGNMENT = 512     # bytes; of parts of a buffer, more than any driver asks for


def aligned_nbytes(nbytes: int) -> int:
    """What a part takes of a slot.

    >>> aligned_nbytes(1), aligned_nbytes(1024)
    (512, 1024)
    """
    return -(-max(1, nbytes) // ALIGNMENT) * ALIGNMENT


def slot_nbytes(parts: Sequence[int]) -> int:
    """What a slot of such parts takes."""
    return sum(map(aligned_nbytes, parts))


class SlotMemory:
    """The slots of one device, each a buffer as large as any call has needed so far."""

    def __init__(self, context: cl.Context, ledger: Ledger) -> None:
        self._context, self._ledger = context, ledger
        self._slots: list[cl.Buffer] = []

    @property
    def nbytes(self) -> int:
        """Bytes of all slots."""
        return sum(slot.size for slot in self._slots)

    def has_room(self, slots: Sequence[Sequence[int]]) -> bool:
        """Whether there are such slots; each is given as the bytes of its parts."""
        needed = [slot_nbytes(parts) for parts in slots]
        return len(needed) <= len(self._slots) and all(
            nbytes <= slot.size for nbytes, slot in zip(needed, self._slots)
        )

    def make(self, slots: Sequence[Sequence[int]]) -> None:
        """Room for these; nobody may use the slots of before.  `MemoryCapError` without memory."""
        self.drop()
        for parts in slots:
            nbytes = slot_nbytes(parts)
            self._slots.append(device_memory(self._context, self._ledger, nbytes, "tiles"))

    def parts(self, slots: Sequence[Sequence[int]]) -> list[list[cl.Buffer]]:
        """The parts of each slot, one after another."""
        found = []
        for slot, parts in zip(self._slots, slots):
            starts = [slot_nbytes(parts[:number]) for number in range(len(parts))]
            found.append([
                slot.get_sub_region(start, max(1, nbytes))
                for start, nbytes in zip(starts, parts)
            ])  # fmt: skip
        return found

    def drop(self) -> None:
        """Give all memory back; nobody may use it."""
        self._slots.clear()
