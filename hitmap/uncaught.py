# SPDX-License-Identifier: MIT
"""Exceptions that nobody catches, in any thread: they end the job on all ranks.

A process that runs alone, and one that a rank has forked, end as they would without.
"""
from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType

from hitmap.abort import (
    FAILED,
    INTERRUPTED,
    PATIENCE_S,
    end_job,
    end_unconnected,
    say,
    started_alone,
)
from hitmap.agreement import hook_wanted, is_on_all_ranks
from hitmap.comm import Communicator, running_world
from hitmap.departure import watch_departure


def install_where_ranks_are(comm: Communicator | None = None) -> None:
    """Install the hook if this process is one of several ranks, of `comm` or as it looks."""
    several = comm is not None and comm.size > 1
    if several or running_world() is not None or started_alone() is not None:
        install_abort_hook()


def install_abort_hook() -> None:
    """Let a rank that fails end the whole job; in a process that runs alone change nothing.

    After an exception that nobody catches, in any thread, the rank, its host and the error are
    printed, the previous hook runs, and MPI aborts all ranks with code 1 (130 after Ctrl-C).  An
    error that all ranks raise together is printed by one of them.  A rank that reaches the end of
    its program while another one makes a collective call aborts the job; so does one that ends by
    `sys.exit` with another code than 0, or by `os._exit`, unless the others follow within
    seconds.  A rank that fails before MPI has been started ends the job by a signal.

    May be called again; the environment variable CONTROLLERS_ABORT_HOOK=0 keeps all as it is.
    """
    if not hook_wanted():
        return
    if not isinstance(sys.excepthook, _AbortHook):
        sys.excepthook = _AbortHook(sys.excepthook)
    if not isinstance(threading.excepthook, _ThreadAbortHook):
        threading.excepthook = _ThreadAbortHook(threading.excepthook)
    watch_departure()


@dataclass(frozen=True)
class _AbortHook:
    previous: Callable[[type[BaseException], BaseException, TracebackType | None], object]
    pid: int = field(default_factory=os.getpid)

    def __call__(
        self, kind: type[BaseException], error: BaseException, trace: TracebackType | None, /
    ) -> None:
        if os.getpid() != self.pid:
            self.previous(kind, error, trace)
        else:
            _abort(kind, error, lambda: self.previous(kind, error, trace))


@dataclass(frozen=True)
class _ThreadAbortHook:
    previous: Callable[[threading.ExceptHookArgs], object]
    pid: int = field(default_factory=os.getpid)

    def __call__(self, failure: threading.ExceptHookArgs, /) -> None:
        ends_the_thread = issubclass(failure.exc_type, SystemExit)      # not an error
        if ends_the_thread or os.getpid() != self.pid:
            self.previous(failure)
        else:
            _abort(failure.exc_type, failure.exc_value, lambda: self.previous(failure))


def _abort(
    kind: type[BaseException], error: BaseException | None, report: Callable[[], object]
) -> None:
    """Name the rank, report the error, end all ranks; just report if there is one rank."""
    world, starter = running_world(), started_alone()
    if world is None and starter is None:
        report()
        return
    code = INTERRUPTED if issubclass(kind, KeyboardInterrupt) else FAILED
    try:
        if world is not None and is_on_all_ranks(error) and world.rank != 0:
            time.sleep(PATIENCE_S)      # rank 0 says it, and ends this one too
        say(f"{kind.__name__}: {error}" + (", before MPI was started" if world is None else ""))
        report()
    finally:
        if starter is not None:
            end_unconnected()
        end_job(code)
