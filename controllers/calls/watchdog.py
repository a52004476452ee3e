# SPDX-License-Identifier: MIT
"""A watchdog: when nothing ends for a while, every rank says where it is, and the job may end.

It is a thread of its own, which sees the others while they are blocked inside MPI or a driver.
The rank that waits for too long asks the others when something has ended at theirs; if that was
too long ago as well, or they do not answer, it alarms them.  Where a driver keeps Python's lock
so that no thread can run, `faulthandler`, which needs none, prints the stacks and ends the process.

Without a limit nobody is ended: all that comes is a notice, once.
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
from contextlib import suppress

from controllers.calls.alarm import Alarm, Word
from controllers.calls.call import Calls
from controllers.engine import Engine, activity, describe
from controllers.process.errand import errands
from controllers.settings.watchdog import VARIABLE
from hitmap.abort import FAILED, end_job, this_rank
from hitmap.comm import Communicator

NOTICE_S = 30.0     # after which a run says where it is, once
LOOK_S = 0.5        # between two looks, at most
ANSWER_S = 2.0      # for other ranks to answer
GRACE_S = 3.0       # for all ranks to say where they are
_POLL_S = 0.02
_STDERR = 2
_REMEDY = f"Ctrl-C ends it, --watchdog SECONDS or {VARIABLE} limits such waits"


class Watched:
    """What a watchdog asks, from its own thread at any time: calls, and the engine in use."""

    def __init__(self, calls: Calls) -> None:
        self.calls = calls
        self.engine: Engine | None = None

    def busy(self) -> bool:
        """Whether a call is under way, which should end."""
        return self.calls.open > 0

    def gathers(self) -> bool:
        """Whether the call waits for the other ranks to make it too: who is late may be busy."""
        return self.calls.agreeing

    def activity(self) -> object:
        """Something that changes whenever a step, or a part of a call, ends."""
        return self.calls.n_events, () if self.engine is None else activity(self.engine)

    def describe(self) -> Iterator[str]:
        """The latest calls, what takes its time, then the operations of the plan."""
        yield from map(str, tuple(self.calls.last))
        if self.calls.open == 0:
            yield "outside of all calls"
        elif self.calls.agreeing:
            yield "waits for the other ranks to make the same call"
        yield from errands()
        if self.engine is not None:
            yield from describe(self.engine)


class Watchdog:
    """Says once where each rank is when nothing has ended for `NOTICE_S`; ends it after `limit_s`.

    Until `close`, or `watched` is gone.
    """

    def __init__(self, limit_s: float | None, watched: Watched) -> None:
        self._limit_s = math.inf if limit_s is None else limit_s
        self._watched = weakref.ref(watched)
        self._look_s = min(LOOK_S, self._limit_s / 4, NOTICE_S / 4)
        self._alarm = Alarm()
        self._last: object = None       # activity at the last look
        self._event = self._elsewhere = time.monotonic()    # when something ended, here and there
        self._since = self._event       # the same here, or the last look outside of all calls
        self._asked: float | None = None
        self._n_answers = 0
        self._is_noticed = False
        self._arming = threading.Lock()
        self._closing = threading.Event()
        if limit_s is not None:
            watched.calls.watch(self._arm, self._disarm)
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
        self._thread.start()
        atexit.register(self.stop)      # no MPI after its end

    def connect(self, comm: Communicator, number: int) -> None:
        """From now on the ranks of `comm`, which make object `number`, ask each other."""
        self._alarm.connect(comm, number)

    def stop(self) -> None:
        """Look no more."""
        self._closing.set()
        self._thread.join()

    def _watch(self) -> None:
        try:
            while not self._closing.wait(self._look_s) and (watched := self._watched()):
                self._look(watched)
                del watched     # or it would live until the next look
        finally:
            self._disarm()
            atexit.unregister(self.stop)

    def _look(self, watched: Watched) -> None:
        if watched.busy() and self._limit_s < math.inf:
            self._arm()
        now, activity_now = time.monotonic(), watched.activity()
        if activity_now != self._last or errands():
            self._last, self._event = activity_now, now
        self._since = max(self._since, self._event) if watched.busy() else now
        self._listen(watched, now)
        idle = now - max(self._since, self._elsewhere)
        ends = idle > self._limit_s and not watched.gathers()
        if not watched.busy() or not (ends or (idle > NOTICE_S and not self._is_noticed)):
            self._asked = None
        elif self._asked is None:
            self._asked, self._n_answers = now, 0
            self._alarm.tell_all(Word.ASK, idle)
        elif self._n_answers >= self._alarm.n_others or now - self._asked > ANSWER_S:
            self._asked = None
            self._alarm.tell_all(Word.ALARM if ends else Word.NOTICE, idle)
            if ends:
                text = f"no step or call has ended for {self._limit_s:g} s"
                self._end(watched, text, GRACE_S)
            self._notice(watched, f"no step or call has ended for {NOTICE_S:g} s")

    def _listen(self, watched: Watched, now: float) -> None:
        """Answer the other ranks, and do as they say."""
        for rank, word, seconds in self._alarm.heard():
            if word is Word.ASK:
                self._alarm.tell(rank, Word.AGE, now - self._event)
            elif word is Word.AGE:
                self._n_answers += 1
                self._elsewhere = max(self._elsewhere, now - seconds)
            elif word is Word.NOTICE:
                self._notice(watched, f"rank {rank} waits")
            elif word is Word.ALARM:
                self._end(watched, f"rank {rank} waits for too long", 2 * GRACE_S)

    def _arm(self) -> None:
        """Should the thread not run again while a call is under way, the process ends all the same.

        No call means no timer: a program may keep Python's lock for as long as it likes.
        """
        after_s = min(self._limit_s + ANSWER_S + 8 * self._look_s, threading.TIMEOUT_MAX)
        with self._arming:
            watched = self._watched()
            if watched is not None and watched.busy():
                faulthandler.dump_traceback_later(after_s, exit=True, file=_STDERR)

    def _disarm(self) -> None:
        if self._limit_s < math.inf:
            with self._arming:
                faulthandler.cancel_dump_traceback_later()

    def _notice(self, watched: Watched, reason: str) -> None:
        """Say where this rank is, once."""
        if not self._is_noticed:
            self._is_noticed = True
            _say(watched, f"{reason}; the job goes on, {_REMEDY}; this rank is here:")

    def _end(self, watched: Watched, reason: str, grace_s: float) -> None:
        faulthandler.cancel_dump_traceback_later()
        _say(watched, f"{reason} (watchdog); the job ends, this rank is here:")
        self._alarm.tell_all(Word.SAID, 0)
        have_said, start = 0, time.monotonic()
        while have_said < self._alarm.n_others and time.monotonic() - start < grace_s:
            have_said += sum(word is Word.SAID for _, word, _ in self._alarm.heard())
            time.sleep(_POLL_S)
        end_job(FAILED)


def _say(watched: Watched, text: str) -> None:
    if sys.__stderr__ is None:      # its descriptor may be that of another file by now
        return
    lines = [f"{this_rank()}: {text}", *_attempted(watched.describe), *_stacks()]
    with suppress(OSError):
        os.write(_STDERR, ("\n".join(lines) + "\n").encode())   # in one piece


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
