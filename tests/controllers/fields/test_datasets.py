# SPDX-License-Identifier: MIT
"""Fields that begin with a variable of a zarr store or of a NetCDF file, read by parts."""
from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray
from kept_programs import GRID, PAIR, PROGRAMS, RING, alike, cells_of, ran
from mpi_jobs import helpers_path, run_ranks

import controllers as ct
from controllers.fields import datasets, given_values
from hitmap.shape import Shape

JOB = """import sys
import numpy as np
import xarray
import controllers as ct
from kept_programs import GRID, PAIR, RING, wave
from controllers.fields import given_values
from hitmap.comm import default_communicator
comm, path = default_communicator(), sys.argv[1]
read = 0
part_of = given_values.part_of
def counted(array, box):
    global read
    read += box.n_cells
    return part_of(array, box)
given_values.part_of = counted
height = xarray.open_dataset(f"{path}/a.nc").height
with ct.Computation(wave, GRID, dt=0.5, dtype="float64", devices="reference", comm=comm,
                    places_per_controller=2, u=f"{path}/a.zarr", old=height[1]) as run:
    found = {name: run[name].gather() for name in run.fields}
    assert read == sum(2 * box.n_cells for place, box in enumerate(run.layout.owned)
                       if run.plan.locations[place].rank == comm.rank), read
    if comm.rank == 0:
        np.savez(f"{path}/found.npz", **found)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """a.zarr has the moments of a run; a.nc a variable with its axes in another order."""
    with PROGRAMS["wave"](devices="reference") as run:
        run.run(6, output=(tmp_path / "a.zarr", ct.every(steps=3)))
    start = np.arange(2 * 14 * 19.0).reshape(19, 14, 2)
    coords = {axis: GRID.coordinates(axis) for axis in GRID.axes}
    xarray.Dataset({"height": (("x", "y", "time"), start)}, coords=coords).transpose(
        "time", "x", "y"
    ).to_netcdf(tmp_path / "a.nc")
    return tmp_path


@pytest.mark.parametrize("ranks", [pytest.param(n, marks=pytest.mark.whole) for n in (1, 3)])
def test_each_rank_reads_its_own_cells_alone(folder: Path, ranks: int) -> None:
    outcome = run_ranks(ranks, ["-c", JOB, str(folder)], env=helpers_path())
    assert outcome.returncode == 0, outcome.stderr
    with np.load(folder / "found.npz") as found:
        assert found["u"].tobytes() == ran("wave", 6)["u"].tobytes()
        assert (found["old"] == np.arange(2 * 14 * 19.0).reshape(19, 14, 2)[..., 1].T).all()


def test_a_run_goes_on_from_the_last_moment_of_another(folder: Path) -> None:
    one = folder / "a.zarr"
    with PROGRAMS["wave"](devices="reference", u=one, old=str(one)) as run:
        run.run(4)
        assert alike({**cells_of(run), "step": 10, "time": 5.0}, ran("wave", 10))


def test_structs_and_half_points_are_read_back(tmp_path: Path) -> None:
    for name in ("pair", "sound"):
        with PROGRAMS[name](devices="reference") as run:
            run.run(3, output=tmp_path / f"{name}.zarr")
    with PROGRAMS["pair"](devices="reference", q=tmp_path / "pair.zarr") as run:
        assert alike({**cells_of(run), "step": 3}, ran("pair", 3))
    with PROGRAMS["sound"](devices="reference", vx=tmp_path / "sound.zarr") as run:
        assert run.vx.get().tobytes() == ran("sound", 3)["vx"].tobytes()
    assert PAIR.names == ("a", "b") and RING.axes == ("y", "x")


def test_an_array_in_a_file_is_not_read_as_a_whole(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    height = xarray.open_dataset(folder / "a.nc").height[0]
    boxes: list[Shape] = []

    def seen(array: Any, box: Shape) -> Any:
        boxes.append(box)
        return datasets.part_of(array, box)

    monkeypatch.setattr(given_values, "part_of", seen)
    with PROGRAMS["wave"](
        devices="reference", places_per_controller=3, u=height
    ) as run:
        assert len(boxes) == 3 and all(box.n_cells < run.u.size for box in boxes)
        right = np.arange(2 * 14 * 19.0).reshape(19, 14, 2)[..., 0].T
        assert (np.asarray(run.u) == right).all()
    assert not height.variable._in_memory


@pytest.mark.parametrize("name, told", [
    ("a.nc", "a.nc: has no variable 'u'; there are height"),
    ("b.nc", "b.nc: the coordinates of the array along 'x' are not those of the grid"),
    ("c.nc", "c.nc: the axes of the array are a, b"),
    ("nowhere.nc", "nowhere.nc: No such file"),
    ("nowhere.zarr", "nowhere.zarr"),
])  # fmt: skip
def test_what_does_not_fit_is_refused(folder: Path, name: str, told: str) -> None:
    shape = GRID.shape
    coords = {"y": GRID.coordinates("y"), "x": GRID.coordinates("x") + 1}
    wrong = {"b": xarray.Dataset({"u": (("y", "x"), np.ones(shape))}, coords=coords),
             "c": xarray.Dataset({"u": (("a", "b"), np.ones(shape))})}  # fmt: skip
    for one, data in wrong.items():
        data.to_netcdf(folder / f"{one}.nc")
    with pytest.raises(ValueError, match=told):
        PROGRAMS["wave"](devices="reference", u=folder / name)


def test_without_xarray_one_error_says_what_to_install(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(ImportError, match=r'pip install "opencl-controllers\[io\]"'):
        PROGRAMS["wave"](devices="reference", u=folder / "a.nc")
