# SPDX-License-Identifier: MIT
"""Pictures of fields, by matplotlib: a line, an image, or the middle slice of more axes."""
from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from controllers.cli.outcome import USAGE, Failure
from controllers.memory.tile import TileView
from hitmap.files import replacing

if TYPE_CHECKING:
    from controllers.run.computation import Computation

MAX_POINTS = 4000       # of a line
MAX_PIXELS = 1500       # of an image, per axis
MAX_ASPECT = 6          # an image longer than this is stretched
COLOURS = "gist_earth"


def check_format(path: Path, option: str = "--plot") -> None:
    """`Failure` unless matplotlib is there and can write the format that `path` ends with."""
    if importlib.util.find_spec("matplotlib") is None:
        raise Failure(USAGE, f'{option} needs matplotlib; pip install "opencl-controllers[local]"')
    from matplotlib.backend_bases import FigureCanvasBase

    formats = set(FigureCanvasBase.get_supported_filetypes()) - {"pgf"}     # needs TeX to write
    if path.suffix[1:].lower() not in formats:
        raise Failure(
            USAGE, f"{option} {path}: the name must end with one of {', '.join(sorted(formats))}"
        )


def save_picture(path: Path, field: npt.NDArray[Any], title: str) -> None:
    """Write a picture of `field`, 1 to 4 axes; large fields are thinned out."""
    cells = field[tuple(slice(axis.start, axis.stop, axis.step) for axis in shown(field.shape))]
    draw(path, cells, field.shape, title)


def draw(path: Path, cells: npt.NDArray[Any], extent: tuple[int, ...], title: str) -> None:
    """Write a picture of the cells that are `shown` of a field."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=_inches(extent[-2:]), layout="constrained")
    axes = figure.add_subplot()
    if len(extent) == 1:
        axes.plot(np.array(shown(extent)[0]), cells)
        axes.set(xlabel="cell", ylabel="value", title=title)
        axes.margins(x=0)
    else:
        rows, columns = extent[-2:]
        image = axes.imshow(
            cells.reshape(cells.shape[-2:]),
            cmap=COLOURS,
            extent=(0, columns, rows, 0),
            aspect="equal" if _is_compact((rows, columns)) else "auto",
        )
        axes.set(xlabel=f"axis {len(extent) - 1}", ylabel=f"axis {len(extent) - 2}")
        axes.set_title(f"{title}{_where(extent)}")
        figure.colorbar(image, ax=axes, shrink=0.9)
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=150)


def sampled(computation: Computation) -> npt.NDArray[Any] | None:
    """The cells that are `shown`, gathered on rank 0; None elsewhere.  Collective."""
    axes = shown(computation.domain.extent)
    parts: list[tuple[tuple[slice, ...], npt.NDArray[Any]]] = []

    def take(tile: TileView) -> None:
        ends = zip(axes, tile.box.lower, tile.box.upper)
        inside = [_between(axis, lower, upper) for axis, lower, upper in ends]
        if all(last > first for first, last in inside):
            here = tuple(
                slice(axis[first] - lower, axis[last - 1] - lower + 1, axis.step)
                for axis, (first, last), lower in zip(axes, inside, tile.box.lower)
            )
            parts.append((tuple(slice(*ends) for ends in inside), tile.array[here].copy()))

    computation.visit(take)
    gathered = computation.comm.gather(parts)
    if gathered is None:
        return None
    cells = np.empty([len(axis) for axis in axes], computation.program.fields[0].dtype)
    for where, part in (pair for rank in gathered for pair in rank):
        cells[where] = part
    return cells


def shown(extent: tuple[int, ...]) -> list[range]:
    """The cells that a picture shows, by axis: the middle of all but two, large axes thinned out.

    >>> shown((5, 4000, 3))
    [range(2, 3), range(0, 4000, 3), range(0, 3)]
    """
    most = MAX_POINTS if len(extent) == 1 else MAX_PIXELS
    return [range(n // 2, n // 2 + 1) for n in extent[:-2]] + [
        range(0, n, -(-n // most)) for n in extent[-2:]
    ]


def _between(axis: range, lower: int, upper: int) -> tuple[int, int]:
    """Which cells of `axis` are in `lower` to `upper`, as positions in it; first and end.

    >>> _between(range(0, 10, 3), 3, 7)
    (1, 3)
    """
    first, last = (-(-(end - axis.start) // axis.step) for end in (lower, upper))
    return max(0, first), min(last, len(axis))


def _where(extent: tuple[int, ...]) -> str:
    """
    >>> _where((5, 4, 3)), _where((4, 3))
    (', slice [2, :, :]', '')
    """
    if len(extent) <= 2:
        return ""
    return f", slice [{', '.join(str(n // 2) for n in extent[:-2])}, :, :]"


def _is_compact(shape: tuple[int, ...]) -> bool:
    return max(shape) <= MAX_ASPECT * min(shape)


def _inches(shape: tuple[int, ...]) -> tuple[float, float]:
    """Width and height: 7 inches for the longer side of an image, and room for the colour bar."""
    if len(shape) == 1 or not _is_compact(shape):
        return 8.0, 4.5
    rows, columns = shape
    scale = 7 / max(shape)
    return max(3.5, columns * scale) + 1.3, max(2.5, rows * scale) + 0.8
