# SPDX-License-Identifier: MIT
"""The cells of fields in the tiles of an engine, as `init`, `output`, arrays and files see them.

What is set from elsewhere is converted as `hitmap.conversion` says; what `cells` gives is as it is
in the tiles, and arrays and files get it with one kind of NaN.
"""
from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from controllers.engine import Engine
from controllers.memory.tile import Tile, TileView
from controllers.placement.relocation import CHUNK_CELLS
from controllers.process.errand import errand
from controllers.run.call import Calls, collective, noted
from controllers.run.state import State
from hitmap.agreement import agree_on_call, on_all_ranks, raise_together
from hitmap.argument import file_name, function
from hitmap.comm import Communicator
from hitmap.conversion import with_one_nan
from hitmap.layout import Layout
from hitmap.npy import NpyWriter, fingerprint, open_npy, read_into
from hitmap.scatter import gather, scatter
from hitmap.shape import Shape
from hitmap.strided import consecutive


class FieldAccess(ABC):
    """The verbs for fields: of a computation for all of them, of `computation["u"]` for one.

    Methods are collective unless they say otherwise; those for arrays and files are for one field.
    """

    comm: Communicator
    calls: Calls
    state: State

    @property
    @abstractmethod
    def fields(self) -> tuple[str, ...]:
        """The names of the fields that are meant."""

    @property
    @abstractmethod
    def _engine(self) -> Engine:
        """What holds the fields now."""

    @noted(use="sets")
    def load(self, init: Callable[[TileView], None]) -> None:
        """Set the fields: `init` is called once per place of this rank, its arrays zeroed.

        Steps count from 0 again where that sets all fields.  Not collective by itself.  What `init`
        assigns to an array is converted by NumPy, which wraps integers; `TileView.write` refuses
        what does not fit.
        """
        function(init, "init")
        self._set(init, "load")

    @noted(use="reads")
    def visit(self, output: Callable[[TileView], None]) -> None:
        """Look at the fields: `output` is called once per place of this rank.

        An array may be the tile's own memory: copy what you keep, and change the field by
        `load` alone.  Not collective by itself.
        """
        function(output, "output")
        for place in self._engine.executors:
            owned = self._layout.owned[place]
            arrays = {field: self._cells(field, place, owned) for field in self.fields}
            output(TileView(arrays, owned, self._layout.domain.extent, place))

    @collective("fields", "root", use="sets")
    def scatter(self, whole: npt.NDArray[Any] | None, root: int = 0) -> None:
        """Set the field from an array that `root` holds (None elsewhere).

        ValueError on all ranks, and the field as it was, if a value does not fit the dtype.
        """
        dtype = self._dtype(self._one("scatter"))
        parts = scatter(whole, self._layout, self._ranks, self.comm, root, dtype)
        self._set(lambda tile: np.copyto(tile.array, parts[tile.place]), "scatter")

    @collective("fields", "root", use="reads")
    def gather(
        self, root: int = 0, out: npt.NDArray[Any] | None = None
    ) -> npt.NDArray[Any] | None:
        """The whole field on `root`, into `out` if given there; None on the other ranks."""
        field = self._one("gather")
        parts = {
            place: with_one_nan(self._cells(field, place, self._layout.owned[place]))
            for place in self._engine.executors
        }
        dtype = self._dtype(field)
        return gather(parts, self._layout, self._ranks, self.comm, dtype, root, out)

    @collective("fields", "path", use="sets")
    def load_file(self, path: str | os.PathLike[str]) -> None:
        """Set the field from a .npy file that all ranks can read; each reads its own cells.

        ValueError on all ranks if it cannot be read, is another file on some rank, has another
        extent, or does not fit the dtype, which is found while the field is being set.
        """
        file_name(path, "path")
        self._one("load_file")
        whole, problem = self._opened(path)
        raise_together(self.comm, problem)
        assert whole is not None, "or there was a problem"
        if self.comm.size > 1:
            agree_on_call(self.comm, f"load_file of {path}", {"the content": fingerprint(path)})
        try:
            with errand(f"the reading of {path}"):
                self._set(lambda tile: read_into(whole, tile.box, tile.array), "load_file")
        except (OSError, ValueError) as error:
            problem = _of_file(path, error)
        raise_together(self.comm, problem)

    @collective("fields", "path", use="reads")
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the field to a .npy file, each rank its own cells; no rank holds the whole.

        OSError on all ranks, and no file, if that fails on any of them.
        """
        file_name(path, "path")
        field = self._one("save")
        with NpyWriter(path, self._layout.domain, self._dtype(field), self.comm) as file:
            for place in self._engine.executors:
                for box in consecutive(self._layout.owned[place], CHUNK_CELLS):
                    file.write(box, with_one_nan(self._cells(field, place, box)))
                    self.calls.go_on()

    @property
    def facts(self) -> dict[str, object]:
        """What is the same on all ranks when they use the field."""
        return {"steps so far": self._engine.n_steps}

    def _one(self, verb: str) -> str:
        """The name of the one field; ValueError, on all ranks alike, where there are several."""
        if len(self.fields) > 1:
            raise on_all_ranks(ValueError(
                f"{verb}: the program has the fields {', '.join(self.fields)}; say which one, such "
                f"as computation[{self.fields[0]!r}].{verb}(...)"
            ))  # fmt: skip
        return self.fields[0]

    def _set(self, init: Callable[[TileView], None], verb: str) -> None:
        """`init` sets the cells of each place, zeroed before."""
        with self.state.setting(verb, self.fields):
            for place in self._engine.executors:
                self._set_place(place, init)
            is_all = len(self.fields) == len(self._engine.plan.program.fields)
            self._engine.loaded(0 if is_all else self._engine.n_steps)

    def _set_place(self, place: int, init: Callable[[TileView], None]) -> None:
        owned, executor = self._layout.owned[place], self._engine.executors[place]
        tiles = {
            field: [] if owned.empty else self._engine.to_set(field, place)
            for field in self.fields
        }
        arrays = {
            field: self._view(field, place, buffers[0] if buffers else None, owned)
            for field, buffers in tiles.items()
        }
        for array in arrays.values():
            array[...] = 0
        init(TileView(arrays, owned, self._layout.domain.extent, place))
        for field, array in arrays.items():
            for tile in tiles[field]:       # all buffers: a step writes no boundary cells
                if tile.host is None or tile is not tiles[field][0]:
                    executor.move_to(tile, owned, array)

    def _cells(self, field: str, place: int, box: Shape) -> npt.NDArray[Any]:
        """Some of the cells that a place owns: in the tile, or a copy."""
        tile = None if box.empty else self._engine.newest(field, place)
        if tile is None or tile.host is not None:
            return self._view(field, place, tile, box)
        return self._engine.executors[place].move_from(tile, box)

    def _opened(
        self, path: str | os.PathLike[str]
    ) -> tuple[npt.NDArray[Any] | None, str | None]:
        """The array of a file, or why it cannot be loaded."""
        extent = self._layout.domain.extent
        try:
            whole = open_npy(path)
            if whole.shape != extent:
                raise ValueError(f"has {whole.shape} cells, the field {extent}")
        except (OSError, ValueError) as error:
            return None, _of_file(path, error)
        return whole, None

    @property
    def _layout(self) -> Layout:
        return self._engine.plan.layout

    @property
    def _ranks(self) -> tuple[int, ...]:
        return tuple(location.rank for location in self._engine.plan.locations)

    def _dtype(self, field: str) -> np.dtype[Any]:
        return np.dtype(self._engine.plan.program.field(field).dtype)

    def _view(self, field: str, place: int, tile: Tile | None, box: Shape) -> npt.NDArray[Any]:
        """The cells of `tile` in place, or a new array if they are not in host memory."""
        if tile is not None and tile.host is not None:
            return tile.view(box)
        array = np.empty(box.extent, self._dtype(field))
        self._engine.executors[place].ledger.hold(array, array.nbytes, "host images")
        return array


class OneField(FieldAccess):
    """One field of a computation."""

    def __init__(self, computation: FieldAccess, field: str) -> None:
        self.comm, self.calls, self.state = computation.comm, computation.calls, computation.state
        self._computation, self._field = computation, field

    def __repr__(self) -> str:
        cells = " x ".join(map(str, self._layout.domain.extent))
        return f"<{self._field} of {self.calls.owner}: {cells} cells of {self._dtype(self._field)}>"

    @property
    def fields(self) -> tuple[str, ...]:
        return (self._field,)

    @property
    def _engine(self) -> Engine:
        return self._computation._engine


def _of_file(path: str | os.PathLike[str], error: Exception) -> str:
    text = error.strerror if isinstance(error, OSError) else None
    return f"{os.fspath(path)}: {text or error}"
