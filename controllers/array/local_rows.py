# SPDX-License-Identifier: MIT
"""Rows of arrays side by side, as the places of a rank have them: what each rank works on alone."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from controllers.array.arrays import Arrays
from controllers.array.reductions import Reduced
from controllers.array.source import Source
from controllers.placement.relocation import CHUNK_CELLS
from hitmap.layout import Layout
from hitmap.shape import Shape

_Rows = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class SplitRows:
    """An array whose rows lie on places, each as a whole."""

    arrays: Arrays
    source: Source
    layout: Layout

    @property
    def ends(self) -> list[tuple[int, int]]:
        """The first row of each place, and that after its last one."""
        return [(box.lower[0], box.upper[0]) for box in self.layout.owned]

    def rows(self, place: int, first: int, end: int) -> _Rows:
        """Some of the rows that a place of this rank has, not to be written."""
        low, high = self.layout.domain.lower, self.layout.domain.upper
        return self.arrays.store.part(
            self.source, place, Shape((first, *low[1:]), (end, *high[1:]))
        )


def split_rows(array: Any) -> SplitRows | None:
    """Of an array whose rows are divided over the places of all ranks; None of others.  Collective.
    """
    operand = array.operand() if isinstance(array, Reduced) else None
    if operand is None or operand[1].is_empty or any(operand[1].dropped):
        return None
    arrays, (term, frame) = array.arrays, operand
    leaf = arrays.leaf(term, frame)
    layout = arrays.layout_of(leaf.source)
    domain = layout.domain
    by_rows = all(box.empty or box.extent[1:] == domain.extent[1:] for box in layout.owned)
    if any(leaf.start) or frame.extent != domain.extent or not by_rows:
        return None
    return SplitRows(arrays, leaf.source, layout)


def stated(array: Any) -> str:
    """What must be the same on all ranks of an array that they all give."""
    operand = array.operand() if isinstance(array, Reduced) else None
    if operand is None:
        return f"{type(array).__name__} of {np.shape(array)}"
    term, frame = operand
    return repr((term.key, term.numbers, frame.extent))


class SideBySide:
    """Arrays of as many rows: those of NumPy, on every rank, and distributed ones.

    arrays: of the first one that is distributed; None where none is.
    """

    def __init__(self, given: Sequence[Any]) -> None:
        """Collective."""
        found = [split_rows(one) for one in given]
        first = next((one for one in found if one is not None), None)
        self.arrays = None if first is None else first.arrays
        self._ends = None if first is None else first.ends
        self._rows: list[SplitRows | _Rows] = [
            np.asarray(array) if split is None or split.ends != self._ends else split
            for array, split in zip(given, found)
        ]
        if first is not None:
            for one in (one.arrays for one in self._rows if isinstance(one, SplitRows)):
                one.pending.finish()

    def parts(self) -> Iterator[list[_Rows]]:
        """The rows of all arrays that this rank has; so many at a time as pass through the host."""
        if self.arrays is None or self._ends is None:
            yield [np.asarray(one) for one in self._rows]
            return
        step = max(1, CHUNK_CELLS // max(self._columns(one) for one in self._rows))
        for place in self.arrays.store.places:
            start, stop = self._ends[place]
            for first in range(start, stop, step):
                yield [
                    one.rows(place, first, min(stop, first + step))
                    if isinstance(one, SplitRows) else one[first : min(stop, first + step)]
                    for one in self._rows
                ]  # fmt: skip

    @staticmethod
    def _columns(one: SplitRows | _Rows) -> int:
        shape = one.layout.domain.extent if isinstance(one, SplitRows) else one.shape
        return max(1, int(np.prod(shape[1:], dtype=np.int64)))
