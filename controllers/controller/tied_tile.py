# SPDX-License-Identifier: MIT
"""Tied tiles: boxes of cells with an image on the host and one on a device.

Which image is newest is known cell by cell, so that a read moves just the stale cells.  A
`Selection` is a box of a tile: it launches, moves and depends as the cells it covers.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Union

import numpy as np
import numpy.typing as npt

from controllers.device.event import AllOf, Event
from controllers.memory.coherence import Coherence
from controllers.memory.tile import Tile
from hitmap.argument import instance, wrong
from hitmap.shape import Shape
from hitmap.strided import Geometry

if TYPE_CHECKING:
    from controllers.controller.controller import Controller

Kind = Literal["tied", "internal", "host"]
BOX_REMEDY = "write Shape(lower, upper), or Shape.of_extent(sizes) for cells from the origin"
DONE: Event = AllOf(())     # of what the host has done itself


class TiedTile:
    """A box of cells of one controller; made by `Controller.tile`.

    A *tied* tile has both images, an *internal* one lives on the device alone, a *host* one on the
    host alone.  Indices are global: the first cell is `box.lower`.
    """

    def __init__(
        self,
        controller: Controller,
        geometry: Geometry,
        dtype: np.dtype[Any],
        kind: Kind,
        memory: Tile | None,
        host: npt.NDArray[Any] | None,
    ) -> None:
        self.controller = controller
        self.geometry = geometry
        self.dtype = dtype
        self.kind = kind
        self.memory = memory    # the device's image
        self.host = host        # the host's image as a flat array; the same memory if shared
        shared = memory is not None and host is not None and memory.host is host
        self.coherence: Coherence[Event] = Coherence(one_memory=shared)

    def __repr__(self) -> str:
        return f"<{self.kind} tile {self.box} of {self.dtype} on {self.controller.device.name!r}>"

    @property
    def box(self) -> Shape:
        """All its cells."""
        return self.geometry.box

    @property
    def whole(self) -> Selection:
        """The selection of all cells."""
        return Selection(self, self.box)

    @property
    def freed(self) -> bool:
        """Whether its memory has been given back."""
        return self.memory is None and self.host is None

    def select(self, cells: Shape) -> Selection:
        """The part `cells`, in global indices."""
        return self.whole.select(cells)

    def read(self) -> npt.NDArray[Any]:
        """A copy of all cells, when all that writes them is done."""
        return self.whole.read()

    def write(self, values: npt.ArrayLike) -> None:
        """Give all cells new values, when all that uses them is done."""
        self.whole.write(values)

    def image(self, cells: Shape) -> npt.NDArray[Any]:
        """The host's image of `cells`: a view, valid as the events of the tile say."""
        assert self.host is not None, "a tile with an image on the host"
        return self.geometry.strided(cells).view(self.host)


@dataclass(frozen=True, eq=False)
class Selection:
    """The cells `cells` of a tile."""

    tile: TiedTile
    cells: Shape

    def select(self, cells: Shape) -> Selection:
        """A part of it, in global indices."""
        instance(cells, Shape, "cells", BOX_REMEDY)
        if cells not in self.cells:
            raise ValueError(f"cells {cells} are not in the selection {self.cells}")
        return Selection(self.tile, cells)

    def read(self) -> npt.NDArray[Any]:
        """A copy of the cells, when all that writes them is done; moves the stale ones."""
        return self.tile.controller.read(self)

    def write(self, values: npt.ArrayLike) -> None:
        """Give the cells new values, when all that uses them is done."""
        self.tile.controller.write(self, values)


Target: TypeAlias = Union[TiedTile, Selection]


def selection_of(target: Target) -> Selection:
    """A tile as the selection of all its cells; TypeError where `target` is neither."""
    if isinstance(target, TiedTile):
        return target.whole
    if isinstance(target, Selection):
        return target
    raise wrong("cells", "a tile or selection of one", target, "make one with controller.tile(...)")
