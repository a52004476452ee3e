# SPDX-License-Identifier: MIT
"""Tied tiles: boxes of cells with an image on the host and one on a device.

Which image is newest is known cell by cell, so that a read moves just the stale cells.  A
`Selection` is a box of a tile: it launches, moves and depends as the cells it covers.  Both are
`Cells`, and stand for each other wherever a verb takes cells.
"""
from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from controllers.controller.cells import cell_values
from controllers.controller.commands import Commands
from controllers.controller.index import selected
from controllers.device.event import AllOf, Event, wait_for_all
from controllers.memory.coherence import Coherence, Side
from controllers.memory.tile import Tile
from controllers.program.offsets import MAX_AXES
from hitmap.argument import instance, wrong
from hitmap.shape import Shape
from hitmap.strided import Geometry

TileKind = Literal["tied", "internal", "host"]
BOX_REMEDY = "write Shape(lower, upper), or Shape.of_extent(sizes) for cells from the origin"
DONE: Event = AllOf(())     # of what the host has done itself


class Cells(ABC):
    """A box of cells of one tile: all of them, or a selection."""

    @property
    @abstractmethod
    def tile(self) -> TiedTile:
        """The tile that they belong to."""

    @property
    @abstractmethod
    def box(self) -> Shape:
        """Which cells, in global indices."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Cells per axis, as of a NumPy array."""
        return self.box.extent

    @property
    @abstractmethod
    def dtype(self) -> np.dtype[Any]:
        """What each cell holds."""

    def indices(self) -> tuple[npt.NDArray[np.intp], ...]:
        """The global indices of the cells, an array per axis; together they broadcast.

        They are an open grid, as `numpy.ogrid` makes: `i, j = tile.indices()`, then
        `tile.write(i + 10 * j)`.
        """
        return self.box.indices()

    def select(self, box: Shape) -> Selection:
        """The part `box`, in global indices."""
        instance(box, Shape, "cells", BOX_REMEDY)
        if box not in self.box:
            raise ValueError(f"cells {box} are not in the selection {self.box}")
        return Selection(self.tile, box)

    def __getitem__(self, index: object) -> Selection:
        """The part that NumPy's `array[index]` is of an array over the same cells.

        Positions count from the first cell, negative ones from the end; an integer selects one
        cell of its axis, which stays.
        """
        return Selection(self.tile, selected(index, self.box))

    def read(self) -> npt.NDArray[Any]:
        """A copy of the cells, when all that writes them is done; moves the stale ones."""
        tile = self.tile
        tile.check()
        if tile.host is not None or self.box.empty:
            return np.array(self._newest())
        assert tile.memory is not None, "an internal tile that is not free"
        wait_for_all(tile.coherence.before_read("device", [self.box]))
        return tile.commands.executor.move_from(tile.memory, self.box)

    def write(self, values: npt.ArrayLike) -> None:
        """Give the cells new values, when all that uses them is done."""
        tile = self.tile
        tile.check()
        array = cell_values(values, self.shape, self.dtype)
        side: Side = "device" if tile.host is None else "host"
        wait_for_all(tile.coherence.before_write(side, [self.box]))
        if self.box.empty:
            return
        if tile.host is None:
            assert tile.memory is not None, "an internal tile that is not free"
            tile.commands.executor.move_to(tile.memory, self.box, array)
        else:
            tile.image(self.box)[...] = array
        tile.coherence.wrote(side, [self.box], DONE)

    def __array__(
        self, dtype: npt.DTypeLike | None = None, copy: bool | None = None
    ) -> npt.NDArray[Any]:
        """The cells for NumPy, when all that writes them is done; moves the stale ones.

        Unless a copy is asked for or needed, it is the host's image itself, read-only, in which
        what is written later shows.
        """
        wanted = self.dtype if dtype is None else np.dtype(dtype)
        self.tile.check()
        if copy is False and (self.tile.host is None or wanted != self.dtype):
            raise ValueError(
                f"{self!r} becomes an array of {wanted} by a copy only; leave copy=False out"
            )
        if copy or self.tile.host is None or wanted != self.dtype:
            return self.read().astype(wanted, copy=False)
        view = self._newest()
        view.flags.writeable = False
        return view

    def refresh(self, side: Side) -> Event:
        """Copy the stale cells of one side; the event is that of all its cells."""
        tile, cells = self.tile, [self.box]
        stale = tile.coherence.stale(side, cells)
        if stale:
            assert tile.memory is not None and tile.host is not None, "two images"
            other: Side = "host" if side == "device" else "device"
            after = tile.coherence.before_read(other, stale)
            after += tile.coherence.before_write(side, stale)
            move = tile.commands.executor.move_command
            command = move(tile.memory, tile.host, stale, to_device=side == "device")
            tile.coherence.copied(side, stale, tile.commands.issue(command, after))
        return AllOf(tile.coherence.before_read(side, cells))

    def users(self) -> list[Event]:
        """All that reads or writes the cells so far."""
        sides: tuple[Side, Side] = ("host", "device")
        events = [e for s in sides for e in self.tile.coherence.before_write(s, [self.box])]
        return list(dict.fromkeys(events))

    def _newest(self) -> npt.NDArray[Any]:
        """The host's image of the cells, up to date."""
        self.refresh("host").wait()
        return self.tile.image(self.box)


