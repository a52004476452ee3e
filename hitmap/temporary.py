# SPDX-License-Identifier: MIT
"""Files that are written under a temporary name beside their own, and renamed when whole.

After an error it is the writer that removes the file.  Where the job ends at once, `end_job`
does; so that this includes SIGTERM, a thread waits for the signal meanwhile, as the main one may
be blocked inside MPI.  What a SIGKILL leaves is the temporary file, never half of the real one.
"""
from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

from hitmap.abort import end_job, unfinished

TERMINATED = 128 + signal.SIGTERM   # exit code


def temporary_name(path: Path) -> Path:
    """A name in the folder of `path` that no other process of the host uses."""
    return path.with_name(f".{path.stem}.{os.getpid()}.tmp{path.suffix}")


class Unfinished:
    """From its making until `close`, the file `path` is removed if the job ends at once.

    By SIGTERM too, unless the program handles that itself, or this is not its main thread.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        unfinished.add(path)
        self._thread: threading.Thread | None = None
        if threading.current_thread() is not threading.main_thread():
            return
        if signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
            return
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        wakes_another = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        if wakes_another != -1:     # an event loop has the signals
            signal.set_wakeup_fd(wakes_another)
            os.close(self._reader)
            os.close(self._writer)
            return
        signal.signal(signal.SIGTERM, lambda number, frame: None)   # so that the pipe gets it
        self._thread = threading.Thread(target=self._wait, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """The file has its own name, or is gone."""
        unfinished.discard(self._path)
        if self._thread is None:
            return
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        os.close(self._writer)
        self._thread.join()
        os.close(self._reader)
        self._thread = None

    def _wait(self) -> None:
        while signals := os.read(self._reader, 64):
            if signal.SIGTERM in signals:
                end_job(TERMINATED)
