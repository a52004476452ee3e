# SPDX-License-Identifier: MIT
"""Accesses: which cells of which tiles a command or host task reads and writes."""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from controllers.controller.tied_tile import Cells, cells_of
from controllers.device.event import Event
from controllers.kgt.parameter import word_of
from controllers.memory.coherence import Side

TileRole: TypeAlias = Literal["in", "out", "inout"]


@dataclass(frozen=True)
class Access:
    """A tile or selection with the role it has for a kernel or a host task."""

    cells: Cells
    role: TileRole

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


@dataclass(frozen=True, eq=False)
class ArrayAccess:
    """An array of NumPy with the role that it has for a task of a pool."""

    array: npt.NDArray[Any]
    role: TileRole

    def __repr__(self) -> str:
        return f"{word_of(self.role)}(array of {self.array.shape})"


@overload
def reading(target: Cells) -> Access: ...
@overload
def reading(target: npt.NDArray[Any]) -> ArrayAccess: ...
def reading(target: Cells | npt.NDArray[Any]) -> Access | ArrayAccess:
    """`target` is read; an array, by a task of a pool (docs/tasks.md)."""
    if isinstance(target, np.ndarray):
        return ArrayAccess(target, "in")
    return Access(cells_of(target), "in")


@overload
def writing(target: Cells) -> Access: ...
@overload
def writing(target: npt.NDArray[Any]) -> ArrayAccess: ...
def writing(target: Cells | npt.NDArray[Any]) -> Access | ArrayAccess:
    """All cells of `target` are written, none is read before; of an array, by a task of a pool."""
    if isinstance(target, np.ndarray):
        return ArrayAccess(target, "out")
    return Access(cells_of(target), "out")


@overload
def updating(target: Cells) -> Access: ...
@overload
def updating(target: npt.NDArray[Any]) -> ArrayAccess: ...
def updating(target: Cells | npt.NDArray[Any]) -> Access | ArrayAccess:
    """`target` is read and written; an array, by a task of a pool."""
    if isinstance(target, np.ndarray):
        return ArrayAccess(target, "inout")
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
