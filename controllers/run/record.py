# SPDX-License-Identifier: MIT
"""Records: points, lines and slices of a field, or a result, sampled while steps run.

Samples stay on the ranks that own the cells until somebody asks for all of them.
"""
from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from controllers.engine import Engine
from controllers.fields.cells import dtype_of
from controllers.fields.data_array import data_array_type
from controllers.fields.sampling import Part, own_cells, put_together
from controllers.fields.selection import Selection
from controllers.picture.records import plotted
from controllers.run.results import Results
from hitmap.comm import Communicator

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

class Record:
    """What was sampled after every so many steps; all ranks know when, each has its own cells.

    steps, times: of the samples.  dims, shape: the axes of each, and cells along them.  coords:
    where these lie, along axes that were dropped, too; none where there is no grid.
    """

    def __init__(
        self,
        name: str,
        every: int,
        comm: Communicator,
        engine: Callable[[], Engine],
        selection: Selection | None,
    ) -> None:
        self.name, self.every = name, every
        self.steps: list[int] = []
        self.times: list[float] = []
        self.dims = () if selection is None else selection.dims
        self.shape = () if selection is None else selection.shape
        self.coords = {} if selection is None else selection.coords
        self._comm, self._selection = comm, selection
        self._engine = engine      # gives the engine, which is another one after a division
        self._dtype = None if selection is None else dtype_of(engine(), name)
        self._samples: list[list[Part]] = []
        self._values: list[Any] = []    # of a result

    @property
    def of_fields(self) -> bool:
        """Whether it samples a field, no result."""
        return self._selection is not None

    def left(self, step: int) -> int:
        """Steps from `step` to the next sample."""
        return self.every - step % self.every

    def look(self, now: Results) -> bool:
        """Take a sample; the run goes on."""
        self.steps.append(now.step)
        self.times.append(now.time)
        if self._selection is None:
            self._values.append(now[self.name])
        else:
            self._samples.append(own_cells(self._engine(), self.name, self._selection))
        return False

    def cut(self, step: int) -> None:
        """Drop the samples of steps after this one."""
        count = sum(one <= step for one in self.steps)
        for kept in (self.steps, self.times, self._samples, self._values):
            del kept[count:]

    @property
    def values(self) -> list[Any] | None:
        """All samples of a result; None of a field."""
        return None if self.of_fields else [*self._values]

    @property
    def dtype(self) -> np.dtype[Any]:
        """What each cell of a sample holds."""
        assert self._dtype is not None, "of a field"
        return self._dtype

    @property
    def said(self) -> dict[str, object]:
        """What it samples, and how often, in words and numbers."""
        return {"of": self.name, "every": self.every, "shape": [*self.shape]}

    def go_on(
        self, steps: Sequence[int], times: Sequence[float],
        samples: npt.NDArray[Any] | Sequence[Any],
    ) -> None:  # fmt: skip
        """These have been taken before, as `get` gives them; those of fields on one rank alone."""
        self.steps[:], self.times[:] = steps, times
        if self._selection is None:
            self._values[:] = samples
            return
        at = tuple(np.arange(len(chosen)) for chosen in self._selection.chosen)
        extent = tuple(map(len, at))
        parts = [[(at, one.reshape(extent))] for one in samples] or [[] for _ in steps]
        self._samples[:] = parts

    def __len__(self) -> int:
        return len(self.steps)

    def get(self, root: int = 0) -> npt.NDArray[Any] | None:
        """All samples, [samples][cells ...], on the rank `root`; None on the others.  Collective.
        """
        return self.some(range(len(self)), root)

    def some(self, numbers: Sequence[int], root: int = 0) -> npt.NDArray[Any] | None:
        """The samples of these numbers, 0 the first, as `get` has all.  Collective."""
        if self._selection is None:
            values = np.array([self._values[n] for n in numbers])
            return values if self._comm.rank == root else None
        everyone = self._comm.gather([self._samples[n] for n in numbers], root)
        if everyone is None:
            return None
        whole = np.empty((len(numbers), *self.shape), self._dtype)
        for n in range(len(numbers)):
            parts = [samples[n] for samples in everyone]
            whole[n] = put_together(parts, self._selection, self.dtype).reshape(self.shape)
        return whole

    @property
    def time(self) -> tuple[str, npt.NDArray[Any]]:
        """What the samples are along, and where: `t` where steps take time, else `step`."""
        return ("t", np.array(self.times)) if any(self.times) else ("step", np.array(self.steps))

    def to_xarray(self, root: int = 0) -> xarray.DataArray | None:
        """All samples as an xarray.DataArray on the rank `root`; None on the others.  Collective.

        Its first axis is `t` where steps take time, else `step`; axes that were dropped are
        coordinates without one.
        """
        made = data_array_type()    # before the cells are brought
        whole = self.get(root)
        if whole is None:
            return None
        axis, along = self.time
        coords: dict[str, Any] = {axis: along, **self.coords}
        return made(whole, dims=(axis, *self.dims), coords=coords, name=self.name)

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure | None:
        """Draw the samples; matplotlib's figure on rank 0, None on the others.  Collective.

        A point or a result is a line over time, a line of cells an image over it; of slices some
        are drawn side by side.  path: a file for it.  ImportError without matplotlib.
        """
        return plotted([self], "", self._comm, path)

    def __repr__(self) -> str:
        return f"<Record of {self.name}: {len(self)} samples, every {self.every} steps>"
