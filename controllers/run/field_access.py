# SPDX-License-Identifier: MIT
"""The cells of a field in the tiles of an engine, as `init`, `output`, arrays and files see them.

What is set from elsewhere is converted as `hitmap.conversion` says; what `cells` gives is as it is
in the tiles, and arrays and files get it with one kind of NaN.
"""
from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from controllers.engine import Engine
from controllers.memory.tile import Tile, TileView
from controllers.placement.relocation import CHUNK_CELLS
from controllers.process.errand import errand
from controllers.program.identifier import short
from controllers.program.program import Program
from controllers.run.state import State
from hitmap.agreement import agree_on_call, raise_together
from hitmap.comm import Communicator
from hitmap.conversion import with_one_nan
from hitmap.npy import NpyWriter, fingerprint, open_npy, read_into
from hitmap.scatter import gather, scatter
from hitmap.shape import Shape
from hitmap.strided import consecutive


class FieldAccess:
    """The cells that this rank owns of one field; setting them tells `state`.

    Without a name it is the only field of the program; ValueError where there are several.
    """

    def __init__(
        self, engine: Engine, comm: Communicator, state: State, field: str | None = None
    ) -> None:
        self._engine = engine
        self._field = _named(engine.plan.program, field)
        self._comm = comm
        self._state = state
        self._layout = engine.plan.layout
        self._owned = engine.plan.layout.owned
        self._domain = engine.plan.layout.domain.extent
        self._dtype = np.dtype(engine.plan.program.dtype)

    def load(self, init: Callable[[TileView], None], verb: str = "load") -> None:
        """`init` sets the cells of each place, zeroed before; steps count from 0 again."""
        with self._state.setting(verb):
            for place, executor in self._engine.executors.items():
                owned = self._owned[place]
                tiles = [] if owned.empty else self._engine.to_set(self._field, place)
                array = self._view(place, tiles[0] if tiles else None, owned)
                array[...] = 0
                init(TileView(array, owned, self._domain, place))
                for tile in tiles:      # all buffers: a step writes no boundary cells
                    if tile.host is None or tile is not tiles[0]:
                        executor.move_to(tile, owned, array)
            self._engine.loaded()

    def visit(self, output: Callable[[TileView], None]) -> None:
        """`output` sees the cells of each place as they are now."""
        for place in self._engine.executors:
            owned = self._owned[place]
            output(TileView(self.cells(place, owned), owned, self._domain, place))

    def scatter(self, whole: npt.NDArray[Any] | None, root: int) -> None:
        """Set all cells from an array on `root`; a value that does not fit leaves them alone."""
        parts = scatter(whole, self._layout, self._ranks, self._comm, root, self._dtype)
        self.load(lambda tile: np.copyto(tile.array, parts[tile.place]), "scatter")

    def gather(self, root: int, out: npt.NDArray[Any] | None) -> npt.NDArray[Any] | None:
        """All cells on `root`."""
        places = self._engine.executors
        parts = {place: with_one_nan(self.cells(place, self._owned[place])) for place in places}
        return gather(parts, self._layout, self._ranks, self._comm, self._dtype, root, out)

    def read(self, path: str | os.PathLike[str]) -> None:
        """Set all cells from a .npy file, each rank its own; ValueError on all ranks."""
        whole, problem = self._opened(path)
        raise_together(self._comm, problem)
        assert whole is not None, "or there was a problem"
        if self._comm.size > 1:
            agree_on_call(self._comm, f"load_file of {path}", {"the content": fingerprint(path)})
        try:
            with errand(f"the reading of {path}"):
                self.load(lambda tile: read_into(whole, tile.shape, tile.array), "load_file")
        except (OSError, ValueError) as error:
            problem = _of_file(path, error)
        raise_together(self._comm, problem)

    def write(self, path: str | os.PathLike[str], go_on: Callable[[], None]) -> None:
        """Write all cells to a .npy file, each rank its own; calls `go_on` after every part."""
        with NpyWriter(path, self._layout.domain, self._dtype, self._comm) as file:
            for place in self._engine.executors:
                for box in consecutive(self._owned[place], CHUNK_CELLS):
                    file.write(box, with_one_nan(self.cells(place, box)))
                    go_on()

    def cells(self, place: int, box: Shape) -> npt.NDArray[Any]:
        """Some of the cells that a place owns: in the tile, or a copy."""
        tile = None if box.empty else self._engine.newest(self._field, place)
        if tile is None or tile.host is not None:
            return self._view(place, tile, box)
        return self._engine.executors[place].move_from(tile, box)

    @property
    def _ranks(self) -> tuple[int, ...]:
        return tuple(location.rank for location in self._engine.plan.locations)

    def _opened(
        self, path: str | os.PathLike[str]
    ) -> tuple[npt.NDArray[Any] | None, str | None]:
        """The array of a file, or why it cannot be loaded."""
        try:
            whole = open_npy(path)
            if whole.shape != self._domain:
                raise ValueError(f"has {whole.shape} cells, the field {self._domain}")
        except (OSError, ValueError) as error:
            return None, _of_file(path, error)
        return whole, None

    def _view(self, place: int, tile: Tile | None, box: Shape) -> npt.NDArray[Any]:
        """The cells of `tile` in place, or a new array if they are not in host memory."""
        if tile is not None and tile.host is not None:
            return tile.view(box)
        array = np.empty(box.extent, self._dtype)
        self._engine.executors[place].ledger.hold(array, array.nbytes, "host images")
        return array


def _named(program: Program, field: str | None) -> str:
    names = [described.name for described in program.fields]
    if field is None and len(names) == 1:
        return names[0]
    if field not in names:
        got = "none was named" if field is None else f"got {short(field)}"
        raise ValueError(
            f"program {program.name!r} has the fields {', '.join(names)}, {got}; name one of them"
        )
    return field


def _of_file(path: str | os.PathLike[str], error: Exception) -> str:
    text = error.strerror if isinstance(error, OSError) else None
    return f"{os.fspath(path)}: {text or error}"
