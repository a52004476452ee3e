# SPDX-License-Identifier: MIT
"""Pictures while steps run: one figure, in a file, on the page of a notebook, in a window."""
from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import controllers as ct
from hitmap import SerialCommunicator

pytest.importorskip("matplotlib")


@ct.step
def heat(u, q):
    return dict(u=u + 0.2 * (u[-1, 0] + u[1, 0] - 2 * u), q=q + 1)


PAIR = np.dtype([("a", "f8"), ("b", "f8")])
GRID = ct.Grid(y=8, x=12, boundary=ct.mirror())


def running() -> ct.Computation:
    return ct.Computation(
        heat, GRID, u=lambda y, x: y * x, q=dict(a=0.0, b=1.0), dtype=dict(q=PAIR),
        devices="reference", comm=SerialCommunicator(),
    )  # fmt: skip


def test_one_figure_is_updated_in_place(tmp_path: Path) -> None:
    figures, files = [], []
    with running() as run:
        for now in run.steps(6, every=2):
            figures.append(now.plot(tmp_path / "now.png", fields="u"))
            files.append((tmp_path / "now.png").read_bytes())
            assert np.array_equal(figures[-1].axes[0].images[0].get_array(), now.u.get())
        assert len({*map(id, figures)}) == 1 and len({*files}) == 3
        assert figures[0].get_suptitle() == "heat: 6 steps"
        assert run.plot(fields="u") is figures[0]
        assert run.plot(fields="u", stride=2) is not figures[0]
    assert [path.name for path in tmp_path.iterdir()] == ["now.png"]


def test_fields_and_components_are_drawn_side_by_side() -> None:
    with running() as run:
        run.run(3)
        panels = [one for one in run.plot().axes if one.images]
        assert [one.get_title() for one in panels] == ["u", "q_a", "q_b"]
        assert len({round(one.get_position().y0, 3) for one in panels}) == 1
        panels = [one for one in run.plot(fields=["q"]).axes if one.images]
        assert [one.get_title() for one in panels] == ["q_a", "q_b"]
        (line,) = run.plot(fields="q.a", y=2).axes[0].lines
        assert line.get_ydata().tolist() == [3.0] * 12


def test_the_layout_is_found_before_the_first_frame() -> None:
    with running() as run:
        figure = run.plot(fields="u")
        before = None
        for _ in range(2):
            figure.draw_without_rendering()
            after = [one.get_position().bounds for one in figure.axes]
            assert before is None or np.allclose(after, before, atol=5e-3)
            before = after


def test_colours_are_of_all_that_was_seen_or_as_given() -> None:
    with running() as run:
        run.u[...] = 5.0
        first = run.plot(fields="u").axes[0].images[0]
        low, high = first.get_clim()
        assert low < 5 < high
        run.u[0, 0], run.u[0, 1], run.u[0, 2] = -2.0, np.nan, np.inf
        run.plot(fields="u")
        assert first.get_clim() == (-2.0, 5.0)
        run.u[0, 0] = 4.0
        run.plot(fields="u")
        assert first.get_clim() == (-2.0, 5.0)
        image = run.plot(fields="u", limits={"u": (0, 1)}).axes[0].images[0]
        assert image.get_clim() == (0.0, 1.0)


def test_what_lies_higher_is_drawn_higher_and_cells_lie_where_they_are() -> None:
    with running() as run:
        axes = run.plot(fields="u").axes[0]
        assert axes.images[0].get_extent() == [0, 12, 0, 8] and axes.images[0].origin == "lower"
        assert (axes.get_xlabel(), axes.get_ylabel()) == ("x", "y")
        axes = run.plot(fields="u", x=slice(3, 6)).axes[0]
        assert axes.images[0].get_extent() == [3, 6, 0, 8]


class Shell:
    """Of a notebook."""

    kernel = object()
    execution_count = 1


@pytest.mark.whole
def test_a_notebook_has_one_picture_for_a_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[tuple[str, int]] = []
    shell = Shell()

    class Handle:
        def __init__(self, number: int) -> None:
            self.number = number

        def update(self, picture: Any) -> None:
            assert picture._repr_png_().startswith(b"\x89PNG")
            shown.append(("update", self.number))

    def display(picture: Any, display_id: bool) -> Handle:
        assert display_id and picture._repr_png_().startswith(b"\x89PNG")
        shown.append(("display", len(shown)))
        return Handle(len(shown) - 1)

    page, ipython = types.ModuleType("IPython.display"), types.ModuleType("IPython")
    page.display, ipython.get_ipython = display, lambda: shell     # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", page)
    with running() as run:
        for now in run.steps(3):
            now.plot(fields="u")
        shell.execution_count = 2
        run.plot(fields="u")
    assert shown == [("display", 0), ("update", 0), ("update", 0), ("display", 3)]


def test_a_window_is_drawn_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    import matplotlib.pyplot as plt
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    drawn: list[str] = []

    class Canvas(FigureCanvasAgg):
        required_interactive_framework = "a screen"

        def draw_idle(self, *args: Any, **keywords: Any) -> None:
            drawn.append("draw")

        def start_event_loop(self, timeout: float = 0) -> None:
            drawn.append("wait")

    figure = plt.figure()
    Canvas(figure)
    monkeypatch.setattr(plt, "figure", lambda: figure)
    monkeypatch.setattr(plt, "show", lambda block: drawn.append("open"))
    with running() as run:
        for now in run.steps(2):
            assert now.plot(fields="u") is figure
    plt.close(figure)
    assert drawn == ["open", "draw", "wait", "draw", "wait"]
