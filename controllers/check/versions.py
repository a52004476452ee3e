# SPDX-License-Identifier: MIT
"""Which value a cell must hold at a given time: derived from the program alone.

A *stamp* is one number for "the value that cell c has after so many sweeps".  Time counts sweeps,
and the host's tasks behind them: before sweep n of step s it is s * sweeps + n.  Cells that no
sweep computes keep the first value.  A field that is renamed has the stamps of the field that its
values come from, as they were when it got them.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from controllers.check.cells import NEVER
from controllers.plan.operation import HostTask
from controllers.program.extension import Extension
from controllers.program.sweep import Sweep, Version
from hitmap.shape import Shape


class Versions:
    """The stamps of the sweeps of a step on a domain, of the tasks of its end, and of renames.

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
        renames: Mapping[str, str] | None = None,
        tasks: Sequence[HostTask] = (),
        extensions: Mapping[str, Extension | None] | None = None,
    ) -> None:
        self._writers: list[tuple[Sequence[str], Shape | None]] = [
            *((sweep.writes, None if sweep.is_temporary else sweep.cells) for sweep in sweeps),
            *((task.writes, domain) for task in tasks),
        ]
        self.n_sweeps = len(self._writers)
        self._n_tasks, self._domain, self._renames = len(tasks), domain, dict(renames or {})
        self._extensions = extensions or {}
        # only where values go from field to field stamps have to tell fields apart
        self._fields = sorted({*self._renames, *self._renames.values()})
        self._made = {u.version: n for n, sweep in enumerate(sweeps) for u in sweep.updates}

    def time(self, step: int, version: Version) -> int:
        """When a step has just made `version`, or, of number 0, begins."""
        return step * self.n_sweeps + (self._made[version] + 1 if version.number else 0)

    def before_task(self, step: int, number: int, field: str) -> int:
        """When, at the end of a step, task `number` finds `field` under the name it then has."""
        if field in self._renames:
            return (step + 1) * self.n_sweeps
        return (step + 1) * self.n_sweeps - self._n_tasks + number

    def stamps(self, field: str, cells: Shape, time: int) -> npt.NDArray[np.int64]:
        """What `cells`, perhaps beyond an end, must hold before the sweep at `time`.

        Outside the domain they change with every sweep that writes the field, or never, and are
        then the same of all fields that renames join; there a stamp has the number of the cell
        that it would be if the axis were periodic.
        """
        field, time = self._origin(field, time)
        axes = [
            (np.arange(lower, upper) - first) % count
            for lower, upper, first, count in zip(
                cells.lower, cells.upper, self._domain.lower, self._domain.extent
            )
        ]
        versions = np.zeros(cells.extent, np.int64)
        outside, is_steady = self._outside(field, cells)
        for number, (writes, computed) in enumerate(self._writers):
            n_done = (time - 1 - number) // self.n_sweeps + 1 if time > number else 0
            if field in writes and n_done:
                inside = self._inside(axes, computed) & ~outside
                inside = inside if is_steady else inside | outside
                newest = (n_done - 1) * self.n_sweeps + number + 1
                versions = np.where(inside, np.maximum(versions, newest), versions)
        nobody = len(self._fields)
        number = self._fields.index(field) if field in self._fields else nobody
        versions = versions * (nobody + 1) + np.where(outside & is_steady, nobody, number)
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
        version, number = divmod(version, len(self._fields) + 1)
        cell = tuple(map(int, np.unravel_index(index, self._domain.extent)))
        of = f" of {self._fields[number]}" if number < len(self._fields) else ""
        when = f"after step {(version - 1) // self.n_sweeps}" if version else "as it was loaded"
        return f"cell {self.global_index(cell)}{of} {when}"

    def _origin(self, field: str, time: int) -> tuple[str, int]:
        """Whose value, of which time, a field has: of a renamed one that of another as it was."""
        chain, step = [field], time // self.n_sweeps
        while chain[-1] in self._renames and len(chain) <= step:
            before = self._renames[chain[-1]]
            if before in chain:     # values go round
                first = chain.index(before)
                around = chain[first:]
                return around[(step - first) % len(around)], 0
            chain.append(before)
        return chain[-1], time if len(chain) == 1 else (step - len(chain) + 1) * self.n_sweeps

    def global_index(self, cell: tuple[int, ...]) -> tuple[int, ...]:
        """The index of the cell that `cell`, counted from the domain's first one, stands for."""
        axes = zip(cell, self._domain.lower, self._domain.extent)
        return tuple(first + index % count for index, first, count in axes)

    def wrapped(self, cell: tuple[int, ...]) -> tuple[int, ...]:
        """The cell of the domain that `cell`, a global index, is beyond a periodic end."""
        return self.global_index(tuple(n - a for n, a in zip(cell, self._domain.lower)))

    def _inside(
        self, axes: list[npt.NDArray[np.int64]], box: Shape | None
    ) -> npt.NDArray[np.bool_]:
        inside = np.ones((), np.bool_)
        if box is None:     # all cells, also beyond the domain
            return inside
        ends = zip(np.ix_(*axes), box.lower, box.upper, self._domain.lower)
        for n, lower, upper, first in ends:
            inside = inside & (lower - first <= n) & (n < upper - first)
        result: npt.NDArray[np.bool_] = inside
        return result
