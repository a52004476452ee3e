# SPDX-License-Identifier: MIT
"""Cells that are assigned to others as they are: `u[::2, ::2] = v`, of one grid or of two.

Each goes from the place that owns it to the place that will, and no rank sees the others.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from controllers.array.operand import Frame
from controllers.run.cells import dtype_of, section_of
from controllers.run.field_access import FieldAccess
from hitmap.conversion import with_one_nan
from hitmap.layout import Layout
from hitmap.redistribute import Redistribution
from hitmap.section import Section


@dataclass(frozen=True)
class Origin:
    """Some cells of a field."""

    field: FieldAccess
    section: Section

    @property
    def facts(self) -> tuple[object, ...]:
        """What is the same on all ranks."""
        return self.field.calls.owner, self.field.fields, self.section

    def goes_to(self, target: FieldAccess, section: Section) -> bool:
        """Whether they go to cells of `target` one by one, as they are, between the same ranks."""
        one, other = self.field.comm, target.comm
        if one.size != other.size or (one.size > 1 and one != other):
            return False
        return self._dtype == dtype_of(target._engine, target.fields[0]) and _frame(section).takes(
            _frame(self.section)
        )

    def brought(
        self, target: FieldAccess, section: Section
    ) -> tuple[Layout, dict[int, npt.NDArray[Any]]]:
        """The positions of `section` that each place of `target` has, and cells.  Collective.

        They are a copy, as both may be cells of one field.
        """
        field, (name,) = self.field, self.field.fields
        if field.state is not target.state:
            field.state.check_idle("read")
            field.state.meet("reads")
        field.state.check("read", "reads")
        before, after = self.section.divided(field._layout), section.divided(target._layout)
        moves = Redistribution(before, after, field._ranks, target._ranks)
        engine = field._engine
        parts = {
            place: with_one_nan(np.array(
                section_of(engine, name, place, self.section, before.owned[place])
            ))
            for place in engine.executors
        }  # fmt: skip
        return after, moves.apply(parts, target.comm, self._dtype)

    @property
    def _dtype(self) -> np.dtype[Any]:
        return dtype_of(self.field._engine, self.field.fields[0])


def _frame(section: Section) -> Frame:
    return Frame(section.extent, section.dropped)
