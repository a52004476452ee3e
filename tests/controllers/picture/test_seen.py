# SPDX-License-Identifier: MIT
"""What a picture sees of a field, and that each rank gives its own cells of that."""
from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from mpi_jobs import helpers_path, run_ranks
from sample import sample

import controllers as ct
from controllers.fields.sampling import own_cells
from controllers.language.weights import Stencil
from controllers.picture.seen import Seen, named
from controllers.run.computation import Computation
from controllers.settings.initial import Place
from controllers.settings.plots import View
from hitmap import SerialCommunicator

SERIAL = SerialCommunicator()
pytest.importorskip("matplotlib")


def test_of_a_field_two_axes_are_seen_and_the_middle_of_the_others() -> None:
    seen = Seen("u", Place((5, 2500, 3)), View())
    assert seen.dims == ("y", "x") and seen.title == "u, z = 2" and seen.shape == (834, 3)
    assert [one.tolist() for one in (seen.selection.chosen[0], seen.selection.chosen[2])] == [
        [2], [0, 1, 2]
    ]  # fmt: skip
    assert np.diff(seen.selection.chosen[1]).tolist() == [3] * 833
    seen = Seen("u", Place((5, 6, 7)), View(where={"y": 4}))
    assert seen.dims == ("z", "x") and seen.title == "u, y = 4" and seen.shape == (5, 7)
    seen = Seen("u", Place((5, 6, 7)), View(where={"y": 4, "z": slice(1, 4)}, stride=2))
    assert seen.shape == (2, 4) and [one.tolist() for one in seen.selection.chosen] == [
        [1, 3], [4], [0, 2, 4, 6]
    ]  # fmt: skip
    seen = Seen("u", Place((5, 6)), View(where={"y": 4}))
    assert seen.dims == ("x",) and seen.shape == (6,)


def test_where_there_is_a_grid_numbers_are_coordinates() -> None:
    grid = ct.Grid(z=4, y=6, x=8, lower=0, upper=(2, 3, 4))
    seen = Seen("u", Place((4, 6, 8), grid.places), View(where={"z": 1.6}))
    assert seen.title == "u, z = 1.75" and seen.is_grid
    assert seen.along[0].tolist() == grid.coordinates("y").tolist()
    with pytest.raises(ValueError, match="z=9 is at none of the 4 cells.*0.25 to 1.75"):
        Seen("u", Place((4, 6, 8), grid.places), View(where={"z": 9}))


def test_names_are_of_fields_structs_and_components() -> None:
    fields = ["u", "q_rho", "q_m"]
    assert named("u", fields) == ["u"] and named("q", fields) == ["q_rho", "q_m"]
    assert named("q.m", fields) == named("q_m", fields) == ["q_m"]
    with pytest.raises(ValueError, match="no field 'w'; there are u, q_rho, q_m"):
        named("w", fields)


@pytest.mark.parametrize("extent", [(9001,), (31, 3100), (2100, 31), (5, 70, 60), (3, 4, 5, 7)])
def test_a_picture_shows_the_same_cells_whatever_the_division(extent: tuple[int, ...]) -> None:
    field = np.random.default_rng(6).random(extent).astype("f4")
    point = Stencil.of("point", [(0, 0)] * len(extent), [1], 1).program("float32")
    seen = Seen("u", Place(extent), View())
    wanted = field[np.ix_(*seen.selection.chosen)].reshape(seen.shape)
    cyclic = {"partition": "cyclic", "block": [1 + n // 3 for n in extent]}
    for division in ({"partition": "bands"}, cyclic):
        with Computation(point, extent, devices=["reference"] * 3, comm=SERIAL, **division) as made:
            made.scatter(field)
            figure = made.plot()
            axes = figure.axes[0]
            cells = axes.lines[0].get_ydata() if seen.dims == ("x",) else axes.images[0].get_array()
            assert np.array_equal(cells, wanted)


def test_a_rank_copies_what_is_seen_of_its_places_and_no_more() -> None:
    extent = (2100, 31)
    point = Stencil.of("point", [(0, 0)] * 2, [1], 1).program("float32")
    with Computation(point, extent, devices=["reference"] * 3, comm=SERIAL) as made:
        views = {700 * 31: View(), 2100: View(where={"x": 3}), 42: View(stride=50)}
        for n_cells, view in views.items():
            seen = Seen("u", Place(extent), view)
            parts = own_cells(made._engine, "u", seen.selection)
            assert sum(values.size for _, values in parts) == n_cells
            assert all(values.base is None for _, values in parts)


@pytest.mark.parametrize("extent", sample([[70], [7, 9], [3, 400], [5, 4, 6], [3, 4, 5, 2]], 2))
def test_fields_of_any_number_of_axes_are_drawn(extent: list[int], tmp_path: Path) -> None:
    point = Stencil.of("point", [(0, 0)] * len(extent), [1], 1).program("float32")
    with Computation(point, extent, devices="reference", comm=SERIAL) as made:
        made.scatter(np.random.default_rng(3).random(extent, dtype="f4"))
        made.plot(tmp_path / "p.png")
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in tmp_path.glob("*")] == ["p.png"]


JOB = """
import json, sys
import numpy as np
import controllers as ct
from films import frame, n_frames
from hitmap import default_communicator


@ct.step
def heat(u, v):
    around = u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u
    return dict(u=u + 0.2 * around, v=v + u, top=ct.max(u))


comm = default_communicator()
start = np.random.default_rng(2).random((37, 2051))
grid = ct.Grid(y=37, x=2051, boundary="periodic")
with ct.Computation(heat, grid, u=start, v=0.0, devices="reference") as run:
    line = run.record("u", y=5.5, every=2)
    run.run(3, plot=ct.plot("f.gif", ct.every(steps=3), fields=["u", "v"]))
    figure, whole = run.plot(), run.u.get()
    drawn = run.plot(fields="u", y=5.5, x=slice(10, 20))
    shown = line.plot("record.png")
    for problem in ({"fields": "w"}, {"z": 1}, {"path": "no/p.png"}):
        try:
            run.plot(**problem)
        except Exception as error:
            said = comm.gather(f"{type(error).__name__}: {error}")
            if comm.rank == 0:
                print(json.dumps(said))
    if comm.rank == 0:
        image = figure.axes[0].images[0].get_array()
        chosen = whole[:, ::3]
        assert image.shape == chosen.shape and np.array_equal(image, chosen)
        assert np.array_equal(drawn.axes[0].lines[0].get_ydata(), whole[5, 10:20])
        assert n_frames("f.gif") == 2, n_frames("f.gif")        # 0, 3
        assert not np.array_equal(frame("f.gif", 0), frame("f.gif", 1))
    else:
        assert figure is None and drawn is None and shown is None
"""


@pytest.mark.whole
@pytest.mark.parametrize("n_ranks", sample([2, 1], 2))
def test_ranks_draw_together(n_ranks: int, tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    job = run_ranks(n_ranks, f"import os\nos.chdir({str(tmp_path / 'job')!r})\n{JOB}",
                    env=helpers_path())  # fmt: skip
    assert job.returncode == 0, job.stderr
    fields, axes, target = (json.loads(line) for line in job.stdout.splitlines())
    assert fields == ["ValueError: there is no field 'w'; there are u, v"] * n_ranks
    assert axes == ["ValueError: there is no axis 'z'; there are y, x"] * n_ranks
    assert len(target) == n_ranks and all("no/" in one or "'no'" in one for one in target)
    assert sorted(path.name for path in (tmp_path / "job").glob("*")) == ["f.gif", "record.png"]
