# SPDX-License-Identifier: MIT
"""Zarr stores: the cells of each moment, dimensions, coordinates, attributes; on any layout."""
from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray
from kept_programs import PROGRAMS, ran
from mpi_jobs import helpers_path, run_ranks
from output_cases import case

import controllers as ct
from controllers.outputs import zarr_documents as documents
from hitmap.comm import default_communicator

CASES = Path(__file__).parents[2] / "support/output_cases.py"


def opened(path: Path) -> xarray.Dataset:
    """A store, alike by both ways to find its arrays."""
    found = xarray.open_zarr(path).load()
    assert found.identical(xarray.open_zarr(path, consolidated=False).load())
    return found


def check_case(number: int, folder: Path) -> None:
    """The store has the cells that the fields had, and their coordinates."""
    run, options, n_steps, every = case(number, default_communicator())
    with np.load(folder / f"{number}.npz") as saved, run:
        right = {name: saved[name] for name in saved.files}
        found = opened(folder / f"{number}.zarr")
        steps = sorted({*range(0, n_steps + 1, every), n_steps})
        assert found.step.values.tolist() == steps
        names = options.get("fields", ["a", "b"])
        assert sorted(found.data_vars) == names
        for name in names:
            field = run[name]
            for step in steps:
                want = xarray.DataArray(right[f"{name}{step}"], dims=field.dims,
                                        coords=field.coords)  # fmt: skip
                want = want.sel(x=options.get("x", slice(None)))
                if "y" in options:
                    want = want.sel(y=options["y"], method="nearest").drop_vars("y")
                want = want[tuple(slice(None, None, options.get("stride", 1)) for _ in want.dims)]
                want = want.astype(options.get("dtype", want.dtype))
                got = found[name].sel(step=step).drop_vars(["step", "t"])
                assert got.dtype == want.dtype
                assert got.values.tobytes() == want.values.tobytes(), (number, name, step)
                xarray.testing.assert_equal(got, want)


WHOLE = pytest.mark.whole


