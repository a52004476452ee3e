# SPDX-License-Identifier: MIT
"""Nodes that a job owns: nobody else is given anything of them while it does."""
from __future__ import annotations

import platform
import time
from typing import TYPE_CHECKING, cast

from controllers.arbiter.arbiter import Arbiter
from controllers.arbiter.held import Held
from controllers.arbiter.lease import Lease
from hitmap.agreement import raise_together
from hitmap.comm import Communicator, SerialCommunicator

if TYPE_CHECKING:
    from mpi4py import MPI

_POLL_S = 0.005


class OwnedNodes:
    """All nodes of a job, of which its first rank on each holds the whole, as the arbiter has it.

    folder: that of an arbiter for the job's own ranks; None where nobody is asked.
    timeout_s: of each node.  Collective, as is `close`; ValueError on all ranks where a node cannot
    be had.  Nodes are taken one after the other, in the order of their names: so two jobs never
    wait for each other.
    """

    def __init__(self, comm: Communicator, what: str = "", timeout_s: float | None = None) -> None:
        self._comm = comm
        self._lease: Lease | None = None
        here, problem = platform.node(), None
        nodes = comm.allgather(here)
        for node in sorted({*nodes}):
            if nodes.index(node) == comm.rank:
                try:
                    self._lease = Arbiter().acquire_node(timeout_s, what)
                except OSError as error:    # such as a TimeoutError
                    problem = f"{node} cannot be owned: {error}"
            _wait_for_all(comm)
        try:
            raise_together(comm, problem)
        except ValueError:
            self._release()
            raise
        inner = None if self._lease is None else self._lease.inner
        self.folder = comm.allgather(inner)[nodes.index(here)]
        self._held: Held | None = Held(whole=True)

    def close(self) -> None:
        """Others may have the nodes, when all ranks have come here.  Collective."""
        self._held = None
        _wait_for_all(self._comm)
        self._release()

    def _release(self) -> None:
        if self._lease is not None:
            self._lease.release()


def _wait_for_all(comm: Communicator) -> None:
    """A barrier that keeps no core busy, as it may take long."""
    if isinstance(comm, SerialCommunicator):
        return
    arrival = cast("MPI.Intracomm", comm).Ibarrier()
    while not arrival.Test():
        time.sleep(_POLL_S)
