# SPDX-License-Identifier: MIT
"""What has cells of its own, a field or an array, read and written by NumPy's indices."""
from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from controllers.array.arrays import Arrays
from controllers.array.lazy import Chosen, Distributed, Lazy, with_mask
from controllers.array.operand import Frame, unit
from controllers.array.term import Leaf
from controllers.fields.field_slice import FieldSlice, put_where
from hitmap.section import Section


class Indexed(Distributed):
    """All cells of a field, or of an array."""

    __slots__ = ()
    arrays: Arrays

    @property
    @abstractmethod
    def fields(self) -> tuple[str, ...]:
        """Its name among those of `arrays`, alone."""

    @abstractmethod
    def operand(self) -> tuple[Leaf, Frame]: ...

    @abstractmethod
    def taken(self, section: Section) -> npt.NDArray[Any]:
        """The cells of a section on every rank, axes that had a whole number included."""

    @abstractmethod
    def _section(self, verb: str, index: object) -> Section:
        """The cells of an index; what is wrong with it is an error on all ranks."""

    @abstractmethod
    def _write(self, section: Section, values: npt.ArrayLike) -> None:
        """Set the cells of a section to those of rank 0.  Collective."""

    def _moves(self, section: Section, values: Distributed) -> bool:
        """Whether the cells of a section were set to others, from place to place."""
        return False

    def __getitem__(self, index: object) -> Any:
        """The cells that NumPy's index selects: a number, or a view, which can be written."""
        index = with_mask(self, index)
        if isinstance(index, Distributed):
            return Chosen(self, index)
        section = self._section("read", index)
        if all(section.dropped):
            return section.taken(self.taken(section))
        return FieldSlice(self, section)

    def __setitem__(self, index: object, values: Any) -> None:
        """Set the cells that NumPy's index, or a mask, selects.

        ValueError or TypeError where a value does not fit.
        """
        if index is ... and type(values) is Lazy and values.arrays is self.arrays:
            (leaf, own), operand = self.operand(), values.operand()
            if operand is not None and operand[1] == own:
                term, frame = operand
                self.arrays.assign(self.fields[0], leaf.start, frame, term, values)
                return
        index = with_mask(self, index)
        if isinstance(index, Distributed):
            put_where(self, index, values)
        else:
            self.put(self._section("write", index), values)

    def put(self, section: Section, values: Any) -> None:
        """Set the cells of a section: on the devices, where `values` lie there cell by cell."""
        if isinstance(values, Distributed):
            if values is self or (isinstance(values, FieldSlice) and values.shows(self, section)):
                return      # as after u[1:] += 1
            operand, target = values.operand(), unit(section)
            if operand is not None and target is not None and values.arrays is self.arrays:
                (term, frame), (start, own) = operand, target
                if own.takes(frame):
                    lazy = values if isinstance(values, Lazy) else None
                    self.arrays.assign(self.fields[0], start, own, term, lazy)
                    return
            if self._moves(section, values):
                return
        if hasattr(values, "__array__") and not isinstance(values, (np.ndarray, np.generic)):
            values = np.asarray(values)     # all ranks take part where it is distributed
        self._write(section, values)
