# SPDX-License-Identifier: MIT
"""Pictures of records, by matplotlib: each in a row, with what it shows along axes that have names.

A point or a result is a line over time, a line of cells an image over it; of slices some samples
are drawn side by side, the last one rightmost.
"""
from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from controllers.engine.decision import decided
from controllers.picture.film import write_figure
from controllers.picture.formats import check_format, check_matplotlib
from controllers.picture.panels import MAX_ASPECT
from controllers.picture.seen import MAX_POINTS
from hitmap.argument import file_name
from hitmap.comm import Communicator

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


COLOURS = "gist_earth"
MAX_PIXELS = 800    # of an image, per axis
MAX_SLICES = 4      # of one record, side by side
WIDTH, HEIGHT = 9.0, 3.2    # of a row, in inches
MARKED = 30         # a line of so few samples shows each


def plotted(
    records: Sequence[Record], title: str, comm: Communicator,
    path: str | os.PathLike[str] | None = None,
) -> Figure | None:  # fmt: skip
    """A figure of all that was recorded, on rank 0; None on the others.  Collective.

    path: a file for it, which is made or replaced.  ValueError or TypeError for a name that none
    can have; what goes wrong while it is drawn is an error on all ranks.
    """
    if path is not None:
        file_name(path, "path")
        check_format(Path(path), "plot")
    check_matplotlib("plot")
    seen = [one for one in map(shown, records) if one is not None]
    figure = None

    def draw() -> None:
        nonlocal figure
        figure = drawn(seen, title)
        if path is not None:
            write_figure(Path(path), figure)

    decided(comm, draw, "plot")
    return figure


class Record(Protocol):
    """What was sampled: `run/record.py`."""

    name: str
    dims: tuple[str, ...]
    shape: tuple[int, ...]
    coords: dict[str, npt.NDArray[np.float64]]

    @property
    def time(self) -> tuple[str, npt.NDArray[Any]]: ...
    def __len__(self) -> int: ...
    def some(self, numbers: Sequence[int], root: int = 0) -> npt.NDArray[Any] | None: ...


@dataclass(frozen=True)
class Shown:
    """What is drawn of a record: panels side by side, all of which have the same one or two axes.

    title: what it is.  panels: title and values.  axes: by name, where the values lie.
    is_slice: whether both axes are those of the grid.
    """

    title: str
    panels: list[tuple[str, npt.NDArray[Any]]]
    axes: dict[str, npt.NDArray[Any]]
    is_slice: bool


def shown(record: Record) -> Shown | None:
    """What a picture shows, thinned out where there is much; on rank 0.  Collective.

    None on the other ranks, and where there are no samples.
    """
    kept = [one for one, n in zip(record.dims, record.shape) if n > 1][-2:]    # of more, the middle
    most = MAX_SLICES if len(kept) == 2 else MAX_PIXELS if kept else MAX_POINTS
    numbers = evenly(len(record), most)
    values = record.some(numbers) if numbers else None
    if values is None:
        return None
    where = {one: float(at) for one, at in record.coords.items() if at.ndim == 0}
    axes = {}
    for axis, (one, n) in enumerate(zip(record.dims, record.shape), 1):
        along = record.coords.get(one, np.arange(n))
        cells = evenly(n, MAX_PIXELS) if one in kept else [n // 2]
        values = values.take(cells, axis)
        if one in kept:
            axes[one] = along[cells]
        else:
            where[one] = float(along[n // 2])
    values = values.reshape(len(numbers), *map(len, axes.values()))
    title = ", ".join([record.name, *(f"{one} = {at:.6g}" for one, at in where.items())])
    name, times = _times(record)
    if len(kept) == 2 or (kept and len(numbers) == 1):
        panels = [(f"{name} = {times[n]:.6g}", one) for n, one in zip(numbers, values)]
        return Shown(title, panels, axes, len(kept) == 2)
    return Shown(title, [("", values)], {name: times[numbers], **axes}, False)


def _times(record: Record) -> tuple[str, npt.NDArray[Any]]:
    """When the samples were taken; which they are, where steps were counted anew."""
    name, times = record.time
    if (np.diff(times) > 0).all():
        return name, times
    return "sample", np.arange(len(record))


def evenly(n: int, most: int) -> list[int]:
    """At most so many of n numbers, at even distances, the last one among them.

    >>> evenly(3, 4), evenly(10, 4)
    ([0, 1, 2], [0, 3, 6, 9])
    """
    every = max(1, -(-n // most))
    return [*range((n - 1) % every, n, every)] if n else []


def drawn(records: Sequence[Shown], title: str) -> Figure:
    """A picture of records, one below the other."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, HEIGHT * len(records) + 0.4), layout="constrained")
    if title:
        figure.suptitle(title)
    rows = figure.subfigures(len(records), 1, squeeze=False)
    for row, record in zip(rows[:, 0], records):
        _draw_row(row, record)
    return figure


def _draw_row(row: SubFigure, record: Shown) -> None:
    """One record, in a row of its own."""
    panels = row.subplots(1, len(record.panels), squeeze=False)[0]
    titles = [title for title, _ in record.panels]
    if len(panels) == 1:
        titles = [", ".join(filter(None, [record.title, *titles]))]
    else:
        row.suptitle(record.title)
    for panel, title in zip(panels, titles):
        panel.set_title(title)
    values = [one for _, one in record.panels]
    if len(record.axes) == 2:
        _draw_images(row, panels, record, values)
        return
    ((name, at),) = record.axes.items()
    panels[0].plot(at, *values, marker="." if len(at) <= MARKED else None)
    panels[0].set(xlabel=name, ylabel="value")
    panels[0].margins(x=0.01)


def _draw_images(
    row: SubFigure, panels: Sequence[Axes], record: Shown, images: Sequence[npt.NDArray[Any]]
) -> None:
    """In the same colours; where cells lie unevenly, so does what is drawn."""
    from matplotlib.colors import Normalize

    (up, rising), (name, at) = record.axes.items()
    lengths = rising[-1] - rising[0], at[-1] - at[0]
    is_compact = record.is_slice and max(lengths) <= MAX_ASPECT * min(lengths)
    finite = np.concatenate([image[np.isfinite(image)] for image in images])
    colours = Normalize(finite.min(), finite.max()) if finite.size else Normalize(0, 1)
    for panel, image in zip(panels, images):
        drawn = panel.pcolormesh(
            at, rising, image, cmap=COLOURS, norm=colours, shading="nearest", rasterized=True
        )
        panel.set(xlabel=name, aspect="equal" if is_compact else "auto")
    panels[0].set(ylabel=up)
    row.colorbar(drawn, ax=[*panels], shrink=0.9, panchor=False)
