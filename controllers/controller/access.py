# SPDX-License-Identifier: MIT
"""Accesses: which cells of which tiles a command or host task reads and writes."""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy.typing as npt

from controllers.controller.tied_tile import Cells, cells_of
from controllers.device.event import Event
from controllers.kgt.parameter import word_of
from controllers.memory.coherence import Side


@dataclass(frozen=True)
class Access:
    """A tile or selection with the role it has for a kernel or a host task."""

    cells: Cells
    role: Literal["in", "out", "inout"]

    def __repr__(self) -> str:
        return f"{word_of(self.role)}({self.cells!r})"

    @property
    def reads(self) -> bool:
        return self.role != "out"

    @property
    def writes(self) -> bool:
        return self.role != "in"

    def view(self) -> npt.NDArray[Any]:
        """The host's image of the cells; read-only if they are only read."""
        view = self.cells.tile.image(self.cells.box)
        if not self.writes:
            view.flags.writeable = False
        return view


def reading(target: Cells) -> Access:
    """`target` is read."""
    return Access(cells_of(target), "in")


def writing(target: Cells) -> Access:
    """All cells of `target` are written, none is read before."""
    return Access(cells_of(target), "out")


def updating(target: Cells) -> Access:
    """`target` is read and written."""
    return Access(cells_of(target), "inout")


def before(side: Side, accesses: Iterable[Access]) -> list[Event]:
    """What a command or task with these accesses waits for."""
    events: list[Event] = []
    for access in accesses:
        coherence, cells = access.cells.tile.coherence, [access.cells.box]
        look = coherence.before_write if access.writes else coherence.before_read
        events += look(side, cells)
    return list(dict.fromkeys(events))


def record(side: Side, accesses: Iterable[Access], event: Event) -> None:
    """`event` is that of a command or task with these accesses."""
    for access in accesses:
        coherence, cells = access.cells.tile.coherence, [access.cells.box]
        (coherence.wrote if access.writes else coherence.read)(side, cells, event)