@pytest.mark.parametrize(
    "ranks", [2, *(pytest.param(n, marks=WHOLE) for n in (1, 3, 4))]
)
def test_stores_of_any_layout_have_the_cells_of_their_fields(
    tmp_path: Path, pytestconfig: pytest.Config, ranks: int
) -> None:
    count = -(-pytestconfig.getoption("output_cases") // 4)
    outcome = run_ranks(
        ranks, [str(CASES), str(100 * ranks), str(count), str(tmp_path)], env=helpers_path()
    )
    assert outcome.returncode == 0, outcome.stderr
    for number in range(100 * ranks, 100 * ranks + count):
        check_case(number, tmp_path)


def test_a_store_has_what_a_run_was(tmp_path: Path) -> None:
    with PROGRAMS["wave"](devices="reference") as run:
        run.run(7, output=(tmp_path / "a.zarr", ct.every(steps=3)))
    found = opened(tmp_path / "a.zarr")
    assert found.step.values.tolist() == [0, 3, 6, 7]
    assert found.t.values.tolist() == [0, 1.5, 3, 3.5]
    assert found.u.dims == ("step", "y", "x") and "t" in found.u.coords
    assert found.x.values[:2].tolist() == [2.5, 7.5]
    assert found.attrs["program"] == "wave" and found.attrs["parameters"] == "dt = 0.5"
    assert found.attrs["controllers_version"] == ct.__version__
    found.to_netcdf(tmp_path / "a.nc")      # nothing in it is zarr's alone


def test_fields_at_half_points_and_components_have_variables_of_their_own(tmp_path: Path) -> None:
    for name in ("sound", "pair"):
        with PROGRAMS[name](devices="reference", places_per_controller=2) as run:
            run.run(4, output=tmp_path / f"{name}.zarr")
    sound, pair = opened(tmp_path / "sound.zarr"), opened(tmp_path / "pair.zarr")
    assert sound.p.dims == ("step", "y", "x") and sound.vx.dims == ("step", "y", "x_half")
    assert sound.vx.x_half.values[:2].tolist() == [0, 1]
    right = ran("pair", 4)
    assert sorted(pair.data_vars) == ["q_a", "q_b"]
    assert pair.q_b[-1].values.tobytes() == right["q_b"].tobytes()


def test_moments_that_are_saved_are_there_at_once(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    with PROGRAMS["wave"](devices="reference") as run:
        for now in run.steps(9, every=4):
            now.save(path, fields="u", y=slice(10, 50), stride=dict(x=2))
            found = opened(path)
            assert found.step.values[-1] == now.step == run.step
            assert (found.u[-1].values == np.asarray(now.u)[2:10, ::2]).all()
    assert opened(path).step.values.tolist() == [4, 8, 9]


def times_of(path: Path) -> list[float]:
    return opened(path).t.values.tolist()


def test_output_by_time_comes_with_the_first_step_that_is_there(tmp_path: Path) -> None:
    with PROGRAMS["wave"](devices="reference", dt=0.01) as run:     # whose multiples are inexact
        run.run(60, output=(tmp_path / "a.zarr", ct.every(time=0.1)))
    assert opened(tmp_path / "a.zarr").step.values.tolist() == [0, 10, 20, 30, 40, 50, 60]
    with PROGRAMS["heun"](devices="reference") as run:              # steps find their own dt
        run.run(until=1.0, output=(tmp_path / "b.zarr", ct.every(time=0.25)))
        times = [0.0]
        with PROGRAMS["heun"](devices="reference") as other:
            while other.time < 1.0:
                other.run(until=1.0, at_most=1)
                times.append(other.time)
        assert other.time == run.time       # and looking has changed nothing
    firsts = [min(t for t in times if t >= k * 0.25) for k in range(5)]
    assert times_of(tmp_path / "b.zarr") == firsts


def test_output_by_the_clock_looks_ever_more_rarely_and_is_at_the_ends(tmp_path: Path) -> None:
    with PROGRAMS["wave"](devices="reference") as run:
        run.run(40, output=(tmp_path / "a.zarr", ct.every(seconds=1e-9)))
        run.run(40, output=(tmp_path / "b.zarr", ct.every(seconds=1e9)))
    assert opened(tmp_path / "a.zarr").step.values.tolist() == [*range(41)]
    assert opened(tmp_path / "b.zarr").step.values.tolist() == [40, 80]


def test_time_that_steps_do_not_take_is_refused(tmp_path: Path) -> None:
    with PROGRAMS["pair"](devices="reference") as run:
        with pytest.raises(ValueError, match=r"steps take none.*give dt="):
            run.run(4, output=(tmp_path / "a.zarr", ct.every(time=0.1)))
        assert run.step == 0


@pytest.mark.parametrize("wrong, told", [
    (dict(output="a.nc"), r"'a.nc' is none of .zarr"),
    (dict(output=("a.zarr", 10)), r"ct.every\(steps=100\)"),
    (dict(output=3), "path"),
    (dict(output=ct.output("a.zarr", fields=["w"])), "no field 'w'; there are u, old"),
    (dict(output=ct.output("a.zarr", stride=dict(z=2))), "no axis 'z'; there are y, x"),
    (dict(output=ct.output("a.zarr", y=2.5, x=2.5)), "run.record"),
    (dict(output=ct.output("a.zarr", y=slice(0, 50, 2))), "stride="),
    (dict(checkpoint=("a", ct.every(time=1))), "steps= or seconds="),
])  # fmt: skip
def test_what_cannot_be_written_is_refused_before_the_first_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: dict[str, Any], told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with PROGRAMS["wave"](devices="reference") as run:
        with pytest.raises((TypeError, ValueError), match=told):
            run.run(4, **wrong)
        assert run.step == 0 and not [*tmp_path.iterdir()]
        run.run(1)


def test_a_field_named_as_an_axis_is_refused(tmp_path: Path) -> None:
    @ct.step
    def grow(x):
        return dict(x=x + x[1])

    run = ct.Computation(grow, ct.Grid(x=9, boundary="periodic"), devices="reference", x=0)
    with pytest.raises(ValueError, match="x would be the name of a variable and of a coord"):
        run.save(tmp_path / "a.zarr")
    run.close()


def test_one_store_has_one_selection(tmp_path: Path) -> None:
    with PROGRAMS["wave"](devices="reference") as run:
        run.save(tmp_path / "a.zarr")
        with pytest.raises(ValueError, match="written with other fields, cells or dtype"):
            run.save(tmp_path / "a.zarr", fields="u")
        run.run(2, output=ct.output(tmp_path / "a.zarr", ct.every(steps=1)))    # as often as wanted


def test_what_no_run_has_written_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "a.zarr").mkdir()
    (tmp_path / "a.zarr/notes").write_text("of the user's")
    (tmp_path / "b.zarr").write_text("a file")
    xarray.Dataset({"u": ("x", [1.0])}).to_zarr(tmp_path / "c.zarr")
    with PROGRAMS["wave"](devices="reference") as run:
        for name in ("a", "b", "c"):
            with pytest.raises(OSError, match="no store that a run has written"):
                run.save(tmp_path / f"{name}.zarr")
    assert (tmp_path / "a.zarr/notes").read_text() == "of the user's"
    assert xarray.open_zarr(tmp_path / "c.zarr").u.values == 1


def test_many_moments_have_their_steps_in_several_chunks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "AT_ONCE", 8)
    stencil = ct.Stencil.of("mean", [(-1, 1)], [1, 0, 1], 2)
    with ct.Computation(stencil, np.zeros(9, "f4"), devices="reference") as run:
        run.run(30, output=(tmp_path / "a.zarr", ct.every(steps=1)))
    assert opened(tmp_path / "a.zarr").step.values.tolist() == [*range(31)]


@WHOLE
def test_without_tensorstore_one_error_says_what_to_install(tmp_path: Path) -> None:
    text = f"""import sys; sys.modules["tensorstore"] = None
from kept_programs import PROGRAMS
PROGRAMS["wave"](devices="reference").save({str(tmp_path / 'a.zarr')!r})"""
    outcome = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True,
        env={**__import__("os").environ, **helpers_path()},
    )  # fmt: skip
    assert 'pip install "opencl-controllers[io]"' in outcome.stderr.splitlines()[-1]


def test_metadata_say_no_more_than_is_written(tmp_path: Path) -> None:
    with PROGRAMS["wave"](devices="reference") as run:
        run.run(4, output=(tmp_path / "a.zarr", ct.every(steps=2)))
    document = json.loads((tmp_path / "a.zarr/zarr.json").read_bytes())
    arrays = document["consolidated_metadata"]["metadata"]
    for name, array in arrays.items():
        assert json.loads((tmp_path / "a.zarr" / name / "zarr.json").read_bytes()) == array
    assert arrays["u"]["shape"] == [3, 14, 19] and arrays["step"]["shape"] == [3]
    assert not [*tmp_path.rglob(".new-*")]
