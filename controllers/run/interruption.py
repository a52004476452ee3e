# SPDX-License-Identifier: MIT
"""What ends a run early: Ctrl-C on some ranks, or an error of `progress` on one.

Neither breaks the run off: it ends at a step that all places of all ranks share, and then raises
on all of them, so that the field can be saved and the run goes on.  A second Ctrl-C does not wait
for that.
"""
from __future__ import annotations

import os
import signal
import threading
from types import FrameType, TracebackType
from typing import Any

from controllers.engine import Course, Progress
from controllers.engine.receiving import hearing
from controllers.integrity.message_error import MessageError
from controllers.run.listening import CTRL_C, DUE, SIGNALS, Listening, Stopped
from hitmap.agreement import on_all_ranks
from hitmap.comm import Communicator

_HEARD = b"\nCtrl-C: the run ends at the next step that all share; again: at once, the field torn\n"
_STDERR = 2
ALTERED = "altered: "   # before what is told of a message


class Interruption:
    """From its beginning to its end, the run on `course` listens for what may end it.

    Ctrl-C is heard where Python would raise KeyboardInterrupt for it: in the main thread, unless
    the program has a handler of its own; or by `listening`, which hears other signals, too.
    """

    def __init__(
        self, course: Course, comm: Communicator, progress: Progress | None,
        listening: Listening | None = None,
    ) -> None:  # fmt: skip
        self._course, self._comm, self._progress = course, comm, progress
        self._hearing = hearing(self._insist)
        self._listening = listening
        self._error: BaseException | None = None
        self._n_heard = 0
        self._previous: Any = None

    def __enter__(self) -> Interruption:
        self._course.forget()
        self._hearing.__enter__()
        if self._listening is not None:
            self._listening.follow(self._course)
            return self
        in_main = threading.current_thread() is threading.main_thread()
        if in_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._previous = signal.signal(signal.SIGINT, self._hear)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._hearing.__exit__(kind, error, traceback)
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)
        if self._n_heard and error is None:     # too late to be told to the others
            raise KeyboardInterrupt

    @property
    def progress(self) -> Progress | None:
        """What the run may call: it raises nothing, but asks for the end."""
        return None if self._progress is None else self._tell

    def follow(self, course: Course) -> None:
        """The run goes on, on another course, which nobody has asked to end."""
        before, self._course = self._course, course
        if before is not course and before.reason not in (None, DUE):
            course.insist(before.reason)
        if self._listening is not None:
            self._listening.follow(course)

    def settle(self, n_done: int, n_steps: int) -> None:
        """Raise on all ranks if any of them has wanted the end; all know by now."""
        reasons = self._course.reasons
        if {*reasons} <= {None, DUE}:       # after a checkpoint it goes on
            return
        self._n_heard = 0
        altered = [text[len(ALTERED) :] for text in reasons if text and text.startswith(ALTERED)]
        if altered:
            raise on_all_ranks(MessageError(
                f"{'; '.join(altered)}; the fields are torn from that step on: set them anew, or "
                f"run the program again, from a checkpoint if there is one"
            ))  # fmt: skip
        share = "which all ranks share: " if len(reasons) > 1 else ""
        there = f"the run has ended after {n_done} of {n_steps} steps, {share}"
        where = f"{there}the field can be saved, and a further run goes on from there"
        kept = f"{there}its checkpoint is where the same program, run again, goes on"
        stopping = [name for name in SIGNALS.values() if name in reasons]
        if stopping:
            raise on_all_ranks(Stopped(f"{stopping[0]}: {kept}"))
        if CTRL_C in reasons:
            raise on_all_ranks(KeyboardInterrupt(where if self._listening is None else kept))
        if self._error is not None:
            raise self._error
        named = [f"rank {n}: {text}" for n, text in enumerate(reasons) if text not in (None, DUE)]
        raise RuntimeError(f"progress has failed on {'; '.join(named)}; {where}")

    def _insist(self, text: str) -> None:
        """A message was altered; the first of them is told."""
        if not (self._course.reason or "").startswith(ALTERED):
            self._course.insist(f"{ALTERED}{text}")

    def _tell(self, done: int, total: int) -> None:
        assert self._progress is not None
        if self._error is not None:
            return
        try:
            self._progress(done, total)
        except BaseException as error:
            if self._n_heard > 1:   # raised by the second Ctrl-C
                raise
            self._error = error
            is_ctrl_c = isinstance(error, KeyboardInterrupt)
            self._course.ask(CTRL_C if is_ctrl_c else f"{type(error).__name__}: {error}")

    def _hear(self, number: int, frame: FrameType | None) -> None:
        self._n_heard += 1
        if self._n_heard > 1:
            raise KeyboardInterrupt
        self._course.ask(CTRL_C)
        if self._comm.rank == 0:
            os.write(_STDERR, _HEARD)