class TiedTile(Cells):
    """A box of cells of one controller; made by `Controller.tile`.

    A *tied* tile has both images, an *internal* one lives on the device alone, a *host* one on the
    host alone.  Indices are global: the first cell is `box.lower`.
    """

    def __init__(
        self,
        commands: Commands,
        geometry: Geometry,
        dtype: np.dtype[Any],
        kind: TileKind,
        memory: Tile | None,
        host: npt.NDArray[Any] | None,
    ) -> None:
        self.commands = commands    # of its controller
        self.geometry = geometry
        self._dtype = dtype
        self.kind = kind
        self.memory = memory    # the device's image
        self.host = host        # the host's image as a flat array; the same memory if shared
        shared = memory is not None and host is not None and memory.host is host
        self.coherence: Coherence[Event] = Coherence(one_memory=shared)

    @classmethod
    def zeroed(
        cls, commands: Commands, box: Shape, dtype: np.dtype[Any], kind: TileKind
    ) -> TiedTile:
        """A new tile, of memory of the controller's device and beside it."""
        geometry, executor = Geometry.dense(box), commands.executor
        memory = None if kind == "host" else executor.tile(geometry, dtype)
        host = memory.host if memory is not None and kind == "tied" else None
        if host is None and kind != "internal":
            host = executor.image(geometry.n_elements, dtype)
        return cls(commands, geometry, dtype, kind, memory, host)

    def __repr__(self) -> str:
        kind = f"freed {self.kind}" if self.freed else self.kind
        device = self.commands.executor.device.name
        return f"<{kind} tile {self.box} of {self.dtype} on {device!r}>"

    @property
    def tile(self) -> TiedTile:
        return self

    @property
    def box(self) -> Shape:
        return self.geometry.box

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._dtype

    @property
    def freed(self) -> bool:
        """Whether its memory has been given back."""
        return self.memory is None and self.host is None

    def check(self, by: Commands | None = None, image: Side | None = None) -> None:
        """RuntimeError where nothing can be done with it now.

        ValueError where it is freed, has no such image, or is not of the controller `by`.
        """
        self.commands.check()
        if by is not None and by is not self.commands:
            raise ValueError(
                f"{self!r} belongs to another controller than that of "
                f"{by.executor.device.name!r}; use its own, or copy it"
            )
        if self.freed:
            raise ValueError(f"the tile {self.box} has been freed; make a new one")
        if image is not None and (self.memory if image == "device" else self.host) is None:
            raise ValueError(f"{self!r} has no image on the {image}; make it a tied tile")

    def image(self, box: Shape) -> npt.NDArray[Any]:
        """The host's image of a box: a view, valid as the events of the tile say."""
        if box.empty:
            return np.empty(box.extent, self.dtype)
        assert self.host is not None, "a tile with an image on the host"
        return self.geometry.strided(box).view(self.host)


class Selection(Cells):
    """The cells `box` of a tile."""

    def __init__(self, tile: TiedTile, box: Shape) -> None:
        self._tile = tile
        self._box = box

    def __repr__(self) -> str:
        return f"<cells {self.box} of {self.tile!r}>"

    @property
    def tile(self) -> TiedTile:
        return self._tile

    @property
    def box(self) -> Shape:
        return self._box

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._tile.dtype


def cells_of(target: object) -> Cells:
    """`target`, if it is a tile or selection; TypeError otherwise."""
    if isinstance(target, Cells):
        return target
    raise wrong("cells", "a tile or selection of one", target, "make one with controller.tile(...)")


def box_of(over: object) -> Shape:
    """The cells that a launch computes; TypeError or ValueError where `over` has none to say."""
    if not isinstance(over, (Shape, Cells)):
        raise wrong("the cells of a launch", "a Shape, tile or selection", over, BOX_REMEDY)
    box = over if isinstance(over, Shape) else over.box
    if not 1 <= box.n_axes <= MAX_AXES:
        raise ValueError(
            f"a launch is over a box of 1 to {MAX_AXES} axes, got {box}; launch over another box"
        )
    return box
