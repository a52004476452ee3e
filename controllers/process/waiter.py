# SPDX-License-Identifier: MIT
"""Waiting for a device so that Ctrl-C is heard, and no longer than patience lasts.

A wait inside a driver is one call in C, which no signal reaches: Python's handlers run between the
instructions of the main thread.  So a thread waits in its place, and it waits for that thread.
"""
from __future__ import annotations

import math
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Protocol, TypeAlias

PATIENCE_S = 5.0    # for what is under way when an error or Ctrl-C ends the rest
LOOK_S = 0.5        # between two looks for signals that another thread got

_Answer: TypeAlias = "SimpleQueue[BaseException | None]"
_Call: TypeAlias = "tuple[Callable[[], object], _Answer]"


class Waiter:
    """A thread that waits, made when it is first needed."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[_Call | None] | None = None
        self._left: _Answer | None = None

    @property
    def goes_on(self) -> bool:
        """Whether the last call that was left before its end still waits."""
        return self._left is not None and self._left.empty()

    def wait(self, block: Callable[[], object], patience_s: float | None = None) -> bool:
        """Call `block`, which waits; raises what it raises, False if it takes longer.

        Then, and after an exception of a signal's handler, the call goes on by itself; what
        `block` refers to lives until it ends.
        """
        in_main = threading.current_thread() is threading.main_thread()
        if not in_main and patience_s is None:  # signals are the main thread's affair
            block()
            return True
        answer: _Answer = SimpleQueue()
        calls = self._calls = self._calls or _started(self)
        calls.put((block, answer))
        try:
            error = _first(answer, patience_s)
        except BaseException as left:
            calls.put(None)     # its end, when it comes free
            self._calls, self._left = None, answer
            if isinstance(left, Empty):
                return False
            raise
        if error is not None:
            raise error
        return True


class Ending(Protocol):
    """What ends by itself, as a command of a device does."""

    @property
    def command_execution_status(self) -> int: ...
    def wait(self) -> object: ...


class FirstOf:
    """Waiting for whatever ends first, by a thread for each: they are kept, and used again."""

    def __init__(self) -> None:
        self._ended: _Answer = SimpleQueue()
        self._idle: list[SimpleQueue[_Call | None]] = []
        self._under_way: dict[int, tuple[Ending, SimpleQueue[_Call | None]]] = {}

    def wait(self, events: Sequence[Ending], most_s: float = math.inf) -> None:
        """Block until one of `events` has ended or failed, or for `most_s`; Ctrl-C ends the wait.

        Raises what a wait for an event raises that has not ended.
        """
        for key, (event, calls) in [*self._under_way.items()]:
            if event.command_execution_status <= 0:
                self._idle.append(calls)
                del self._under_way[key]
        for event in events:
            if id(event) not in self._under_way:
                calls = self._idle.pop() if self._idle else _started(self)
                self._under_way[id(event)] = event, calls
                calls.put((event.wait, self._ended))
        until = time.monotonic() + most_s
        while all(event.command_execution_status > 0 for event in events):
            left_s = until - time.monotonic()
            if left_s <= 0.0:
                return
            error = None
            with suppress(Empty):   # or an answer to an earlier wait
                error = self._ended.get(timeout=min(left_s, LOOK_S))
            if error is not None and all(event.command_execution_status > 0 for event in events):
                raise error


def _first(answer: _Answer, patience_s: float | None) -> BaseException | None:
    """What `answer` gets; `Empty` if it gets nothing in so many seconds."""
    until = math.inf if patience_s is None else time.monotonic() + patience_s
    while True:
        left_s = until - time.monotonic()
        try:
            return answer.get(timeout=max(0.0, min(left_s, LOOK_S)))
        except Empty:
            if left_s <= LOOK_S:
                raise


def _started(owner: Waiter | FirstOf) -> SimpleQueue[_Call | None]:
    calls: SimpleQueue[_Call | None] = SimpleQueue()
    threading.Thread(target=_serve, args=(calls,), name="waiter", daemon=True).start()
    weakref.finalize(owner, calls.put, None).atexit = False
    return calls


def _serve(calls: SimpleQueue[_Call | None]) -> None:
    while True:
        call = calls.get()
        if call is None:
            return
        block, answer = call
        try:
            block()
        except BaseException as error:
            answer.put(error)
        else:
            answer.put(None)
        del call, block, answer     # or it keeps what they refer to until the next one comes
