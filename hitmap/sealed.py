# SPDX-License-Identifier: MIT
"""Persistent messages that carry a checksum of what was sent, and tell whether it has arrived.

It travels with the bytes, in the same message, as MPI takes them from two addresses: nothing is
copied for it.  It is a CRC-32: one wrong bit, or a burst of up to 32, never passes, other damage
once in 2**32.
"""
from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from hitmap.comm import Buffer, Communicator

if TYPE_CHECKING:
    from mpi4py import MPI

SEAL_NBYTES = 4


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
    """Bytes and their seal, as one message."""

    def __init__(self, buf: Buffer) -> None:
        from mpi4py import MPI

        self._bytes: Buffer = buf.view(np.uint8)
        self._seal = np.zeros(1, np.uint32)
        addresses = [MPI.Get_address(self._bytes), MPI.Get_address(self._seal)]
        parts = [self._bytes.size, SEAL_NBYTES]
        self._type = MPI.BYTE.Create_hindexed(parts, addresses).Commit()
        self._message: Any = [MPI.BOTTOM, 1, self._type]

    def _checksum(self) -> int:
        return zlib.crc32(self._bytes.data)


class SealedSend(_Sealed):
    """A request that sends a contiguous array and its seal each time it is started."""

    def __init__(self, comm: Communicator, buf: Buffer, dest: int, tag: int) -> None:
        super().__init__(buf)
        self._request = comm.Send_init(self._message, dest, tag)

    def Start(self) -> None:
        self._seal[0] = self._checksum()
        self._request.Start()

    def Test(self, status: MPI.Status) -> bool:
        return self._request.Test(status)

    def Free(self) -> None:
        self._request.Free()
        self._type.Free()


class SealedReceive(_Sealed):
    """A request that receives into a contiguous array each time it is started.

    is_altered: whether what has arrived last is not what was sent.  A status of it says how many
    bytes have come, without the seal.
    """

    def __init__(self, comm: Communicator, buf: Buffer, source: int, tag: int) -> None:
        super().__init__(buf)
        self.is_altered = False
        self._request = comm.Recv_init(self._message, source, tag)

    def Start(self) -> None:
        self._request.Start()

    def Test(self, status: MPI.Status) -> bool:
        if not self._request.Test(status):
            return False
        from mpi4py import MPI

        arrived = status.Get_count() - SEAL_NBYTES
        status.Set_elements(MPI.BYTE, max(arrived, 0))
        whole = arrived == self._bytes.size
        self.is_altered = whole and self._checksum() != int(self._seal[0])
        return True

    def Free(self) -> None:
        self._request.Free()
        self._type.Free()


def sealed(comm: Communicator) -> Communicator:
    """`comm` with seals on its persistent messages; itself where it is alone and sends none."""
    return comm if comm.size == 1 else cast("Communicator", SealedCommunicator(comm))
