# SPDX-License-Identifier: MIT
"""One figure that is updated in place while steps run: in a notebook, a window, or a file."""
from __future__ import annotations

import importlib
import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from controllers.picture.film import write_figure
from controllers.picture.panels import Panels
from controllers.picture.seen import Seen
from controllers.settings.plots import View

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAUSE_S = 0.001     # for a window to draw itself


class Live:
    """The figure of a view of a computation."""

    def __init__(self, seen: Sequence[Seen], view: View) -> None:
        self.view = view
        self._shell = _notebook()
        window = None if self._shell is not None else _window()
        self._has_window = window is not None
        self._panels = Panels(seen, view, window)
        self._display: Any = None       # IPython's handle of what is on the page
        self._cell: object = None       # of the notebook in which that is

    def show(self, cells: Sequence[npt.NDArray[Any]], title: str, path: Path | None) -> Figure:
        """Draw these cells, and have them seen: in the file `path`, if there is one."""
        figure = self._panels.figure
        self._panels.show(cells, title)
        if path is not None:
            write_figure(path, figure)
        elif self._shell is not None:
            self._on_the_page(figure)
        elif self._has_window:
            figure.canvas.draw_idle()
            figure.canvas.start_event_loop(PAUSE_S)
        return figure

    def _on_the_page(self, figure: Figure) -> None:
        """In place of what the same cell has shown before."""
        display = importlib.import_module("IPython.display").display
        cell = self._shell.execution_count
        if self._display is None or cell != self._cell:
            self._display, self._cell = display(_Png(figure), display_id=True), cell
        else:
            self._display.update(_Png(figure))


class _Png:
    """What IPython shows as a picture."""

    def __init__(self, figure: Figure) -> None:
        file = io.BytesIO()
        figure.savefig(file, format="png")
        self._content = file.getvalue()

    def _repr_png_(self) -> bytes:
        return self._content


def _notebook() -> Any:
    """IPython's shell where it has a page to show pictures on; None elsewhere."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell if getattr(shell, "kernel", None) is not None else None


def _window() -> Figure | None:
    """The figure of a new window; None where matplotlib opens none."""
    import matplotlib.pyplot as plt

    figure = plt.figure()
    if figure.canvas.required_interactive_framework is None:
        plt.close(figure)
        return None
    plt.show(block=False)
    return figure
