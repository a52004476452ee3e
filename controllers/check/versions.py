# SPDX-License-Identifier: MIT
"""Which value a cell must hold at a given time: derived from the program alone.

A *stamp* is one number for "the value that cell c has after so many sweeps".  Time counts sweeps:
before sweep n of step s it is s * sweeps + n.  Cells that no sweep computes keep the first value.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from controllers.check.cells import NEVER
from controllers.program.extension import Extension
from controllers.program.sweep import Sweep, Version
from hitmap.shape import Shape


class Versions:
    """The stamps of the sweeps of a step on a domain.

    >>> from controllers.language.weights import Stencil
    >>> (mean,) = Stencil.of("mean", [(-1, 1)], [1, 0, 1], 2).program("float32").stages
    >>> domain = Shape.of_extent((10,))
    >>> versions = Versions([Sweep.over(mean, domain, (False,))], domain)
    >>> versions.stamps("u", Shape((7,), (10,)), time=3)    # the last cell is never computed
    array([37, 38,  9])
    """

    def __init__(
        self,
        sweeps: Sequence[Sweep],
        domain: Shape,
        extensions: Mapping[str, Extension | None] | None = None,
    ) -> None:
        self.n_sweeps = len(sweeps)
        self._sweeps, self._domain, self._extensions = sweeps, domain, extensions or {}
        self._made = {u.version: n for n, sweep in enumerate(sweeps) for u in sweep.updates}

    def time(self, step: int, version: Version) -> int:
        """When a step has just made `version`, or, of number 0, begins."""
        return step * self.n_sweeps + (self._made[version] + 1 if version.number else 0)

    def stamps(self, field: str, cells: Shape, time: int) -> npt.NDArray[np.int64]:
        """What `cells`, perhaps beyond an end, must hold before the sweep at `time`.

        Outside the domain they change with every sweep that writes the field, or never; there a
        stamp has the number of the cell that it would be if the axis were periodic.
        """
        axes = [
            (np.arange(lower, upper) - first) % count
            for lower, upper, first, count in zip(
                cells.lower, cells.upper, self._domain.lower, self._domain.extent
            )
        ]
        versions = np.zeros(cells.extent, np.int64)
        outside, is_steady = self._outside(field, cells)
        for number, sweep in enumerate(self._sweeps):
            n_done = (time - 1 - number) // self.n_sweeps + 1 if time > number else 0
            if field in sweep.writes and n_done:
                inside = self._inside(axes, sweep.cells) & ~outside
                inside = inside if is_steady else inside | outside
                newest = (n_done - 1) * self.n_sweeps + number + 1
                versions = np.where(inside, np.maximum(versions, newest), versions)
        index = np.ravel_multi_index(np.ix_(*axes), self._domain.extent)
        result: npt.NDArray[np.int64] = versions * self._domain.n_cells + index
        return result

    def _outside(self, field: str, cells: Shape) -> tuple[npt.NDArray[np.bool_], bool]:
        """Which of `cells` are outside the domain, and whether these never change."""
        mask = np.zeros(cells.extent, np.bool_)
        extension = self._extensions.get(field)
        if extension is None:
            return mask, True
        for box in extension.outside(cells):
            mask[box.slices(cells.lower)] = True
        return mask, extension.boundary.is_steady

    def describe(self, stamp: int) -> str:
        """A stamp in words."""
        if stamp == NEVER:
            return "nothing"
        version, index = divmod(int(stamp), self._domain.n_cells)
        cell = tuple(map(int, np.unravel_index(index, self._domain.extent)))
        when = f"after step {(version - 1) // self.n_sweeps}" if version else "as it was loaded"
        return f"cell {self.global_index(cell)} {when}"

    def global_index(self, cell: tuple[int, ...]) -> tuple[int, ...]:
        """The index of the cell that `cell`, counted from the domain's first one, stands for."""
        axes = zip(cell, self._domain.lower, self._domain.extent)
        return tuple(first + index % count for index, first, count in axes)

    def wrapped(self, cell: tuple[int, ...]) -> tuple[int, ...]:
        """The cell of the domain that `cell`, a global index, is beyond a periodic end."""
        return self.global_index(tuple(n - a for n, a in zip(cell, self._domain.lower)))

    def _inside(
        self, axes: list[npt.NDArray[np.int64]], box: Shape
    ) -> npt.NDArray[np.bool_]:
        inside = np.ones((), np.bool_)
        ends = zip(np.ix_(*axes), box.lower, box.upper, self._domain.lower)
        for n, lower, upper, first in ends:
            inside = inside & (lower - first <= n) & (n < upper - first)
        result: npt.NDArray[np.bool_] = inside
        return result
