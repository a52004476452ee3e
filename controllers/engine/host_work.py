# SPDX-License-Identifier: MIT
"""Work of the host as commands: done by who starts it, or by threads while that one goes on."""
from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from controllers.device.event import COMPLETE, UNDER_WAY, Command, Event, HostEvent, Noticed
from hitmap.cut import split_even

Cells = npt.NDArray[Any]
MOST_THREADS = 4    # that copy, ...
CORES_EACH = 4      # ... of those that the process may use


def by_host(work: Callable[[], None]) -> Command:
    """The command of work that is done when it returns."""

    def command(wait_for: Sequence[Event] | None = None) -> Event:
        start = time.perf_counter_ns()
        work()
        return HostEvent(start, time.perf_counter_ns())

    return command


class Assistants:
    """Threads beside the one that drives devices; they are made when they are first needed."""

    def __init__(self, n_threads: int | None = None) -> None:
        """n_threads: by default some where there are many cores; one copies 4 to 5 GB/s."""
        usual = min(MOST_THREADS, len(os.sched_getaffinity(0)) // CORES_EACH)
        self._n_threads = max(1, usual) if n_threads is None else n_threads
        self._threads = ThreadPoolExecutor(self._n_threads, thread_name_prefix="assistant")

    def command(self, *works: Callable[[], None]) -> Command:
        """The command of some works, which are done at the same time."""
        return _Assisted(self._threads, works)

    def copying(self, moves: Sequence[tuple[Cells, Cells]]) -> Command:
        """The command that copies arrays, each from the first to the second one."""
        return self.command(*(
            partial(copy_cells, [(moves[number][0][low:high], moves[number][1][low:high])
                                 for number, low, high in parts])
            for parts in self.shared_out([len(cells) for cells, _ in moves])
        ))  # fmt: skip

    def shared_out(self, lengths: Sequence[int]) -> list[list[tuple[int, int, int]]]:
        """For each thread that has any the number of a thing, from where and to before where."""
        parts: list[list[tuple[int, int, int]]] = [[] for _ in range(self._n_threads)]
        for number, length in enumerate(lengths):
            cuts = split_even(length, max(1, min(self._n_threads, length)))
            for part, low, high in zip(parts, cuts, cuts[1:]):
                part.append((number, low, high))
        return [part for part in parts if part]


def copy_cells(moves: Sequence[tuple[Cells, Cells]]) -> None:
    """From the first one of each pair to the second."""
    for cells, room in moves:
        np.copyto(room, cells)


class _Assisted(Noticed):
    """The command, and the event of its end; what work raises, who asks after it raises."""

    def __init__(self, threads: ThreadPoolExecutor, works: Sequence[Callable[[], None]]) -> None:
        self._threads, self._works = threads, works
        self._futures: list[Future[None]] = []

    def __call__(self, wait_for: Sequence[Event] | None = None) -> Event:
        self._begin = time.perf_counter_ns()
        self._futures = [self._threads.submit(work) for work in self._works]
        return self

    @property
    def command_execution_status(self) -> int:
        if not self._futures:
            return COMPLETE
        if not all(future.done() for future in self._futures):
            return UNDER_WAY
        futures, self._futures = self._futures, []
        self._note_end()
        for future in futures:
            future.result()
        return COMPLETE

