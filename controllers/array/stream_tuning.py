# SPDX-License-Identifier: MIT
"""How many chunks and slots calls pass through in, found while they do: each call is a valid one.

Calls of one function on arrays of the same extents share what is found.
"""
# docs/decisions/0079-chunks-and-slots-are-tuned-too.md
from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from controllers.engine import Engine, RunLog
from controllers.engine.samples import Several
from controllers.report.pipeline import PipelineLog
from controllers.settings.execution import MOST_CHUNKS
from controllers.tuning.size_grid import SLOTS, TIMES, SizeGrid
from controllers.tuning.sizes import TIMED, Keeper, Seen, Size, SizeChooser
from hitmap.comm import Communicator


class Sized(Protocol):
    """What is called, and may be cut otherwise."""

    def least(self, n_slots: int) -> int | None: ...    # collective, as the next one
    def has_room(self, size: Size) -> bool: ...


class StreamTuner:
    """Chooses for a call in which size it passes through the next time."""

    def __init__(
        self, call: Sized, first: Size, rows: int, comm: Communicator, kept: Keeper, *,
        is_known: bool, is_fixed: bool,
    ) -> None:  # fmt: skip
        """`rows`: of a place; is_known: nothing else is tried; is_fixed: no other number of slots.
        Collective.
        """
        self._call: Sized | None = call
        sizes = SizeGrid(
            first, (), self._least, min(rows, MOST_CHUNKS), self._fits,
            slots=() if is_fixed or is_known else SLOTS, times=(1,) if is_known else TIMES,
        )  # fmt: skip
        self._chooser = SizeChooser(sizes, comm, self._seen_of, kept)
        self._call = None
        self._times: list[float] = []
        self._log = PipelineLog()

    @property
    def size(self) -> Size:
        """That of the next call."""
        return self._chooser.size

    def took(self, seconds: float) -> None:
        """So long it took to change to this size."""
        self._chooser.took(seconds)

    def run(
        self, call: Sized, engine: Engine, once: Callable[[RunLog | None], None],
        log: RunLog | None,
    ) -> None:  # fmt: skip
        """Do a call of the size that is wanted, by `once`, and learn from it.  Collective."""
        logs = [one for one in (log,) if one is not None]
        if self._chooser.wants_to_look:
            self._log.begin(engine)
            logs.append(self._log)
        start, size = time.perf_counter(), self.size
        once(Several(logs) if logs else None)
        seconds = time.perf_counter() - start
        if self._chooser.wants_to_look:
            self._times.append(seconds)
        self._call = call
        try:
            self._chooser.ran(1, seconds)
        finally:
            self._call = None       # it holds arrays
        if self.size != size:
            self._times.clear()

    def _seen_of(self, size: Size) -> Seen | None:
        found = self._log.report() if len(self._times) >= TIMED else None
        return None if found is None else Seen(min(self._times), found.pipeline.kind)

    def _least(self, span: int, n_slots: int) -> int | None:
        return None if self._call is None else self._call.least(n_slots)

    def _fits(self, size: Size) -> bool:
        assert self._call is not None, "asked while it is done"
        return self._call.has_room(size)
