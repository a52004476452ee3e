# SPDX-License-Identifier: MIT
"""Slices of fields: views, as NumPy's.

A view sees what is assigned to its field, and what is assigned to it the field gets.  When steps
run, or the field is set as a whole, a view that somebody still has keeps the values that it shows.
"""
from __future__ import annotations

from collections.abc import Set
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from controllers.array.arrays import Arrays
from controllers.array.lazy import Chosen, Distributed, Lazy, with_mask
from controllers.array.operand import Operand, unit
from controllers.array.source import Source
from controllers.array.term import leaf_of
from hitmap.section import Section

FEW = 1 << 16       # cells that are kept on the host


class WholeField(Protocol):
    """The field of a slice."""

    @property
    def arrays(self) -> Arrays: ...
    @property
    def fields(self) -> tuple[str, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    def put(self, section: Section, values: Any) -> None: ...
    def taken(self, section: Section) -> npt.NDArray[Any]: ...


class FieldSlice(Distributed):
    """Some cells of a field: `run.u[1:-1]`."""

    __slots__ = ("__weakref__", "_field", "_kept", "_name", "_section", "_unit")

    def __init__(self, field: WholeField, section: Section) -> None:
        self._field, self._section = field, section
        self._unit, self._name = unit(section), field.fields[0]
        self._kept: Lazy | npt.NDArray[Any] | None = None
        field.arrays.living.add(self)

    @property
    def arrays(self) -> Arrays:
        return self._field.arrays

    @property
    def shape(self) -> tuple[int, ...]:
        return self._section.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._field.dtype

    def shows(self, field: WholeField, section: Section) -> bool:
        """Whether it is a view of these cells."""
        same = self._field.fields == field.fields and self._field.arrays is field.arrays
        return self._kept is None and same and self._section == section

    @property
    def shown(self) -> tuple[WholeField, Section] | None:
        """The field and its cells that it is a view of; None where it keeps others."""
        return None if self._kept is not None else (self._field, self._section)

    def operand(self) -> Operand | None:
        if isinstance(self._kept, Lazy):
            return self._kept.operand()
        if self._unit is None or self._kept is not None:
            return None
        start, frame = self._unit
        return leaf_of(self._field.arrays.fields[self._name], start), frame

    def reads(self, sources: Set[Source], views: bool) -> bool:
        """Whether it is to be computed before these change."""
        return views and self._kept is None and self.arrays.fields[self._name] in sources

    def hold(self) -> None:
        """From now on it shows what it shows now."""
        operand = self.operand()
        if operand is None or operand[1].n_cells <= FEW:
            self.outlive()
        else:
            self._kept = Lazy(self.arrays, *operand)
            self._kept.hold()

    def bring(self) -> None:
        """The field is about to be divided otherwise, which a view does not notice."""

    def outlive(self) -> None:
        """From now on it shows what it shows now, without the computation."""
        if self._kept is None:
            section = self._section
            self._kept = section.taken(self.arrays.gathered(self._name, section))

    def lose(self) -> None:
        """Another rank has let go of it: it goes on to be a view of the field."""

    def __getitem__(self, index: object) -> Any:
        """Some of its cells, as of a field."""
        if self._kept is not None:
            return self._kept[index]    # type: ignore[call-overload]
        index = with_mask(self, index)
        if isinstance(index, Distributed):
            return Chosen(self, index)
        section = self._section.part(index)
        if all(section.dropped):
            return section.taken(self._field.taken(section))
        return FieldSlice(self._field, section)

    def __setitem__(self, index: object, values: Any) -> None:
        """Set some of its cells, in the field."""
        self._kept = None
        index = with_mask(self, index)
        if isinstance(index, Distributed):
            put_where(self, index, values)
        elif index is ...:
            self._field.put(self._section, values)
        else:
            self._field.put(self._section.part(index), values)

    def _whole(self) -> npt.NDArray[Any]:
        if self._kept is not None:
            return np.array(self._kept)
        found: npt.NDArray[Any] = self._section.taken(self._field.taken(self._section))
        return found

    def __repr__(self) -> str:
        cells = " x ".join(map(str, self.shape))
        return f"<a slice of {self._field!r}: {cells} cells>"


def put_where(target: Distributed, mask: Distributed, values: Any) -> None:
    """Set the cells of a field or a slice where a mask of its shape holds: `u[u < 0] = 0`."""
    if mask.dtype != np.bool_ or mask.shape != target.shape:
        raise IndexError(
            f"a mask is a comparison of the shape {target.shape}, got {mask.dtype} cells of the "
            f"shape {mask.shape}; compare fields of that shape, as u < 0"
        )
    if np.ndim(values) and np.shape(values) != target.shape:
        raise ValueError(
            f"cells of a mask get a number or an array of the shape {target.shape}, got one of "
            f"{np.shape(values)}; choose by np.where"
        )
    target[...] = np.where(mask, values, target)
