# SPDX-License-Identifier: MIT
"""Messages of which a bit flips on the way, after their checksum was made."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from hitmap.sealed import SealedSend


@contextmanager
def flipped(number: int, bit: int) -> Iterator[list[int]]:
    """In here that message of this rank, the first is 0, has a wrong bit; how many there were."""
    sent, start = [0], SealedSend.Start

    def started(message: SealedSend) -> None:
        if sent[0] == number:
            message._seal[0] = message._checksum()
            at = bit % (8 * message._bytes.size)
            message._bytes[at // 8] ^= 1 << at % 8
            super(SealedSend, message).Start()
        else:
            start(message)
        sent[0] += 1

    with patch.object(SealedSend, "Start", started):
        yield sent
