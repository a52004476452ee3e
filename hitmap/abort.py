# SPDX-License-Identifier: MIT
"""The end of a job on all ranks, at once: with MPI, and before MPI has been started."""
from __future__ import annotations

import faulthandler
import os
import resource
import socket
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from os import _exit  # this one: `hitmap.departure` stands for that of the module
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, cast

from hitmap.comm import Communicator, running_world, was_started
from hitmap.launcher import Launcher, launcher
from hitmap.segment import unlink_own

if TYPE_CHECKING:
    from mpi4py import MPI

FAILED, INTERRUPTED = 1, 130    # exit codes
PATIENCE_S = 3.0    # how long a rank that has failed waits for others that should have, too
_ABORT_S = 5.0      # how long MPI may take to abort
_RELAY_S = 0.1      # for the launcher to pass on what has been printed: MPICH's may lose it
_POLL_S = 0.005


# Files to be removed when the job ends at once: `hitmap.temporary` keeps it up to date.
unfinished: set[Path] = set()


def this_rank() -> str:
    """Who says something about itself, as messages begin."""
    world, starter = running_world(), started_alone()
    host = socket.gethostname()
    if world is not None:
        return f"rank {world.rank} of {world.size} on {host}"
    return host if starter is None else f"rank {starter.rank} of {starter.size} on {host}"


def started_alone() -> Launcher | None:
    """The launcher of this process, if it started others that MPI does not connect with it yet."""
    starter = launcher()
    if starter is None or starter.size == 1 or was_started() or not starter.holds_this_process():
        return None
    return starter


def say(text: str) -> None:
    """A line about this rank on standard error, if there is one."""
    with suppress(AttributeError, OSError, ValueError):     # none, a closed pipe, closed
        sys.stderr.write(f"{this_rank()}: {text}\n")
        sys.stderr.flush()


def end_job(code: int) -> NoReturn:
    """End all ranks of the job at once, from any thread, even where MPI no longer answers."""
    for path in tuple(unfinished):
        with suppress(OSError):
            path.unlink()
    unlink_own()
    _flush()
    world = running_world()
    if world is not None:
        time.sleep(_RELAY_S)
        last_resort = threading.Timer(_ABORT_S, _exit, (code,))
        last_resort.daemon = True
        with suppress(RuntimeError):    # newer Pythons start no threads at their end
            last_resort.start()
        world.Abort(code)
    _exit(code)


def end_unconnected() -> NoReturn:
    """End the job from a rank that has not started MPI, for which the others may wait.

    MPICH's launcher takes the code of such a rank for its own affair, and only its death by a
    signal for the end of the job; Open MPI's (5.0.11) after a code ends the ranks, but now and then
    not itself.
    """
    _flush()
    time.sleep(_RELAY_S)
    faulthandler.disable()      # what is to be said has been said
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    os.abort()


def all_arrive(comm: Communicator, patience_s: float | None) -> bool:
    """Wait until all ranks are here, politely; False if they are not after `patience_s` seconds."""
    if comm.size == 1:
        return True
    return completes([cast("MPI.Intracomm", comm).Ibarrier()], patience_s)


def completes(requests: Sequence[MPI.Request], patience_s: float | None) -> bool:
    """Whether all requests do, within `patience_s` seconds."""
    start = time.monotonic()
    pending = list(requests)
    while pending := [request for request in pending if not request.Test()]:
        if patience_s is not None and time.monotonic() - start > patience_s:
            return False
        time.sleep(_POLL_S)
    return True


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):     # none, a closed pipe, closed
            stream.flush()
