# SPDX-License-Identifier: MIT
"""Persistent messages that carry a checksum of what was sent, and tell whether it has arrived.

It travels right behind them, in a message of its own: nothing is copied for it, and the bytes go as
they would without it.  It is a CRC-32: one wrong bit, or a burst of up to 32, never passes, other
damage once in 2**32.
"""
from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from hitmap.comm import Buffer, Communicator

if TYPE_CHECKING:
    from mpi4py import MPI


class SealedCommunicator:
    """A communicator whose persistent messages are sealed; all else is done by `comm` itself.

    All ranks seal, or none does.  comm: of MPI.
    """

    def __init__(self, comm: Communicator) -> None:
        self._comm = comm

    def __getattr__(self, name: str) -> Any:
        return getattr(self._comm, name)

    def Send_init(self, buf: Buffer, /, dest: int, tag: int = 0) -> SealedSend:
        return SealedSend(self._comm, buf, dest, tag)

    def Recv_init(self, buf: Buffer, /, source: int, tag: int = 0) -> SealedReceive:
        return SealedReceive(self._comm, buf, source, tag)


class _Sealed:
    """Bytes and their seal; both have arrived, or left, when `Test` says so."""

    _request: MPI.Prequest
    _behind: MPI.Prequest       # the seal's, of the same peer and tag: MPI keeps them in order

    def __init__(self, buf: Buffer) -> None:
        self._bytes: Buffer = buf.view(np.uint8)
        self._seal = np.zeros(1, np.uint32)

    def Start(self) -> None:
        self._request.Start()
        self._behind.Start()

    def Test(self, status: MPI.Status) -> bool:
        """Whether all is done; `status` is then that of the bytes."""
        return self._behind.Test() and self._request.Test(status)

    def Free(self) -> None:
        self._request.Free()
        self._behind.Free()

    def _checksum(self) -> int:
        return zlib.crc32(self._bytes.data)


class SealedSend(_Sealed):
    """A request that sends a contiguous array and its seal each time it is started."""

    def __init__(self, comm: Communicator, buf: Buffer, dest: int, tag: int) -> None:
        super().__init__(buf)
        self._request = comm.Send_init(self._bytes, dest, tag)
        self._behind = comm.Send_init(self._seal, dest, tag)

    def Start(self) -> None:
        self._seal[0] = self._checksum()
        super().Start()


class SealedReceive(_Sealed):
    """A request that receives into a contiguous array each time it is started.

    is_altered: whether what has arrived last is not what was sent.
    """

    def __init__(self, comm: Communicator, buf: Buffer, source: int, tag: int) -> None:
        super().__init__(buf)
        self.is_altered = False
        self._request = comm.Recv_init(self._bytes, source, tag)
        self._behind = comm.Recv_init(self._seal, source, tag)

    def Test(self, status: MPI.Status) -> bool:
        if not super().Test(status):
            return False
        whole = status.Get_count() == self._bytes.size
        self.is_altered = whole and self._checksum() != int(self._seal[0])
        return True


def sealed(comm: Communicator) -> Communicator:
    """`comm` with seals on its persistent messages; itself where it is alone and sends none."""
    return comm if comm.size == 1 else cast("Communicator", SealedCommunicator(comm))
