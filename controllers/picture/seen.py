# SPDX-License-Identifier: MIT
"""What a picture sees of a field: one or two axes of it, thinned out where there are many cells."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from controllers.engine import Engine
from controllers.fields.cells import dtype_of
from controllers.fields.sampling import own_cells, put_together
from controllers.fields.selection import Selection
from controllers.settings.domain import place_of
from controllers.settings.initial import Place
from controllers.settings.plots import View
from hitmap.argument import short
from hitmap.comm import Communicator

MAX_POINTS = 4000       # of a line
MAX_PIXELS = 1000       # of an image, per axis
MAX_FIELDS = 6          # side by side, where nobody says which


class Seen:
    """What is seen of one field.

    selection: the cells, thinned out.  dims: the names of the axes that are shown, one or two.
    along: where the cells lie along these.  title: the field, and where it is cut.  is_grid:
    whether numbers are coordinates.
    """

    def __init__(self, name: str, place: Place, view: View) -> None:
        """ValueError or TypeError for an axis that is none, or numbers at which no cells are."""
        self.name, self.is_grid = name, place.grid is not None
        self.selection = Selection(place, place.extent, view.where)
        axes = place.axes.axes
        kept = [axes.index(one) for one in self.selection.dims]
        shown = kept[-2:] if kept else [len(axes) - 1]      # a point is a line of one cell
        most = MAX_POINTS if len(shown) == 1 else MAX_PIXELS
        self.dims = tuple(axes[axis] for axis in shown)
        self.along: list[npt.NDArray[np.float64]] = []
        chosen, cuts = [], []
        for axis, cells in enumerate(self.selection.chosen):
            if axis in shown:
                cells = cells[:: view.stride or max(1, -(-len(cells) // most))]
                self.along.append(place.along(axis, 0, place.extent[axis])[cells])
            else:
                cells = cells[len(cells) // 2 :][:1]
                at = int(cells[0])
                lies = f"{place.along(axis, at, at + 1)[0]:.6g}" if self.is_grid else at
                cuts.append(f"{axes[axis]} = {lies}")
            chosen.append(cells)
        self.selection.chosen = tuple(chosen)
        self.title = ", ".join([name, *cuts])

    @property
    def shape(self) -> tuple[int, ...]:
        """How many cells are shown along each axis."""
        return tuple(map(len, self.along))


def seen_by(engine: Engine, view: View, usual: Sequence[str]) -> list[Seen]:
    """What a view sees of the fields of an engine; `usual` ones where it names none.

    ValueError or TypeError for fields and axes that are not there.
    """
    program = engine.plan.program
    fields = [one.name for one in program.fields]
    names = [one for name in view.fields for one in named(name, fields)] if view.fields else (
        list(usual)[:MAX_FIELDS]
    )  # fmt: skip
    found = []
    for name in names:
        extent = engine.plan.layout_of(name).domain.extent
        found.append(Seen(name, place_of(program, name, extent), view))
    check_colours(view.colours)
    return found


def named(name: str, fields: Sequence[str]) -> list[str]:
    """The fields of a name: one, all components of a struct, or `q.rho`, one of them.

    >>> named("q", ["u", "q_rho", "q_m"]), named("q.m", ["q_rho", "q_m"])
    (['q_rho', 'q_m'], ['q_m'])
    """
    wanted = name.replace(".", "_")
    found = [wanted] if wanted in fields else [
        one for one in fields if one.startswith(f"{wanted}_")
    ]
    if not found:
        raise ValueError(f"there is no field {short(name)}; there are {', '.join(fields)}")
    return found


def check_colours(name: str) -> None:
    """ValueError unless matplotlib has such a colour map."""
    from matplotlib import colormaps

    if name not in colormaps:
        raise ValueError(
            f"matplotlib has no colour map {short(name)}; viridis, gist_earth and RdBu are some"
        )


def snapshot(
    engine: Engine, comm: Communicator, seen: Sequence[Seen]
) -> list[npt.NDArray[Any]] | None:
    """The cells that are seen of each field, [cells along each shown axis], on rank 0.

    None on the other ranks, of which each has sent what its places own.  Collective.
    """
    parts = [own_cells(engine, one.name, one.selection) for one in seen]
    everyone = comm.gather(parts)
    if everyone is None:
        return None
    return [
        put_together([rank[n] for rank in everyone], one.selection, dtype_of(engine, one.name))
        .reshape(one.shape)
        for n, one in enumerate(seen)
    ]  # fmt: skip

