# SPDX-License-Identifier: MIT
"""A watchdog: when nothing ends for a while, every rank says where it is, and the job ends.

It is a thread of its own, which sees the others while they are blocked inside MPI or a driver.
The rank that waits for too long alarms the others by a message that their threads look for.
Where a driver keeps Python's lock so that no thread can run, `faulthandler`, which needs none,
prints the stacks and ends the process.
"""
from __future__ import annotations

import atexit
import faulthandler
import math
import os
import sys
import threading
import time
import traceback
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, cast

from controllers.call import Calls
from controllers.engine import Engine, activity, describe
from hitmap.abort import FAILED, end_job, this_rank
from hitmap.comm import Communicator, message_status, threads_may_send

if TYPE_CHECKING:
    from mpi4py import MPI

VARIABLE = "CONTROLLERS_WATCHDOG"
LOOK_S = 0.5        # between two looks, at most
GRACE_S = 3.0       # for all ranks to say where they are
_STDERR = 2


class Watched:
    """What a watchdog asks, from its own thread at any time: calls, and the engine in use."""

    def __init__(self, calls: Calls) -> None:
        self.calls = calls
        self.engine: Engine | None = None

    def busy(self) -> bool:
        """Whether a call is under way, which should end."""
        return self.calls.open > 0

    def activity(self) -> object:
        """Something that changes whenever a step, or a part of a call, ends."""
        return self.calls.n_events, () if self.engine is None else activity(self.engine)

    def describe(self) -> Iterator[str]:
        """The latest calls, then the operations of the plan."""
        yield from map(str, tuple(self.calls.last))
        if self.engine is not None:
            yield from describe(self.engine)


def limit(watchdog: float | str | None) -> float | None:
    """Seconds, or None for no watchdog, which 0 says as well.

    >>> limit("2.5"), limit(0), limit(None)
    (2.5, None, None)
    """
    try:
        seconds = float(watchdog or 0)
    except ValueError:
        seconds = -1
    if not 0 <= seconds < math.inf:
        raise ValueError(f"the watchdog takes seconds, 0 for none, got {watchdog!r}")
    return seconds or None


class Watchdog:
    """The job ends when nothing has ended for some time; until `close`, or `watched` is gone."""

    def __init__(self, limit_s: float, watched: Watched) -> None:
        self._limit_s = limit_s
        self._watched = weakref.ref(watched)
        self._alarm = _Alarm()
        self._look_s = min(LOOK_S, limit_s / 4)
        self._closing = threading.Event()
        self._arm()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
        self._thread.start()
        atexit.register(self.stop)      # no MPI after its end

    def connect(self, comm: Communicator) -> None:
        """From now on the ranks of `comm` alarm each other.  Collective."""
        self._alarm.connect(comm)

    def stop(self) -> None:
        """Look no more."""
        self._closing.set()
        self._thread.join()
        atexit.unregister(self.stop)

    def close(self) -> None:
        """Stop, and give back what belongs to MPI.  Collective."""
        self.stop()
        self._alarm.close()

    def _watch(self) -> None:
        last: object = None
        since = time.monotonic()
        try:
            while not self._closing.wait(self._look_s) and (watched := self._watched()):
                self._arm()
                now, activity_now = time.monotonic(), watched.activity()
                if activity_now != last or not watched.busy():
                    last, since = activity_now, now
                caller = self._alarm.heard()
                if caller is not None:
                    self._end(watched, f"rank {caller} waits for too long", 2 * GRACE_S)
                elif now - since > self._limit_s:
                    self._alarm.raise_()
                    text = f"no step or call has ended for {self._limit_s:g} s"
                    self._end(watched, text, GRACE_S)
                del watched     # or it would live until the next look
        finally:
            faulthandler.cancel_dump_traceback_later()

    def _arm(self) -> None:
        """Should the thread not run again, the process ends all the same."""
        after_s = self._limit_s + 4 * self._look_s
        faulthandler.dump_traceback_later(after_s, exit=True, file=_STDERR)

    def _end(self, watched: Watched, reason: str, grace_s: float) -> None:
        faulthandler.cancel_dump_traceback_later()
        lines = [f"{this_rank()}: {reason} (watchdog); the job ends, this rank is here:"]
        lines += [*_attempted(watched.describe), *_stacks()]
        os.write(_STDERR, ("\n".join(lines) + "\n").encode())   # in one piece
        time.sleep(grace_s)
        end_job(FAILED)


class _Alarm:
    """A message without content to all ranks, which threads send and look for."""

    def __init__(self) -> None:
        self._comm: MPI.Intracomm | None = None

    def connect(self, comm: Communicator) -> None:
        if comm.size > 1 and threads_may_send():
            self._comm = cast("MPI.Intracomm", comm.Dup())

    def raise_(self) -> None:
        if self._comm is not None:
            for rank in range(self._comm.size):
                if rank != self._comm.rank:
                    self._comm.Isend(bytearray(), rank)

    def heard(self) -> int | None:
        """The rank that has raised the alarm, if any has."""
        if self._comm is None:
            return None
        status = message_status()
        return status.Get_source() if self._comm.Iprobe(status=status) else None

    def close(self) -> None:
        """Collective."""
        if self._comm is not None:
            self._comm.Free()
            self._comm = None


def _attempted(describe: Callable[[], Iterable[str]]) -> list[str]:
    """The lines of `describe`; it looks at what other threads change meanwhile."""
    lines: list[str] = []
    try:
        for line in describe():
            lines.append(f"  {line}")
    except RuntimeError as error:   # of a container, or a driver
        lines.append(f"  (changed while it was looked at: {error})")
    return lines


def _stacks() -> Iterator[str]:
    """The stacks of all threads but this one."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for ident, frame in sys._current_frames().items():
        if ident != threading.get_ident():
            yield f"  stack of {names.get(ident, 'a thread')}, the innermost call last:"
            for line in "".join(traceback.format_stack(frame)).splitlines():
                yield f"  {line}"
