# SPDX-License-Identifier: MIT
"""The cells of a selection: each rank takes those that it owns, one rank puts them together.

No rank holds more of a field than what was selected and what passes through the host at once.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from controllers.engine import Engine
from controllers.fields.cells import cells_of
from controllers.fields.selection import Chosen, Selection
from controllers.placement.relocation import CHUNK_CELLS
from hitmap.conversion import with_one_nan
from hitmap.shape import Shape
from hitmap.strided import consecutive

Part: TypeAlias = "tuple[Chosen, npt.NDArray[Any]]"     # positions in the selection, values


def own_cells(engine: Engine, field: str, selection: Selection) -> list[Part]:
    """The cells of a selection that places of this rank own, copied."""
    found = []
    for place in engine.executors:
        for box in _boxes(selection, engine.plan.owned(field, place)):
            part = selection.within(box)
            if part is not None:
                cells, at = part
                values = cells_of(engine, field, place, box)
                inside = np.ix_(*(one - low for one, low in zip(cells, box.lower)))
                found.append((at, with_one_nan(values[inside].copy())))
    return found


def put_together(
    everyone: Sequence[Sequence[Part]], selection: Selection, dtype: np.dtype[Any]
) -> npt.NDArray[Any]:
    """What all ranks have of a selection, axes of one cell included."""
    whole = np.zeros(tuple(map(len, selection.chosen)), dtype)
    for parts in everyone:
        for at, values in parts:
            whole[np.ix_(*at)] = values
    return whole


def _boxes(selection: Selection, owned: Shape) -> Iterator[Shape]:
    """Where a place has cells of a selection: rows, where others lie between them, else blocks."""
    part = selection.within(owned)
    if part is None:
        return
    cells, _ = part
    ends = [(int(one.min()), int(one.max()) + 1) for one in cells]
    box = Shape(*zip(*ends))
    first, end = ends[0]
    if end - first > len(cells[0]):
        for row in map(int, np.unique(cells[0])):
            yield from consecutive(
                Shape((row, *box.lower[1:]), (row + 1, *box.upper[1:])), CHUNK_CELLS
            )
    else:
        yield from consecutive(box, CHUNK_CELLS)
