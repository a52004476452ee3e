# SPDX-License-Identifier: MIT
"""A film of fields, a frame after every so many steps, or a picture of them in the end.

Each rank gives the cells that it owns of those that are seen; a thread of rank 0 draws them, while
the steps go on.  Where it is slower than these they wait for it.
"""
# docs/decisions/0076-pictures-are-of-coarser-copies.md
from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from controllers.engine import Engine
from controllers.engine.decision import decided
from controllers.picture.frames import Frames, frames
from controllers.picture.panels import Panels, title_of
from controllers.picture.seen import Seen, snapshot
from controllers.settings.plots import Plot
from hitmap.comm import Communicator
from hitmap.files import replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from controllers.run.results import Results

WAITING = 2     # frames that may wait to be drawn
PICTURE_DPI = 150


class Film:
    """One that begins at the step `first`, with a frame after each `every` of them.

    last: it ends there, if anybody knows.  engine: gives it, as it may be another one later.
    """

    of_fields = True

    def __init__(
        self, plot: Plot, name: str, seen: Sequence[Seen], comm: Communicator,
        engine: Callable[[], Engine], first: int, every: int, last: int | None,
    ) -> None:  # fmt: skip
        self._plot, self._name, self._seen, self._comm = plot, name, seen, comm
        self._engine, self._first, self._every, self._last = engine, first, every, last
        self._newest = -1       # step of the newest frame
        self._begun = False
        self._frames: Frames | None = None      # on rank 0, once there is one
        self._panels: Panels | None = None
        self._drawing: list[Future[None]] = []
        self._thread: ThreadPoolExecutor | None = None

    def left(self, step: int) -> int:
        """Steps to the next frame."""
        left = self._every - (step - self._first) % self._every
        if self._last is not None and step < self._last:
            return min(left, self._last - step)
        return left

    def cut(self, step: int) -> None:
        """The steps after this one are done again: their frames stay, as they are drawn."""

    def begin(self, now: Results) -> None:
        """The first frame, before the first step.  Collective.

        Of a run that goes on from a checkpoint the film has a name with the step, as there may be
        one of the steps before.
        """
        if self._begun:
            return
        self._begun = True
        path = self._plot.path
        if now.step != self._first:
            path = path.with_stem(f"{path.stem}-from-{now.step}")
        if self._comm.rank == 0:
            self._frames = frames(path, self._plot.fps)
            self._thread = ThreadPoolExecutor(1, "film")
        self.look(now)

    def look(self, now: Results) -> bool:
        """One more frame; the run goes on.  Collective."""
        cells = snapshot(self._engine(), self._comm, self._seen)
        self._newest = now.step
        decided(self._comm, lambda: self._submit(cells, now.step, now.time), "plot=")
        return False

    def finish(self, now: Results) -> None:
        """The last frame, unless it is there, and the file; nothing without steps.  Collective."""
        if self._begun and self._newest != now.step:
            self.look(now)
        decided(self._comm, self._complete, "plot=")

    def close(self) -> None:
        """Write what is drawn of it by now, unless that is done; OSError where that fails."""
        if self._thread is not None and self._frames is not None:
            self._thread.shutdown()
            self._thread = None
            self._frames.close()

    def _complete(self) -> None:
        while self._drawing:
            self._drawing.pop(0).result()
        self.close()

    def _submit(self, cells: list[npt.NDArray[Any]] | None, step: int, time: float) -> None:
        """Have a frame drawn; what went wrong with one before is raised here."""
        assert cells is not None and self._thread is not None, "on rank 0"
        while self._drawing and (self._drawing[0].done() or len(self._drawing) >= WAITING):
            self._drawing.pop(0).result()
        title = title_of(self._name, step, time)
        self._drawing.append(self._thread.submit(self._draw, cells, title))

    def _draw(self, cells: list[npt.NDArray[Any]], title: str) -> None:
        assert self._frames is not None, "on rank 0"
        if self._panels is None:
            self._panels = Panels(self._seen, self._plot.view)
        self._panels.show(cells, title)
        self._frames.add(self._panels.figure)


def write_figure(path: Path, figure: Figure) -> None:
    """A figure as a file that appears as a whole."""
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=PICTURE_DPI)
