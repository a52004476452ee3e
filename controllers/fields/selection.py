# SPDX-License-Identifier: MIT
"""Some cells of a field, said by the names of axes: a point, a line, a part."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from controllers.settings.initial import Place
from hitmap.argument import short
from hitmap.shape import Shape

Where: TypeAlias = Mapping[str, object]
Chosen: TypeAlias = "tuple[npt.NDArray[np.intp], ...]"


class Selection:
    """Some cells of a field: along each axis those of a number, which drops it, or of a slice.

    Where there is a grid, numbers are coordinates, and stand for the nearest cell or point; else
    they are indices.
    """

    def __init__(self, place: Place, extent: Sequence[int], where: Where) -> None:
        """ValueError or TypeError for an axis that is none, or numbers at which no cells are."""
        axes = place.axes.axes
        for name in where:
            if name not in axes:
                raise ValueError(f"there is no axis {name!r}; there are {', '.join(axes)}")
        self.chosen: Chosen = tuple(
            _along(place, axis, n, where.get(name, slice(None)))
            for axis, (name, n) in enumerate(zip(axes, extent))
        )
        kept = [not isinstance(where.get(name, slice(None)), (int, float, np.generic))
                for name in axes]  # fmt: skip
        self.dims = tuple(name for name, one in zip(axes, kept) if one)
        self.shape = tuple(len(one) for one, is_kept in zip(self.chosen, kept) if is_kept)
        self.coords: dict[str, npt.NDArray[np.float64]] = {}    # of dropped axes one number
        for axis, name in enumerate(axes):
            if place.grid is not None:
                along = place.along(axis, 0, extent[axis])[self.chosen[axis]]
                self.coords[name] = along if kept[axis] else along.reshape(())

    def within(self, box: Shape) -> tuple[Chosen, Chosen] | None:
        """Which of the chosen cells a box has, and which positions these are; None for none."""
        at = tuple(
            np.flatnonzero((one >= low) & (one < high))
            for one, low, high in zip(self.chosen, box.lower, box.upper)
        )
        if not all(map(len, at)):
            return None
        return tuple(one[n] for one, n in zip(self.chosen, at)), at


def _along(place: Place, axis: int, n_cells: int, wanted: object) -> npt.NDArray[np.intp]:
    """The cells along one axis."""
    every = np.arange(n_cells)
    if isinstance(wanted, slice) and wanted == slice(None):
        return every
    name = place.axes.axes[axis]
    if isinstance(wanted, bool) or not isinstance(wanted, (slice, int, float, np.generic)):
        raise TypeError(f"{name}={short(wanted)}: give a number, or a slice of numbers")
    try:
        found = _at(place, axis, every, wanted)
    except (IndexError, TypeError):
        found = every[:0]
    if not len(found):
        lies = "" if place.grid is None else f", which lie from {_first(place, axis, n_cells)}"
        raise ValueError(
            f"{name}={short(wanted)} is at none of the {n_cells} cells{lies}; choose others"
        )
    return found


def _at(
    place: Place, axis: int, every: npt.NDArray[np.intp], wanted: Any
) -> npt.NDArray[np.intp]:
    if place.grid is None:
        return every[wanted] if isinstance(wanted, slice) else every[[wanted]]
    lies = place.along(axis, 0, len(every))
    half = abs(lies[1] - lies[0]) / 2 if len(lies) > 1 else np.inf
    if not isinstance(wanted, slice):
        near = np.abs(lies - wanted)
        is_near = float(near.min()) <= half * (1 + 1e-9)
        nearest = int(near.argmin())
        return every[nearest : nearest + is_near]
    low = lies[0] if wanted.start is None else wanted.start
    high = lies[-1] + half if wanted.stop is None else wanted.stop
    if wanted.step is None:
        return np.flatnonzero((lies >= low) & (lies < high))
    wished = np.arange(low, high, wanted.step)
    found: npt.NDArray[np.intp] = np.array([np.abs(lies - at).argmin() for at in wished], np.intp)
    return found


def _first(place: Place, axis: int, n_cells: int) -> str:
    lies = place.along(axis, 0, n_cells)
    return f"{lies[0]:g} to {lies[-1]:g}"
