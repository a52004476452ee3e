# SPDX-License-Identifier: MIT
"""One field of a computation, as an array that is distributed over places.

What is written as with NumPy gives the same on every rank, so that a program that knows nothing of
ranks runs under mpiexec: `run.u[2:5]`, `np.asarray(run.u)`.  `get` and `to_xarray` bring the whole
to one rank.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from html import escape
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from controllers.array.arrays import Arrays
from controllers.array.lazy import Distributed
from controllers.array.operand import Frame
from controllers.array.term import Leaf
from controllers.calls.call import collective, refuse_together
from controllers.engine import Engine
from controllers.fields.cells import put_section, section_of
from controllers.fields.data_array import data_array_type
from controllers.fields.field_access import FieldAccess
from controllers.fields.field_slice import FieldSlice
from controllers.fields.indexed import Indexed
from controllers.fields.origin import Origin
from controllers.settings.domain import place_of
from controllers.settings.initial import Given, Place, initials
from hitmap.agreement import on_all_ranks, raise_together
from hitmap.conversion import with_one_nan
from hitmap.scatter import everywhere, gather, scatter
from hitmap.section import Section

if TYPE_CHECKING:
    import xarray

Root = int | Literal["all"]


class OneField(FieldAccess, Indexed):
    """One field of a computation: `run.u`, `run["u"]`.

    NumPy's functions and operators on it are lazy, and `run.u[...] = 2 * np.sqrt(run.v)` is one
    kernel on its devices (docs/arrays.md).  `run.u[2:10, ::2]` is a view of some cells, and
    `run.u[..., 0] = 1` sets them, by NumPy's indices; each rank moves only its own cells.
    All methods are collective; what is looked at as with NumPy every rank has, and of an array that
    is written that of rank 0 counts.
    """

    __slots__ = ("arrays",)
    arrays: Arrays

    def __init__(self, computation: FieldAccess, field: str) -> None:
        self.comm, self.calls, self.state = computation.comm, computation.calls, computation.state
        self._computation, self._field, self.arrays = computation, field, computation._arrays

    def _moves(self, section: Section, values: Distributed) -> bool:
        origin = _origin(values)
        if origin is None or not origin.goes_to(self, section):
            return False
        self._move(section, origin.facts, origin)
        return True

    def taken(self, section: Section) -> npt.NDArray[Any]:
        """The cells of a section on every rank, axes that had a whole number included."""
        whole: npt.NDArray[Any] = self._read(section, "all")
        return whole

    def is_of(self, computation: object, field: str) -> bool:
        """Whether it is this field of a computation."""
        return self._computation is computation and self._field == field

    @property
    def _arrays(self) -> Arrays:
        return self.arrays

    def operand(self) -> tuple[Leaf, Frame]:
        return self.arrays.whole(self._field)

    def _whole(self) -> npt.NDArray[Any]:
        return self.taken(self._section("read", ...))

    def get(self, root: Root = 0) -> npt.NDArray[Any] | None:
        """The whole field on the rank `root`, None on the others; on every rank for "all"."""
        whole: npt.NDArray[Any] | None = self._read(self._section("get", ...), root)
        return whole

    def set(self, values: Given) -> None:
        """Set all cells to a number, an array, what a function of coordinates gives, or a file.

        As the keywords of `Computation` do; steps are counted on.
        """
        self.state.check_idle("set")
        wanted = refuse_together(
            self.comm, lambda: initials({self._field: values}, self.fields, self.where_cells_lie)
        )
        for initial in wanted:
            self._set(initial)

    def from_xarray(self, array: xarray.DataArray) -> None:
        """Set all cells to those of an xarray.DataArray, whose axes are put in the grid's order."""
        self.set(array)

    def to_xarray(self, root: Root = 0) -> xarray.DataArray | None:
        """The whole as an xarray.DataArray on the rank `root`, None on the others; "all": on all.

        Its axes and coordinates are those of the grid.
        """
        made = data_array_type()    # before the cells are brought
        whole = self.get(root)
        if whole is None:
            return None
        return made(whole, dims=self.dims, coords=self.coords, name=self._field)

    @property
    def shape(self) -> tuple[int, ...]:
        """Cells per axis."""
        return self.operand()[1].extent

    @property
    def dtype(self) -> np.dtype[Any]:
        """What each cell holds."""
        return np.dtype(self.arrays.fields[self._field].dtype)

    @property
    def size(self) -> int:
        """Cells."""
        return self._layout.domain.n_cells

    @property
    def nbytes(self) -> int:
        """Bytes of all cells, each once."""
        return self.size * self.dtype.itemsize

    @property
    def dims(self) -> tuple[str, ...]:
        """The names of the axes: the grid's, else x, y x, z y x."""
        return self.where_cells_lie.axes.axes

    @property
    def coords(self) -> dict[str, npt.NDArray[np.float64]]:
        """Where the cells, or half points, lie along each axis; none where there is no grid."""
        place = self.where_cells_lie
        if place.grid is None:
            return {}
        return {axis: place.along(n, 0, self.shape[n]) for n, axis in enumerate(place.grid.axes)}

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        """Of the whole, as it is now."""
        return iter(self._whole())

    def __repr__(self) -> str:
        cells = " x ".join(map(str, self.shape))
        return f"<{self._field} of {self.calls.owner}: {cells} cells of {self.dtype}>"

    def __str__(self) -> str:
        """What is known without its cells, as a field may be large; not collective."""
        return repr(self)

    def _repr_html_(self) -> str:
        """A table of what is known without its cells; not collective."""
        rows = {
            "shape": " x ".join(f"{axis} {n}" for axis, n in zip(self.dims, self.shape)),
            "dtype": str(self.dtype),
            "bytes": f"{self.nbytes:,}",
            "places": str(self._layout.n_places),
        }
        cells = (f"<tr><th>{name}</th><td>{escape(said)}</td></tr>" for name, said in rows.items())
        title = f"{self._field} of {self.calls.owner}"
        return f"<table><caption>{escape(title)}</caption>{''.join(cells)}</table>"

    @property
    def fields(self) -> tuple[str, ...]:
        return (self._field,)

    @property
    def _alike(self) -> Mapping[str, str]:
        return self._computation._alike

    @property
    def _engine(self) -> Engine:
        return self._computation._engine

    @property
    def where_cells_lie(self) -> Place:
        """Its cells, or points, and their coordinates."""
        return place_of(self._engine.plan.program, self._field, self.shape)

    def _section(self, verb: str, index: object) -> Section:
        """The cells of an index; what is wrong with it is an error on all ranks."""
        self.state.check_idle(verb)
        extent = self.arrays.whole(self._field)[1].extent
        try:
            return Section.of(index, extent)
        except (IndexError, TypeError, ValueError):
            return refuse_together(self.comm, lambda: Section.of(index, extent))

    @collective("fields", "section", "root", use="reads", beside="reads")
    def _read(self, section: Section, root: Root) -> Any:
        """The cells on `root`, or everywhere, axes that had a whole number included."""
        engine, layout = self._engine, section.divided(self._layout)
        parts = {
            place: with_one_nan(
                section_of(engine, self._field, place, section, layout.owned[place])
            )
            for place in engine.executors
        }
        at = 0 if root == "all" else root
        whole = gather(parts, layout, self._ranks, self.comm, self.dtype, at)
        if root == "all":
            return everywhere(whole, layout.domain, self.dtype, self.comm)
        return whole

    @collective("fields", "section", "told", use="reads")
    def _move(self, section: Section, told: object, origin: Origin) -> None:
        """Set the cells of a section to others, which are `told` to be the same on all ranks."""
        origin.check(self)
        with self._setting() as engine:
            origin.move_to(self, section)
            engine.loaded(engine.n_steps)

    @collective("fields", "section", use="reads")
    def _write(self, section: Section, values: npt.ArrayLike) -> None:
        layout = section.divided(self._layout)
        whole = problem = None
        if self.comm.rank == 0:
            try:
                whole = section.spread(values)
            except (TypeError, ValueError) as error:
                problem = f"{self._field}: {error}"
        raise_together(self.comm, problem)
        try:
            parts = scatter(whole, layout, self._ranks, self.comm, 0, self.dtype)
        except ValueError as error:     # which all ranks have
            raise on_all_ranks(ValueError(f"{self._field}: {error}")) from None
        with self._setting() as engine:
            for place, cells in parts.items():
                put_section(engine, self._field, place, section, layout.owned[place], cells)
            engine.loaded(engine.n_steps)

    @contextmanager
    def _setting(self) -> Iterator[Engine]:
        """Some cells are set meanwhile."""
        engine = self._engine
        self.arrays.settle(self.fields)
        with self.state.setting("write", self.fields):
            yield engine


def _origin(values: Distributed) -> Origin | None:
    """The cells of a field that these are; None where they are computed."""
    if isinstance(values, OneField):
        return Origin(values, Section.of(..., values.shape))
    shown = values.shown if isinstance(values, FieldSlice) else None
    if shown is None or not isinstance(shown[0], FieldAccess):
        return None
    return Origin(shown[0], shown[1])
