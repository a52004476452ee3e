# SPDX-License-Identifier: MIT
"""The end of a job on all ranks when one of them fails, or leaves early.

`install_abort_hook` sees to exceptions that nobody catches, in any thread, Ctrl-C included, and
to ranks that end while others go on.  A process that runs alone ends as it would without.
"""
from __future__ import annotations

import atexit
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn, TypeAlias, Union, cast

from hitmap.agreement import agree, is_on_all_ranks
from hitmap.comm import Communicator, has_channel, running_world

if TYPE_CHECKING:
    from mpi4py import MPI

FAILED, INTERRUPTED = 1, 130    # exit codes
PATIENCE_S = 3.0    # how long a rank that has failed waits for others that should have, too
_ABORT_S = 5.0      # how long MPI may take to abort
_RELAY_S = 0.1      # for the launcher to pass on what has been printed: MPICH's may lose it
_POLL_S = 0.005
_TAG = 32766        # of messages on COMM_WORLD, where others may have messages, too
_Status: TypeAlias = Union[str, int, None]


# Files to be removed when the job ends at once: `hitmap.temporary` keeps it up to date.
unfinished: set[Path] = set()


def install_abort_hook() -> None:
    """Let a rank that fails end the whole job; in a process that runs alone change nothing.

    After an exception that nobody catches, in any thread, the rank, its host and the error are
    printed, the previous hook runs, and MPI aborts all ranks with code 1 (130 after Ctrl-C).  An
    error that all ranks raise together is printed by one of them.  A rank that reaches the end of
    its program while another one makes a collective call aborts the job; so does one that ends by
    `sys.exit` with another code than 0, unless the others follow within seconds.

    May be called again; the environment variable CONTROLLERS_ABORT_HOOK=0 keeps all as it is.
    """
    if os.environ.get("CONTROLLERS_ABORT_HOOK") == "0":
        return
    if not isinstance(sys.excepthook, _AbortHook):
        sys.excepthook = _AbortHook(sys.excepthook)
    if not isinstance(threading.excepthook, _ThreadAbortHook):
        threading.excepthook = _ThreadAbortHook(threading.excepthook)
    if not isinstance(sys.exit, _ExitHook):
        leaving = _ExitHook(sys.exit, os.getpid())
        sys.exit = leaving
        atexit.register(leaving.check)


def this_rank() -> str:
    """Who says something about itself, as messages begin."""
    world = running_world()
    host = socket.gethostname()
    return host if world is None else f"rank {world.rank} of {world.size} on {host}"


def end_job(code: int) -> NoReturn:
    """End all ranks of the job at once, from any thread, even where MPI no longer answers."""
    for path in tuple(unfinished):
        with suppress(OSError):
            path.unlink()
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):     # none, a closed pipe, closed
            stream.flush()
    world = running_world()
    if world is not None:
        time.sleep(_RELAY_S)
        last_resort = threading.Timer(_ABORT_S, os._exit, (code,))
        last_resort.daemon = True
        last_resort.start()
        world.Abort(code)
    os._exit(code)


def all_arrive(comm: Communicator, patience_s: float | None) -> bool:
    """Wait until all ranks are here, politely; False if they are not after `patience_s` seconds."""
    if comm.size == 1:
        return True
    return _completes([cast("MPI.Intracomm", comm).Ibarrier()], patience_s)


def _all_fail(world: MPI.Intracomm) -> bool:
    """Whether all ranks come here soon.

    By messages, which match no collective operation that other ranks may be in: no channel has
    been made yet, and MPI libraries mix up unlike operations on one communicator.
    """
    nothing = bytearray()
    others = [0] if world.rank > 0 else range(1, world.size)
    if world.rank > 0:
        world.Isend(nothing, 0, _TAG)
    if not _completes([world.Irecv(nothing, other, _TAG) for other in others], PATIENCE_S):
        return False
    if world.rank == 0:
        for other in others:
            world.Send(nothing, other, _TAG)
    return True


def _completes(requests: Sequence[MPI.Request], patience_s: float | None) -> bool:
    start = time.monotonic()
    pending = list(requests)
    while pending := [request for request in pending if not request.Test()]:
        if patience_s is not None and time.monotonic() - start > patience_s:
            return False
        time.sleep(_POLL_S)
    return True


@dataclass(frozen=True)
class _AbortHook:
    previous: Callable[[type[BaseException], BaseException, TracebackType | None], object]

    def __call__(
        self, kind: type[BaseException], error: BaseException, trace: TracebackType | None, /
    ) -> None:
        _abort(kind, error, lambda: self.previous(kind, error, trace))


@dataclass(frozen=True)
class _ThreadAbortHook:
    previous: Callable[[threading.ExceptHookArgs], object]

    def __call__(self, failure: threading.ExceptHookArgs, /) -> None:
        if issubclass(failure.exc_type, SystemExit):  # a way to end a thread, not an error
            self.previous(failure)
        else:
            _abort(failure.exc_type, failure.exc_value, lambda: self.previous(failure))


def _abort(
    kind: type[BaseException], error: BaseException | None, report: Callable[[], object]
) -> None:
    """Name the rank, report the error, abort all ranks; just report if there is one rank."""
    world = running_world()
    if world is None:
        report()
        return
    try:
        if is_on_all_ranks(error) and world.rank != 0:
            time.sleep(PATIENCE_S)      # rank 0 says it, and ends this one too
        print(f"{this_rank()}: {kind.__name__}: {error}", file=sys.stderr, flush=True)
        report()
    finally:
        end_job(INTERRUPTED if issubclass(kind, KeyboardInterrupt) else FAILED)


@dataclass
class _ExitHook:
    """Stands for `sys.exit`, to know the exit code when the process ends."""

    previous: Callable[[_Status], NoReturn]
    pid: int
    code: int = 0

    def __call__(self, status: _Status = None, /) -> NoReturn:
        self.code = status if isinstance(status, int) else int(status is not None)
        self.previous(status)

    def check(self) -> None:
        """Abort the job if other ranks go on; runs at the end of the process."""
        world = running_world()
        if world is None or os.getpid() != self.pid:    # a forked child is no rank
            return
        if has_channel(world):
            self._check_calls(world)
        elif self.code != 0 and not _all_fail(world):
            self._complain(f"ends with code {self.code} while other ranks go on")

    def _check_calls(self, world: Communicator) -> None:
        """Tell ranks that make a collective call that this one will not come."""
        if self.code != 0:
            text = f"ends with code {self.code} while other ranks go on"
            impatient = threading.Timer(PATIENCE_S, self._complain, (text,))
            impatient.daemon = True
            impatient.start()
        try:
            agree(world, "the end of the program", None)
        except ValueError as error:
            if world.rank != 0:
                time.sleep(PATIENCE_S)      # rank 0 has the same error
            self._complain(str(error))
        finally:
            if self.code != 0:
                impatient.cancel()

    def _complain(self, text: str) -> NoReturn:
        print(f"{this_rank()}: {text}", file=sys.stderr, flush=True)
        end_job(self.code or FAILED)
