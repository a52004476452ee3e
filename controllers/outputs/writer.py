# SPDX-License-Identifier: MIT
"""A thread that does work in the order in which it is given, while others compute."""
from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

Work = Callable[[], None]


class Writer:
    """Does one piece of work at a time; `put` waits while `most` of them wait.

    After the first error no more is done.  n_done: pieces that are done.
    """

    def __init__(self, name: str, most: int = 1) -> None:
        self.n_done = 0
        self.error: Exception | None = None
        self._most = most
        self._waiting: deque[Work] = deque()
        self._changed = threading.Condition()
        self._is_busy = self._is_closed = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def make_room(self) -> None:
        """Wait until `put` would not, which it does not after an error."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._waiting) < self._most or self.error)

    def put(self, work: Work) -> None:
        """Let it be done, once there is room for it."""
        self.make_room()
        with self._changed:
            if self.error is None:
                self._waiting.append(work)
                self._changed.notify_all()

    @property
    def is_last(self) -> bool:
        """Whether nothing waits for what is being done."""
        with self._changed:
            return not self._waiting

    def wait(self) -> None:
        """Until all is done, or there is an error."""
        with self._changed:
            self._changed.wait_for(
                lambda: self.error or not (self._waiting or self._is_busy)
            )

    def do(self, work: Work) -> None:
        """The same, and done when it returns."""
        self.put(work)
        self.wait()

    def close(self) -> None:
        """The thread ends with the piece that is under way."""
        with self._changed:
            self._is_closed = True
            self._waiting.clear()
            self._changed.notify_all()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._is_closed)
                if not self._waiting:
                    return
                work, self._is_busy = self._waiting.popleft(), True
                self._changed.notify_all()
            error: Exception | None = None
            try:
                work()
            except Exception as own:    # told where the next one is put
                error = own
            del work        # and what it has held
            with self._changed:
                self._is_busy = False
                if error is None:
                    self.n_done += 1
                else:
                    self.error = error
                    self._waiting.clear()
                self._changed.notify_all()
