# SPDX-License-Identifier: MIT
"""The engine of fields that live on the host: it runs passes, and shorter ones as a run ends.

A pass is a step of its plan (`plan/chunks/chunks.py`).  What is left of a run, less than a pass, is
done by an engine of a pass of so many steps, in the same images and slots.
"""
# docs/decisions/0064-chunks-are-places-in-slots.md
from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from controllers.device.event import Command
from controllers.engine.driver import Engine, Progress
from controllers.engine.looks import Looks, run_in_pieces
from controllers.engine.samples import RunLog
from controllers.executor.executor import Executor
from controllers.memory.ledger import MemoryCapError
from controllers.memory.tile import Tile
from controllers.plan import ChunkPlan, TileKey
from hitmap.comm import Communicator

Shorter = Callable[[ChunkPlan, int], ChunkPlan]     # the same with passes of so many steps


class ChunkEngine(Engine):
    """Runs passes of chunks; `shorter` plans those that end a run."""

    def __init__(
        self, plan: ChunkPlan, executors: Mapping[int, Executor], comm: Communicator,
        tiles: Mapping[TileKey, Tile] | None = None, *, shorter: Shorter,
    ) -> None:  # fmt: skip
        super().__init__(plan, executors, comm, tiles)
        self._chunks, self._comm, self._shorter = plan, comm, shorter
        self._ends: dict[int, ChunkEngine] = {}     # by their steps

    def run(
        self,
        n_steps: int,
        progress: Progress | None = None,
        log: RunLog | None = None,
        until: float = math.inf,
        looks: Looks | None = None,
    ) -> None:
        """Run so many time steps in whole passes, then a shorter one.  Collective."""
        if looks is not None:
            run_in_pieces(self, n_steps, progress, log, until, looks)
            return
        before, whole = self.n_steps, n_steps - n_steps % self.plan.span
        super().run(whole, progress, log, until)
        if whole < n_steps and self.n_steps == before + whole:
            for count in self._rests(n_steps):
                self._end_with(self._end(count))
            if progress is not None:
                progress(n_steps, n_steps)

    def prepare(self, n_steps: int) -> Mapping[int, Command]:
        """Build what the end of a run of so many time steps needs."""
        for count in self._rests(n_steps):
            self._end(count)
        return {}

    def warm(self, times: int = 1, log: RunLog | None = None) -> None:
        """Nothing: a pass takes all of the field, and kernels are built by now."""

    def take_over(self, other: Engine) -> None:
        """The images, which are also those of `other`, are as it has left them."""
        self.loaded(other.n_steps)
        self._n_done = other._n_done % self.plan.n_phases
        self.numbers.go_on_from(other.numbers)

    def close(self) -> None:
        self._close_ends()
        super().close()

    def _rests(self, n_steps: int) -> list[int]:
        """The steps of the shorter passes at the end of a run: of whole launches, then the rest."""
        rest = n_steps % self.plan.span
        last = rest % self.plan.steps_per_launch
        return [count for count in (rest - last, last) if count]

    def _end_with(self, end: ChunkEngine) -> None:
        """Its pass, after those so far."""
        end.take_over(self)
        end.course.looks, end.folds.is_trial = self.course.looks, self.folds.is_trial
        end.run(end.plan.span)
        self.take_over(end)
        self.folds.absorb(end.folds)

    def _end(self, n_steps: int) -> ChunkEngine:
        """What does the last steps of a run; others are let go of where tables take too much."""
        if n_steps not in self._ends:
            try:
                self._ends[n_steps] = self._made(n_steps)
            except MemoryCapError:
                self._close_ends()
                self._ends[n_steps] = self._made(n_steps)
        return self._ends[n_steps]

    def _made(self, n_steps: int) -> ChunkEngine:
        plan = self._shorter(self._chunks, n_steps)
        tiles, shorter = self.tiles, self._shorter
        return ChunkEngine(plan, self.executors, self._comm, tiles, shorter=shorter)

    def _close_ends(self) -> None:
        for end in self._ends.values():
            end.close()
        self._ends.clear()
