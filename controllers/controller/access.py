# SPDX-License-Identifier: MIT
"""Accesses: which cells of which tiles a command or host task reads and writes."""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy.typing as npt

from controllers.controller.tied_tile import Selection, Target, selection_of
from controllers.device.event import Event
from controllers.memory.coherence import Side


@dataclass(frozen=True)
class Access:
    """A selection with the role it has for a kernel or a host task."""

    selection: Selection
    role: Literal["in", "out", "inout"]

    @property
    def reads(self) -> bool:
        return self.role != "out"

    @property
    def writes(self) -> bool:
        return self.role != "in"

    def view(self) -> npt.NDArray[Any]:
        """The host's image of the cells; read-only if they are only read."""
        view = self.selection.tile.image(self.selection.cells)
        if not self.writes:
            view.flags.writeable = False
        return view


def reading(target: Target) -> Access:
    """`target` is read."""
    return Access(selection_of(target), "in")


def writing(target: Target) -> Access:
    """All cells of `target` are written, none is read before."""
    return Access(selection_of(target), "out")


def updating(target: Target) -> Access:
    """`target` is read and written."""
    return Access(selection_of(target), "inout")


def before(side: Side, accesses: Iterable[Access]) -> list[Event]:
    """What a command or task with these accesses waits for."""
    events: list[Event] = []
    for access in accesses:
        coherence, cells = access.selection.tile.coherence, [access.selection.cells]
        look = coherence.before_write if access.writes else coherence.before_read
        events += look(side, cells)
    return list(dict.fromkeys(events))


def record(side: Side, accesses: Iterable[Access], event: Event) -> None:
    """`event` is that of a command or task with these accesses."""
    for access in accesses:
        coherence, cells = access.selection.tile.coherence, [access.selection.cells]
        (coherence.wrote if access.writes else coherence.read)(side, cells, event)
