# SPDX-License-Identifier: MIT
"""The processes of a job, with MPI or without.

It and `hitmap.channel` are all that imports mpi4py, and only when a communicator is asked for:
importing `hitmap` neither needs an MPI library nor initialises one.  `SerialCommunicator` stands
for a process that runs alone.
"""
from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeVar, cast

import numpy as np
import numpy.typing as npt

from hitmap.launcher import OPEN_MPI, Launcher, launcher, library_name, own_mpiexec
from hitmap.segment import NoRoomError, check_room, unlink_own

if TYPE_CHECKING:
    from mpi4py import MPI

_T = TypeVar("_T")

Buffer = npt.NDArray[Any]  # contiguous; a message is its bytes

class Communicator(Protocol):
    """What this package uses of `mpi4py.MPI.Comm`; `SerialCommunicator` has it too."""

    @property
    def rank(self) -> int:
        """Number of this process."""

    @property
    def size(self) -> int:
        """Number of processes."""

    def bcast(self, obj: _T, /, root: int = 0) -> _T:
        """Root's object, on every rank.  Collective."""

    def allgather(self, obj: _T, /) -> list[_T]:
        """The objects of all ranks, on every rank.  Collective."""

    def Allgather(self, sendbuf: Buffer, recvbuf: Buffer, /) -> None:
        """The arrays of all ranks, one after the other, in `recvbuf` on every rank.  Collective."""

    def gather(self, obj: _T, /, root: int = 0) -> list[_T] | None:
        """The objects of all ranks on root, None elsewhere.  Collective."""

    def Barrier(self) -> None:
        """Wait for all ranks.  Collective."""

    def Abort(self, errorcode: int = 0, /) -> NoReturn:
        """End the processes of all ranks."""

    def Send(self, buf: Buffer, /, dest: int, tag: int = 0) -> None:
        """Send a contiguous array; it may be changed when this returns."""

    def Recv(
        self, buf: Buffer, /, source: int, tag: int = 0, status: MPI.Status | None = None
    ) -> None:
        """Receive into a contiguous array.  A short message passes unnoticed: see `receive`."""

    def Send_init(self, buf: Buffer, /, dest: int, tag: int = 0) -> MPI.Prequest:
        """A request that sends a contiguous array each time it is started."""

    def Recv_init(self, buf: Buffer, /, source: int, tag: int = 0) -> MPI.Prequest:
        """A request that receives into a contiguous array each time it is started."""

    def Dup(self) -> Communicator:
        """The same ranks, with messages that never mix with this one's.  Collective."""

    def Free(self) -> None:
        """Give back a communicator that `Dup` made.  Collective."""


class SerialCommunicator:
    """One process without MPI: rank 0 of 1, which has nobody to send messages to.

    >>> comm = SerialCommunicator()
    >>> comm.rank, comm.size, comm.allgather("here")
    (0, 1, ['here'])
    """

    rank = 0
    size = 1

    def bcast(self, obj: _T, /, root: int = 0) -> _T:
        self._check_rank(root)
        return obj

    def allgather(self, obj: _T, /) -> list[_T]:
        return [obj]

    def Allgather(self, sendbuf: Buffer, recvbuf: Buffer, /) -> None:
        recvbuf[...] = sendbuf

    def gather(self, obj: _T, /, root: int = 0) -> list[_T] | None:
        self._check_rank(root)
        return [obj]

    def Barrier(self) -> None:
        pass

    def Abort(self, errorcode: int = 0, /) -> NoReturn:
        """End this process at once, from any thread."""
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(errorcode)

    def Send(self, buf: Buffer, /, dest: int, tag: int = 0) -> None:
        self._refuse(dest)

    def Recv(
        self, buf: Buffer, /, source: int, tag: int = 0, status: MPI.Status | None = None
    ) -> None:
        self._refuse(source)

    def Send_init(self, buf: Buffer, /, dest: int, tag: int = 0) -> MPI.Prequest:
        self._refuse(dest)

    def Recv_init(self, buf: Buffer, /, source: int, tag: int = 0) -> MPI.Prequest:
        self._refuse(source)

    def Dup(self) -> SerialCommunicator:
        return SerialCommunicator()

    def Free(self) -> None:
        pass

    def _check_rank(self, rank: int) -> None:
        if rank != 0:
            raise ValueError(f"one process has only rank 0, got {rank}; start more with mpiexec")

    def _refuse(self, rank: int) -> NoReturn:
        self._check_rank(rank)
        raise ValueError("a process without MPI sends no messages; copy between its places")


def communicator_without_mpi() -> Communicator:
    """One process without MPI, for work that needs no other: unless a launcher started several.

    These share the default communicator, so that one of them can speak for all.
    """
    return SerialCommunicator() if _n_started() == 1 else default_communicator()


def _n_started() -> int:
    """How many processes a launcher says that it has started."""
    starter = launcher()
    return 1 if starter is None else starter.size


