# SPDX-License-Identifier: MIT
"""Pictures of fields, by matplotlib: a line, an image, or the middle slice of more axes."""
from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from controllers.cli.files import replacing
from controllers.cli.outcome import FAILED, USAGE, Failure

MAX_POINTS = 4000       # of a line
MAX_PIXELS = 1500       # of an image, per axis
MAX_ASPECT = 6          # an image longer than this is stretched
COLOURS = "gist_earth"


def check_format(path: Path) -> None:
    """`Failure` unless matplotlib is there and can write the format that `path` ends with."""
    if importlib.util.find_spec("matplotlib") is None:
        raise Failure(FAILED, '--plot needs matplotlib; pip install "controllers[local]"')
    from matplotlib.backend_bases import FigureCanvasBase

    formats = FigureCanvasBase.get_supported_filetypes()
    if path.suffix[1:].lower() not in formats:
        raise Failure(
            USAGE, f"--plot {path}: the name must end with one of {', '.join(sorted(formats))}"
        )


def save_picture(path: Path, field: npt.NDArray[Any], title: str) -> None:
    """Write a picture of `field`, 1 to 4 axes; large fields are thinned out."""
    from matplotlib.figure import Figure

    section, where = middle(field)
    steps = tuple(-(-n // (MAX_POINTS if field.ndim == 1 else MAX_PIXELS)) for n in section.shape)
    thinned = np.array(section[tuple(slice(None, None, step) for step in steps)])
    figure = Figure(figsize=_inches(section.shape), layout="constrained")
    axes = figure.add_subplot()
    if field.ndim == 1:
        axes.plot(np.arange(0, field.size, steps[0]), thinned)
        axes.set(xlabel="cell", ylabel="value", title=title)
        axes.margins(x=0)
    else:
        rows, columns = section.shape
        image = axes.imshow(
            thinned,
            cmap=COLOURS,
            extent=(0, columns, rows, 0),
            aspect="equal" if _is_compact(section.shape) else "auto",
        )
        axes.set(xlabel=f"axis {field.ndim - 1}", ylabel=f"axis {field.ndim - 2}")
        axes.set_title(f"{title}{where}")
        figure.colorbar(image, ax=axes, shrink=0.9)
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=150)


def middle(field: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], str]:
    """The last two axes of a field, in the middle of the others, and where that is.

    >>> section, where = middle(np.zeros((5, 4, 3)))
    >>> section.shape, where
    ((4, 3), ', slice [2, :, :]')
    """
    if field.ndim <= 2:
        return field, ""
    centre = tuple(n // 2 for n in field.shape[:-2])
    return field[centre], f", slice [{', '.join(map(str, centre))}, :, :]"


def _is_compact(shape: tuple[int, ...]) -> bool:
    return max(shape) <= MAX_ASPECT * min(shape)


def _inches(shape: tuple[int, ...]) -> tuple[float, float]:
    """Width and height: 7 inches for the longer side of an image, and room for the colour bar."""
    if len(shape) == 1 or not _is_compact(shape):
        return 8.0, 4.5
    rows, columns = shape
    scale = 7 / max(shape)
    return max(3.5, columns * scale) + 1.3, max(2.5, rows * scale) + 0.8
