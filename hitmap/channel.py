# SPDX-License-Identifier: MIT
"""Where ranks agree: a duplicate of each communicator, which nothing else uses."""
from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from hitmap.comm import Communicator, SerialCommunicator

if TYPE_CHECKING:
    from mpi4py import MPI


@dataclass
class Channel:
    """What agreements about a communicator need: a duplicate of it that nothing else uses."""

    comm: Communicator
    n_objects: int = 0      # that all ranks have made together
    is_new: bool = True     # nothing has been agreed on yet
    is_uneven: bool = False     # only some ranks have the abort hook
    given: tuple[bytes, list[Any]] | None = None    # digests and values of `all_values`


def channel(comm: Communicator) -> Channel:
    """The channel of `comm`, the same at every call; it is made at the first.  Collective then."""
    if isinstance(comm, SerialCommunicator):
        return Channel(comm)
    mine = cast("MPI.Intracomm", comm)
    found = mine.Get_attr(_channel_key())
    if not isinstance(found, Channel):
        found = Channel(mine.Dup())
        mine.Set_attr(_channel_key(), found)
    return found


def has_channel(comm: Communicator) -> bool:
    """Whether `channel` has been called for `comm`."""
    return cast("MPI.Intracomm", comm).Get_attr(_channel_key()) is not None


@cache
def _channel_key() -> int:
    """What a channel is attached to its communicator with."""
    from mpi4py import MPI

    def free(comm: MPI.Comm, key: int, found: Channel) -> None:
        if not MPI.Is_finalized():
            found.comm.Free()

    return MPI.Comm.Create_keyval(delete_fn=free)
