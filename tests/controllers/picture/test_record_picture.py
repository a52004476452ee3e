# SPDX-License-Identifier: MIT
"""Pictures of records: what is drawn of each, along which axes, and where it goes."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import controllers as ct
from controllers.picture.film import write_figure
from controllers.picture.records import drawn, evenly, plotted, shown
from hitmap import SerialCommunicator

GRID = ct.Grid(z=3, y=6, x=8, lower=0, upper=(3, 3, 4), boundary=ct.mirror())


@ct.step
def heat(u):
    around = u[0, 0, -1] + u[0, 0, 1] + u[0, -1, 0] + u[0, 1, 0] - 4 * u
    return dict(u=u + 0.1 * around, warm=ct.mean(u), hot=ct.any(u > 1))


def running(**options: Any) -> ct.Computation:
    start = dict(u=lambda z, y, x: z + y * x)
    return ct.Computation(
        heat, GRID, devices="reference", comm=SerialCommunicator(), **{**start, **options}
    )


def test_each_record_is_drawn_along_axes_that_have_names() -> None:
    with running(dt=0.5, places_per_controller=2) as run:
        point = run.record("u", z=0.5, y=1.2, x=1)
        line = run.record("u", z=1.5, y=1.25, every=2)
        wide = run.record("u", z=1.5, y=1.25, every=12)
        whole, hot = run.record("u", every=3), run.record("hot", every=4)
        never = run.record("u", every=13)
        run.run(12)
        assert run.records == (point, line, wide, whole, hot, never) and shown(never) is None
        found = shown(point)
        assert found is not None and found.title == "u, z = 0.5, y = 1.25, x = 0.75"
        assert found.axes["t"].tolist() == [n / 2 for n in range(1, 13)]
        assert np.array_equal(found.panels[0][1], point.get())
        found = shown(line)
        assert found is not None and (*found.axes,) == ("t", "x") and not found.is_slice
        assert np.array_equal(found.panels[0][1], line.get())
        assert found.axes["x"].tolist() == GRID.coordinates("x").tolist()
        found = shown(wide)
        assert found is not None and (*found.axes,) == ("x",)
        assert found.panels[0][0] == "t = 6" and np.array_equal(found.panels[0][1], wide.get()[0])
        found = shown(whole)        # the middle of three axes
        assert found is not None and found.is_slice and (*found.axes,) == ("y", "x")
        assert found.title == "u, z = 1.5" and len(found.panels) == 4
        assert np.array_equal(found.panels[-1][1], run.u.get()[1])
        found = shown(hot)
        assert found is not None and found.axes["t"].tolist() == [2.0, 4.0, 6.0]
        assert found.panels[0][1].tolist() == [True] * 3


def test_without_time_samples_are_along_steps_and_counted_where_these_begin_anew() -> None:
    with running() as run:
        warm = run.record("warm", every=2)
        run.run(4)
        assert [*shown(warm).axes] == ["step"]
        run.scatter(np.zeros(GRID.shape))
        run.run(2)
        assert warm.steps == [2, 4, 2] and [*shown(warm).axes] == ["sample"]


def test_of_many_samples_some_are_drawn_and_the_last_one() -> None:
    for n in range(40):
        for most in (1, 2, 4, 7):
            chosen = evenly(n, most)
            assert len(chosen) <= most and len({*np.diff(chosen)}) <= 1
            assert (chosen[-1:] == [n - 1]) == (n > 0)


@pytest.mark.whole
def test_pictures_are_drawn_of_all_kinds_of_values(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    with running() as run:
        for where in ({}, {"z": 1}, {"z": 1, "y": 1}, {"z": 1, "y": 1, "x": slice(0, 4, 1.3)}):
            run.record("u", every=2, **where)
        run.record("hot")
        run.u[0, :, 0] = np.inf
        run.u[1, 2, 3] = np.nan
        run.run(2)
        assert plotted(run.records, "heat", run.comm, tmp_path / "a.png") is not None
        assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
        records = [shown(one) for one in run.records]
    figure = drawn([one for one in records if one is not None], "heat: 2 steps")
    write_figure(tmp_path / "a.svg", figure)
    assert "u, z = 0.5, y = 0.75" in (tmp_path / "a.svg").read_text("utf-8")
