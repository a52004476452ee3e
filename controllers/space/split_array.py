# SPDX-License-Identifier: MIT
"""Arrays whose rows are divided over places: NumPy's operators compute where the rows lie."""
from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt

from controllers.array.operand import Frame
from controllers.array.term import Leaf
from controllers.calls.call import Calls, collective, refuse_together
from controllers.calls.state import State
from controllers.fields.indexed import Indexed
from controllers.space.home import CELLS, Home
from hitmap.agreement import on_all_ranks, raise_together
from hitmap.argument import file_name
from hitmap.comm import Communicator
from hitmap.npy import NpyWriter
from hitmap.section import Section


class SplitArray(Indexed):
    """An array of a workspace, its rows divided over the places: `on.array(values)`.

    What is written of it as with NumPy is computed where the rows lie (docs/workspace.md).  All is
    collective; what is looked at every rank has, and of an array that is written that of rank 0
    counts.
    """

    __slots__ = ("__weakref__", "arrays", "calls", "comm", "home", "source", "state")

    def __init__(
        self, home: Home, dtype: str, comm: Communicator, calls: Calls, state: State
    ) -> None:
        """What it holds is undefined.  Collective."""
        self.home, self.arrays = home, home.arrays
        self.comm, self.calls, self.state = comm, calls, state
        self.source = self.arrays.added(dtype, CELLS)
        self.source.assigned()

    def __del__(self) -> None:
        if hasattr(self, "source"):     # there was room for it
            self.arrays.dropped(self.source.name)

    @property
    def fields(self) -> tuple[str, ...]:
        return (self.source.name,)

    def operand(self) -> tuple[Leaf, Frame]:
        return self.arrays.whole(self.source.name)

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows, and what each row has."""
        return self.home.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """What each element holds."""
        return np.dtype(self.source.dtype)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements, each once."""
        return self.size * self.dtype.itemsize

    def __repr__(self) -> str:
        cells = " x ".join(map(str, self.shape))
        n_places = self.home.layout.n_places
        places = "1 place" if n_places == 1 else f"{n_places} places"
        return f"<an array of {self.calls.owner}: {cells} of {self.dtype}, rows on {places}>"

    def __str__(self) -> str:
        """What is known without its elements, as it may be large; not collective."""
        return repr(self)

    @property
    def facts(self) -> dict[str, object]:
        """What is the same on all ranks when they use the array."""
        return {"array": self.source.key, "shape": self.shape}

    def taken(self, section: Section) -> npt.NDArray[Any]:
        whole: npt.NDArray[Any] = self._read(section)
        return whole

    def _whole(self) -> npt.NDArray[Any]:
        return self.taken(self._section("read", ...))

    def _section(self, verb: str, index: object) -> Section:
        self.state.check_idle(verb)
        return refuse_together(self.comm, lambda: Section.of(index, self.shape))

    @collective("section", use="reads")
    def _read(self, section: Section) -> npt.NDArray[Any]:
        return self.arrays.gathered(self.source.name, section)

    @collective("section", use="reads")
    def _write(self, section: Section, values: npt.ArrayLike) -> None:
        whole = problem = None
        if self.comm.rank == 0:
            try:
                whole = section.spread(values)
            except (TypeError, ValueError) as error:
                problem = str(error)
        raise_together(self.comm, problem)
        self.arrays.settle(self.fields)
        self.arrays.pending.finish()
        try:
            self.arrays.store.put(self.source, section, whole)
        except ValueError as error:     # which all ranks have
            raise on_all_ranks(error) from None
        self.source.assigned()

    @collective("path", use="reads")
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a .npy file, each rank its own rows; no rank holds the whole.

        OSError on all ranks, and no file, if that fails on any of them.
        """
        file_name(path, "path")
        self.arrays.pending.finish()
        with NpyWriter(path, self.home.layout.domain, self.dtype, self.comm) as file:
            for box, cells in self.arrays.store.pieces(self.source):
                file.write(box, cells)
                self.calls.go_on()