def default_communicator() -> Communicator:
    """MPI's COMM_WORLD where an MPI library can be started, else one process without MPI.

    RuntimeError if a launcher started several processes that cannot form one job: they would
    all do the same work, each believing to be alone.
    """
    starter = launcher()
    started = _n_started()
    try:
        library = _start_mpi(starter)
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:  # mpi4py raises the latter without a library
        if started > 1 and isinstance(error, NoRoomError):
            raise
        if started > 1:
            raise RuntimeError(
                f"a launcher started {started} processes, but mpi4py finds no MPI library "
                f"({error}); install the launcher's one, or start a single process"
            ) from error
        return SerialCommunicator()
    if starter and (not MPI.Is_initialized() or started > MPI.COMM_WORLD.size == 1):
        raise RuntimeError(
            f"the launcher of {starter.name} started {started} processes, but MPI sees 1; use the "
            f"mpiexec that belongs to the MPI library of mpi4py, {library_name(library)}: "
            f"{own_mpiexec(library)}"
        )
    return MPI.COMM_WORLD


def _start_mpi(starter: Launcher | None) -> str:
    """The version text of the MPI library, which is started unless it would abort the process."""
    import mpi4py
    if not was_started():
        check_room(1 if starter is None else starter.size)
    foreign = starter is not None and starter.name == OPEN_MPI
    if foreign and mpi4py.rc.initialize and "mpi4py.MPI" not in sys.modules:
        mpi4py.rc.initialize = False    # look at the library before it looks at the launcher
        mpi4py.rc.finalize = True
    from mpi4py import MPI

    library = MPI.Get_library_version().strip("\0")
    refused = starter is not None and starter.refused_by(library)
    if not MPI.Is_initialized() and not refused:
        MPI.Init_thread(getattr(MPI, f"THREAD_{mpi4py.rc.thread_level.upper()}"))
    unlink_own()
    return library


def mpi_library() -> str:
    """The version text of the MPI library; empty where none can be loaded."""
    try:
        return _start_mpi(launcher())
    except NoRoomError:
        import mpi4py
        mpi4py.rc.initialize = False
        from mpi4py import MPI

        return MPI.Get_library_version().strip("\0")
    except (ImportError, RuntimeError):
        return ""


def node_communicator(comm: Communicator) -> Communicator:
    """The ranks of `comm` on this host, in order; to be freed.  Collective."""
    if isinstance(comm, SerialCommunicator):
        return SerialCommunicator()
    from mpi4py import MPI

    return cast("MPI.Intracomm", comm).Split_type(MPI.COMM_TYPE_SHARED, key=comm.rank)


def node_ranks(comm: Communicator) -> tuple[int, int]:
    """My number among the ranks on this host, in order of rank, and how many they are.

    Collective.
    """
    node = node_communicator(comm)
    mine = node.rank, node.size
    node.Free()
    return mine


def message_status() -> MPI.Status:
    """A new status, for the calls that report on a message; needs an MPI library."""
    from mpi4py import MPI

    return MPI.Status()


def send(comm: Communicator, array: Buffer, target: int, tag: int = 0) -> None:
    """Send the bytes of a contiguous array; returns when it may be changed."""
    comm.Send(_as_bytes(array), dest=target, tag=tag)


def receive(comm: Communicator, array: Buffer, source: int, tag: int = 0) -> None:
    """Receive into a contiguous array; RuntimeError if the message is shorter than the array.

    MPI accepts a short message silently; one that is too long it refuses itself.
    """
    status = message_status()
    comm.Recv(_as_bytes(array), source=source, tag=tag, status=status)
    if status.Get_count() != array.nbytes:
        raise RuntimeError(
            f"rank {comm.rank}: the message from rank {source} with tag {tag} must have "
            f"{array.nbytes} bytes, got {status.Get_count()}; do all ranks use the same layout "
            f"and dtype?"
        )


def _as_bytes(array: Buffer) -> Buffer:
    if not array.flags.c_contiguous:
        raise ValueError(f"a message must be contiguous, got strides {array.strides}")
    return array.reshape(-1).view(np.uint8)


def threads_may_send() -> bool:
    """Whether any thread may call MPI at any time; needs an MPI library."""
    from mpi4py import MPI

    return MPI.Query_thread() == MPI.THREAD_MULTIPLE


def was_started() -> bool:
    """Whether this process has started MPI by now; it may have ended it since."""
    mpi = sys.modules.get("mpi4py.MPI")
    return mpi is not None and bool(mpi.Is_initialized())


def running_world() -> MPI.Intracomm | None:
    """COMM_WORLD if this process uses MPI by now and is not alone in it."""
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is None or not mpi.Is_initialized() or mpi.Is_finalized() or mpi.COMM_WORLD.size == 1:
        return None
    return cast("MPI.Intracomm", mpi.COMM_WORLD)
