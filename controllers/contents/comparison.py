# SPDX-License-Identifier: MIT
"""What differs between two contents: step by step, field by field, cell by cell, read by parts.

Cells are compared by their bits: -0.0 is not 0.0, but all NaNs are one, as everywhere where cells
leave a field.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from controllers.contents.content import Content, Instant
from controllers.fields.selection import Selection
from controllers.settings.initial import Place
from hitmap.conversion import with_one_nan
from hitmap.shape import Shape
from hitmap.strided import consecutive

AT_ONCE = 1 << 22       # cells that are read of each of the two


@dataclass(frozen=True)
class Difference:
    """Of one field after one step: how many of its cells differ, the first of them in C order.

    values: of the first one.  largest: the largest difference of all, at the cell `largest_at`;
    infinite where a number is none or infinite in one of the two alone.
    """

    instant: Instant
    field: str
    n_cells: int
    n_differ: int
    first: tuple[int, ...]
    values: tuple[float, float]
    largest: float
    largest_at: tuple[int, ...]

    def __str__(self) -> str:
        """
        >>> print(Difference(Instant(4), "u", 30, 2, (0, 1), (1.0, 1.5), 0.75, (2, 2)))
        step 4, u: 2 of 30 cells differ, the first (0, 1): 1.0 and 1.5; at most by 0.75, at (2, 2)
        """
        step = "" if self.instant.step is None else f"step {self.instant.step}, "
        one, other = self.values
        return (
            f"{step}{self.field}: {self.n_differ} of {self.n_cells} cells differ, the first "
            f"{self.first}: {one!r} and {other!r}; at most by {self.largest:g}, at "
            f"{self.largest_at}"
        )

    def as_dict(self) -> dict[str, object]:
        """Plain values, as for JSON."""
        return {
            "step": self.instant.step, "time": self.instant.time, "field": self.field,
            "cells": self.n_cells, "differ": self.n_differ, "first": [*self.first],
            "values": [repr(value) for value in self.values], "largest": repr(self.largest),
            "largest_at": [*self.largest_at],
        }  # fmt: skip


class Comparison:
    """Of two contents: which fields and steps both have, and what of them can be compared.

    fields: by name, the name of each in both.  steps: their numbers in both, in order.  alone: what
    is in one of the two alone, in words.
    """

    def __init__(self, one: Content, other: Content, wanted: Sequence[str] = ()) -> None:
        """ValueError where nothing of the `wanted` fields, or of all, can be compared."""
        self._one, self._other = one, other
        self.alone: list[str] = []
        self.fields = self._common_fields(wanted)
        self.steps = self._common_steps()
        for name, (here, there) in self.fields.items():
            mine, theirs = one.fields[here], other.fields[there]
            if mine.dtype != theirs.dtype or mine.place.extent != theirs.place.extent:
                raise ValueError(
                    f"{name} is {_kind(mine)} in the one and {_kind(theirs)} in the other; they "
                    f"are not compared"
                )

    def differences(self) -> Iterator[Difference]:
        """By step, then by field."""
        for here, there in self.steps:
            for name in self.fields:
                found = self._difference(name, here, there)
                if found is not None:
                    yield found

    def _common_fields(self, wanted: Sequence[str]) -> dict[str, tuple[str, str]]:
        mine, theirs = [*self._one.fields], [*self._other.fields]
        if len(mine) == len(theirs) == 1 and not wanted:    # files are called anything
            return {mine[0]: (mine[0], theirs[0])}
        if len(wanted) == 1:
            here, there = (names[0] if len(names) == 1 else wanted[0] for names in (mine, theirs))
            if here in mine and there in theirs:
                return {wanted[0]: (here, there)}
        for name in wanted:
            if name not in mine or name not in theirs:
                raise ValueError(f"there is no field {name!r} in both; {_listed(mine, theirs)}")
        found = {name: (name, name) for name in mine if name in theirs and name in (wanted or mine)}
        if not found:
            raise ValueError(f"they have no field in common; {_listed(mine, theirs)}")
        for which, names, others in (("first", mine, theirs), ("second", theirs, mine)):
            lacking = [name for name in names if name not in others]
            if lacking and not wanted:
                self.alone.append(f"fields of the {which} alone: {', '.join(lacking)}")
        return found

    def _common_steps(self) -> list[tuple[int, int]]:
        mine, theirs = self._one.instants, self._other.instants
        if not mine or not theirs:
            raise ValueError("one of the two has no step; there is nothing to compare")
        if mine[-1].step is None or theirs[-1].step is None:    # what is said of no step is the end
            return [(len(mine) - 1, len(theirs) - 1)]
        numbers = {instant.step: number for number, instant in enumerate(theirs)}
        found = [
            (number, numbers[instant.step])
            for number, instant in enumerate(mine) if instant.step in numbers
        ]  # fmt: skip
        if not found:
            raise ValueError(
                f"they have no step in common: {_steps(mine)} and {_steps(theirs)}"
            )
        for which, instants in (("first", mine), ("second", theirs)):
            if len(instants) > len(found):
                self.alone.append(f"steps of the {which} alone: {len(instants) - len(found)}")
        return found

    def _difference(self, name: str, here: int, there: int) -> Difference | None:
        names = self.fields[name]
        extent = self._one.fields[names[0]].place.extent
        seen = _Seen()
        for box in consecutive(Shape.of_extent(tuple(extent)), AT_ONCE):
            selection = _selection(tuple(extent), box)
            seen.take(
                box, self._one.read(here, names[0], selection),
                self._other.read(there, names[1], selection),
            )  # fmt: skip
        if not seen.n_differ:
            return None
        instant = self._one.instants[here]
        if instant.step is None:
            instant = self._other.instants[there]
        return Difference(
            instant, name, Shape.of_extent(tuple(extent)).n_cells, seen.n_differ, seen.first,
            seen.values, seen.largest, seen.largest_at,
        )  # fmt: skip


class _Seen:
    """What differs in the boxes so far, which come in C order."""

    def __init__(self) -> None:
        self.n_differ, self.largest = 0, -1.0
        self.first: tuple[int, ...] = ()
        self.largest_at: tuple[int, ...] = ()
        self.values: tuple[float, float] = (0.0, 0.0)

    def take(self, box: Shape, one: npt.NDArray[Any], other: npt.NDArray[Any]) -> None:
        """The cells of a box in both."""
        one, other = (with_one_nan(np.ascontiguousarray(cells)) for cells in (one, other))
        bits = f"u{one.itemsize}"
        unlike = one.view(bits) != other.view(bits)
        count = int(np.count_nonzero(unlike))
        if not count:
            return
        where = np.argwhere(unlike)
        mine, theirs = one[unlike], other[unlike]
        if not self.n_differ:
            self.first = _cell(where[0], box)
            self.values = mine[0].item(), theirs[0].item()
        self.n_differ += count
        sizes = _differences(mine, theirs)
        at = int(sizes.argmax())
        if sizes[at] > self.largest:
            self.largest, self.largest_at = float(sizes[at]), _cell(where[at], box)


def _differences(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """How far apart numbers are; infinitely, where only one is a number, or finite."""
    if one.dtype.kind != "f":
        less, more = (cells.astype(np.int64).view(np.uint64) for cells in (
            np.minimum(one, other), np.maximum(one, other)
        ))  # fmt: skip
        apart: npt.NDArray[np.uint64] = more - less      # modulo 2**64, which is what it is
        return apart
    with np.errstate(invalid="ignore", over="ignore"):
        found = np.abs(one.astype(np.float64) - other.astype(np.float64))
    return np.where(np.isnan(found), np.inf, found)


def _cell(at: npt.NDArray[np.intp], box: Shape) -> tuple[int, ...]:
    return tuple(int(n) + low for n, low in zip(at, box.lower))


def _selection(extent: tuple[int, ...], box: Shape) -> Selection:
    place = Place(extent)
    slices = (slice(*ends) for ends in zip(box.lower, box.upper))
    return Selection(place, extent, dict(zip(place.axes.axes, slices)))


def _kind(stored: Any) -> str:
    return f"{stored.dtype} of {' x '.join(map(str, stored.place.extent))} cells"


def _listed(mine: Sequence[str], theirs: Sequence[str]) -> str:
    return f"the one has {', '.join(mine)}, the other {', '.join(theirs)}"


def _steps(instants: Sequence[Instant]) -> str:
    return f"{instants[0].step} to {instants[-1].step} ({len(instants)})"
