# SPDX-License-Identifier: MIT
"""A figure with a panel for each field, which shows one step after the other.

A panel is a line or an image with a bar of its colours.  Where nobody says the limits of these,
they are those of all that was seen so far, so that frames can be compared.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from controllers.picture.seen import Seen
from controllers.settings.plots import View

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage
    from matplotlib.lines import Line2D

MAX_ASPECT = 6          # an image longer than this is stretched
PANEL = 5.5             # inches, the longer side of an image
ALONE = 7.0             # of the only one
BESIDE = 3              # panels in a row


class Panels:
    """The figure, of `figure` if there is one already, and what it shows."""

    def __init__(self, seen: Sequence[Seen], view: View, figure: Figure | None = None) -> None:
        from matplotlib.figure import Figure

        rows, columns = _arranged(seen)
        width, height = _inches(seen[0], alone=len(seen) == 1)
        size = width * columns, height * rows + 0.4
        if figure is None:
            figure = Figure()
        figure.set_size_inches(*size)
        figure.set_layout_engine("constrained")
        self.figure, self._view, self._is_settled = figure, view, False
        self._panels = [
            _Panel(figure.add_subplot(rows, columns, n), one, view)
            for n, one in enumerate(seen, 1)
        ]

    def show(self, values: Sequence[npt.NDArray[Any]], title: str) -> None:
        """Draw these, [cells along each shown axis] for each field."""
        self.figure.suptitle(title)
        for panel, cells in zip(self._panels, values):
            panel.show(cells)
        if not self._is_settled:    # the layout is found in two drawings, and films would jump
            self.figure.draw_without_rendering()
            self._is_settled = True


class _Panel:
    """One field."""

    def __init__(self, axes: Axes, seen: Seen, view: View) -> None:
        self._axes, self._seen, self._view = axes, seen, view
        self._given = view.limits_of(seen.name)
        self._limits = self._given
        self._image: AxesImage | None = None
        self._line: Line2D | None = None
        axes.set_title(seen.title)
        axes.set_xlabel(seen.dims[-1])
        axes.set_ylabel(seen.dims[0] if len(seen.dims) == 2 else "value")

    def show(self, cells: npt.NDArray[Any]) -> None:
        """Draw these cells in place of those before."""
        if cells.dtype == np.bool_:
            cells = cells.astype(np.uint8)
        low, high = self._widened(cells)
        if len(self._seen.dims) == 2:
            if self._image is None:
                self._image = self._first_image(cells)
            self._image.set_data(cells)
            self._image.set_clim(low, high)
        else:
            at = self._seen.along[0]
            if self._line is None:
                marker = "." if len(at) <= 30 else None
                (self._line,) = self._axes.plot(at, cells, marker=marker)
                self._axes.margins(x=0)
            self._line.set_ydata(cells)
            room = 0 if self._given else 0.05 * (high - low)
            self._axes.set_ylim(low - room, high + room)

    def _first_image(self, cells: npt.NDArray[Any]) -> AxesImage:
        """With a bar of colours, and as much of the axes as the cells take."""
        (bottom, top), (left, right) = map(_ends, self._seen.along)
        rising = self._seen.is_grid     # else as a matrix is written
        compact = max(top - bottom, right - left) <= MAX_ASPECT * min(top - bottom, right - left)
        image = self._axes.imshow(
            cells, cmap=self._view.colours, interpolation="nearest",
            extent=(left, right, *((bottom, top) if rising else (top, bottom))),
            origin="lower" if rising else "upper", aspect="equal" if compact else "auto",
        )  # fmt: skip
        self._axes.figure.colorbar(image, ax=self._axes, shrink=0.9)
        return image

    def _widened(self, cells: npt.NDArray[Any]) -> tuple[float, float]:
        """The limits that are given, or those of all cells so far that are finite."""
        if self._given is not None:
            return self._given
        finite = cells[np.isfinite(cells)]
        if finite.size:
            low, high = float(finite.min()), float(finite.max())
            before = self._limits or (low, high)
            self._limits = min(low, before[0]), max(high, before[1])
        low, high = self._limits or (0.0, 1.0)
        if low < high:
            return low, high
        room = max(abs(low) * 1e-3, 1e-3)       # all alike
        return low - room, high + room


def title_of(name: str, step: int, time: float) -> str:
    """
    >>> title_of("heat", 20, 0.5), title_of("heat", 1, 0)
    ('heat: 20 steps, t = 0.5', 'heat: 1 step')
    """
    return f"{name}: {step} step{'s' * (step != 1)}" + (f", t = {time:.6g}" if time else "")


def _ends(along: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Where cells begin and end whose centres lie there.

    >>> _ends(np.array([0.5, 1.5, 2.5]))
    (0.0, 3.0)
    """
    half = (along[-1] - along[0]) / (len(along) - 1) / 2 if len(along) > 1 else 0.5
    return float(along[0] - half), float(along[-1] + half)


def _arranged(seen: Sequence[Seen]) -> tuple[int, int]:
    """Rows and columns of panels: what is wide is put below each other, all else side by side."""
    lengths = [end - first for first, end in map(_ends, seen[0].along)]
    if len(lengths) == 2 and lengths[1] > 2 * lengths[0]:
        return len(seen), 1
    columns = min(len(seen), BESIDE)
    return -(-len(seen) // columns), columns


def _inches(seen: Seen, *, alone: bool) -> tuple[float, float]:
    """Width and height of a panel, with room for the bar of colours."""
    longest = ALONE if alone else PANEL
    lengths = [end - first for first, end in map(_ends, seen.along)]
    if len(lengths) == 1 or max(lengths) > MAX_ASPECT * min(lengths):
        return longest + 1, 4.5 if alone else 3.5
    scale = longest / max(lengths)
    return max(longest / 2, lengths[1] * scale) + 1.3, max(longest / 3, lengths[0] * scale) + 0.4
