# SPDX-License-Identifier: MIT
"""Work that one rank of each node does for the others."""
from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar, cast

from hitmap.comm import Communicator, SerialCommunicator, node_communicator

if TYPE_CHECKING:
    from mpi4py import MPI

_T = TypeVar("_T")
_POLL_S = 0.005


def first_of_node(comm: Communicator, work: Callable[[], _T]) -> _T:
    """What `work` returns on the first rank of each node, on all ranks of that node.  Collective.

    The others wait without keeping a core busy.  An error of `work` is a RuntimeError on all
    ranks of its node.
    """
    if isinstance(comm, SerialCommunicator):
        return work()
    node = node_communicator(comm)
    done: list[_T] = []
    problem: str | None = None
    if node.rank == 0:
        try:
            done = [work()]
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
    arrival = cast("MPI.Intracomm", node).Ibarrier()
    while not arrival.Test():
        time.sleep(_POLL_S)
    done, problem = node.bcast((done, problem))
    node.Free()
    if problem is not None:
        raise RuntimeError(problem)
    return done[0]
