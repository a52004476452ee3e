# SPDX-License-Identifier: MIT
"""What asks for a checkpoint while steps run: a clock, and the signals that announce an end.

Batch systems say by SIGTERM or SIGUSR1 that a job is about to be ended; Ctrl-C is SIGINT.  Each of
them, on any rank, ends the run at a step that all ranks share (engine/course.py), where its state
is written.  So does the clock of rank 0, after which the run goes on.
"""
from __future__ import annotations

import os
import signal
import threading
from types import FrameType, TracebackType
from typing import Any

from controllers.engine import Course
from hitmap.comm import Communicator

CTRL_C, DUE = "Ctrl-C", "a checkpoint is due"
SIGNALS = {signal.SIGTERM: "SIGTERM", signal.SIGUSR1: "SIGUSR1"}
STOPPED = 75        # exit code: there is more to do, for the same command again
_STDERR = 2


class Stopped(SystemExit):
    """A run has ended early, as a signal has asked for, and its checkpoint is written.

    Raised on all ranks.  Uncaught it ends the program with the exit code 75.
    """

    def __init__(self, text: str) -> None:
        super().__init__(STOPPED)
        self.text = text

    def __str__(self) -> str:
        return self.text


class Listening:
    """From its beginning to its end somebody may ask the run for a checkpoint.

    every_s: how often the clock does; None for never.  Signals are heard in the main thread, each
    unless the program has a handler of its own.  heard: the one that has come.
    """

    def __init__(self, comm: Communicator, every_s: float | None) -> None:
        self.heard: str | None = None
        self._every_s = every_s if comm.rank == 0 else None
        self._is_root = comm.rank == 0
        self._number = 0
        self._course: Course | None = None
        self._timer: threading.Timer | None = None
        self._is_due = False
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Listening:
        if threading.current_thread() is threading.main_thread():
            usual = {signal.SIGINT: signal.default_int_handler}
            for number in (signal.SIGINT, *SIGNALS):
                if signal.getsignal(number) == usual.get(number, signal.SIG_DFL):
                    self._previous[number] = signal.signal(number, self._hear)
        self.rest()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop_clock()
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        over = error is None or isinstance(error, GeneratorExit)
        if self.heard is not None and over:     # too late for this run
            signal.raise_signal(self._number)

    def follow(self, course: Course) -> None:
        """The run is on this course from now on."""
        self._course = course
        if self.heard is not None:
            course.ask(self.heard)
        elif self._is_due:
            course.ask(DUE, mildly=True)

    def rest(self) -> None:
        """A checkpoint has been written, or the run begins: the clock is set anew."""
        self._stop_clock()
        self._course, self._is_due = None, False
        if self._every_s is not None:
            self._timer = threading.Timer(self._every_s, self._ring)
            self._timer.daemon = True
            self._timer.start()

    def _stop_clock(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()

    def _ring(self) -> None:
        self._is_due = True
        course = self._course
        if course is not None:
            course.ask(DUE, mildly=True)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        name = SIGNALS.get(signal.Signals(number), CTRL_C)
        if self.heard is not None:
            if name == CTRL_C:      # the second one does not wait
                raise KeyboardInterrupt
            return
        self.heard, self._number = name, number
        if self._course is not None:
            self._course.ask(name)
        if self._is_root:
            os.write(_STDERR, f"\n{name}: the run ends at the next step that all share, after "
                              f"a checkpoint of it\n".encode())  # fmt: skip
