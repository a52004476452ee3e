# SPDX-License-Identifier: MIT
"""The verbs for fields: how `init`, `output`, arrays and files set and see their cells.

What is set from elsewhere is converted as `hitmap.conversion` says; `output` sees the cells as they
are in the tiles, and arrays and files get them with one kind of NaN.
"""
from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from controllers.array.arrays import Arrays
from controllers.calls.call import Calls, collective, noted, together
from controllers.calls.state import State
from controllers.engine import Engine
from controllers.fields.cells import cells_of, dtype_of, pieces, put_by, put_values, tile_view
from controllers.fields.given_values import given_values, of_file, opened_together
from controllers.memory.tile import TileView
from controllers.process.errand import errand
from controllers.settings.initial import Initial
from hitmap.agreement import on_all_ranks, raise_together
from hitmap.argument import file_name, function
from hitmap.comm import Communicator
from hitmap.conversion import with_one_nan
from hitmap.layout import Layout
from hitmap.npy import NpyWriter, read_into
from hitmap.scatter import gather, scatter


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
    def _alike(self) -> Mapping[str, str]:
        """The temporary fields of methods, and which field each begins as."""

    @property
    @abstractmethod
    def _engine(self) -> Engine:
        """What holds the fields now."""

    @property
    @abstractmethod
    def _arrays(self) -> Arrays:
        """Where what is computed of the fields as arrays is computed."""

    def load(self, init: Callable[[TileView], None] | str | os.PathLike[str]) -> None:
        """Set the fields: `init` is called once per place of this rank, its arrays zeroed.

        Steps count from 0 again where that sets all fields.  Not collective by itself.  What `init`
        assigns to an array is converted by NumPy, which wraps integers; `TileView.write` refuses
        what does not fit.  The name of a .npy file, of one field, is for `load_file`.
        """
        if isinstance(init, (str, os.PathLike)):
            self.load_file(init)
        else:
            self._load(init)

    @noted(use="sets")
    def _load(self, init: Callable[[TileView], None]) -> None:
        function(init, "init")
        self._set_by(init, "load")

    @noted(use="reads", beside="reads")
    def visit(self, output: Callable[[TileView], None]) -> None:
        """Look at the fields: `output` is called once per place of this rank.

        An array may be the tile's own memory: copy what you keep, and change the field by
        `load` alone.  Not collective by itself.
        """
        function(output, "output")
        for place in self._engine.executors:
            owned = {field: self._engine.plan.owned(field, place) for field in self.fields}
            arrays = {f: cells_of(self._engine, f, place, box) for f, box in owned.items()}
            output(tile_view(self._engine, arrays, place))

    @collective("fields", "root", use="sets")
    def scatter(self, whole: npt.NDArray[Any] | None, root: int = 0) -> None:
        """Set the field from an array that `root` holds (None elsewhere).

        ValueError on all ranks, and the field as it was, if a value does not fit the dtype.
        """
        dtype = dtype_of(self._engine, self._one("scatter"))
        parts = scatter(whole, self._layout, self._ranks, self.comm, root, dtype)
        self._set_by(lambda tile: np.copyto(tile.array, parts[tile.place]), "scatter")

    def gather(
        self,
        field: str | int | None = None,
        root: int = 0,
        out: npt.NDArray[Any] | None = None,
    ) -> npt.NDArray[Any] | None:
        """The whole field on `root`, into `out` if given there; None on the other ranks.

        field: its name, where there are several; a number in its place is the root.
        """
        if field is None or isinstance(field, str):
            return self._named(field)._gather(root, out)
        return self._gather(field, out)

    @collective("fields", "root", use="reads", beside="reads")
    def _gather(self, root: int, out: npt.NDArray[Any] | None) -> npt.NDArray[Any] | None:
        field = self._one("gather")
        parts = {
            place: with_one_nan(cells_of(self._engine, field, place, self._layout.owned[place]))
            for place in self._engine.executors
        }
        dtype = dtype_of(self._engine, field)
        return gather(parts, self._layout, self._ranks, self.comm, dtype, root, out)

    @collective("fields", "path", use="sets")
    def load_file(self, path: str | os.PathLike[str]) -> None:
        """Set the field from a .npy file that all ranks can read; each reads its own cells.

        ValueError on all ranks if it cannot be read, is another file on some rank, has another
        extent, or does not fit the dtype, which is found while the field is being set.
        """
        file_name(path, "path")
        self._one("load_file")
        whole = opened_together(path, self._layout.domain.extent, self.comm)
        problem = None
        try:
            with errand(f"the reading of {path}"):
                self._set_by(lambda tile: read_into(whole, tile.box, tile.array), "load_file")
        except (OSError, ValueError) as error:
            problem = of_file(path, error)
        raise_together(self.comm, problem)

    @collective("fields", "path", use="reads", beside="reads")
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the field to a .npy file, each rank its own cells; no rank holds the whole.

        OSError on all ranks, and no file, if that fails on any of them.
        """
        file_name(path, "path")
        field = self._one("save")
        dtype = dtype_of(self._engine, field)
        with NpyWriter(path, self._layout.domain, dtype, self.comm) as file:
            for box, cells in pieces(self._engine, field):
                file.write(box, with_one_nan(cells))
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

    def _named(self, field: str | None) -> FieldAccess:
        """The field of this name; None for the only one."""
        if field is not None and field not in self.fields:
            raise KeyError(f"there is no field {field!r}; there are {', '.join(self.fields)}")
        return self

    def _set_by(self, init: Callable[[TileView], None], verb: str) -> None:
        """`init` sets the cells of each place, zeroed before."""
        sources = self._sources(self.fields)
        self._arrays.settle(sources, views=True, agreed=False)
        with self.state.setting(verb, sources):
            for place in self._engine.executors:
                put_by(self._engine, sources, place, init)
            is_all = len(sources) == len(self._engine.plan.program.fields)
            self._engine.loaded(0 if is_all else self._engine.n_steps)

    @collective("fields", "initial", use="sets")
    def _set(self, initial: Initial) -> None:
        """Set fields to what is given for them; steps are counted on."""
        engine, sources = self._engine, self._sources(initial.fields)
        values_of = given_values(initial, engine, self.comm)
        self._arrays.settle(sources, views=True)
        with self.state.setting("set", sources), together(self.comm, initial.name):
            for place in engine.executors:
                put_values(engine, sources, place, partial(values_of, place))
        engine.loaded(engine.n_steps)

    def _sources(self, fields: Sequence[str]) -> dict[str, str]:
        """What is set with these fields, and which of them has its values."""
        alike = {own: field for own, field in self._alike.items() if field in fields}
        return {**{field: field for field in fields}, **alike}

    @property
    def _layout(self) -> Layout:
        """Of the one field."""
        return self._engine.plan.layout_of(self.fields[0])

    @property
    def _ranks(self) -> tuple[int, ...]:
        return tuple(location.rank for location in self._engine.plan.locations)

