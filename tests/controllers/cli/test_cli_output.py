# SPDX-License-Identifier: MIT
"""`controllers run --output run.zarr --every N`: moments of patterns and of programs."""
from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import xarray

from controllers.cli import main

PATTERN = "shape = ((-1, 1), (-1, 1))\npattern = [[0, 1, 0], [1, 2, 1], [0, 1, 0]]\nfactor = 6\n"
PROGRAM = """\
import numpy as np
import controllers as ct

@ct.step
def heat(u, *, k=0.1):
    return dict(u=u + k * (u[-1] + u[1] - 2 * u))

for n in (1, 2):
    grid = ct.Grid(x=40, boundary="periodic")
    with ct.Computation(heat, grid, u=lambda x: n * x, devices="reference", dt=0.5) as run:
        run.run(6)
        for now in run.steps(4, every=3):
            pass
        np.save(f"{n}.npy", np.asarray(run.u))
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mean.py").write_text(PATTERN)
    (tmp_path / "heat.py").write_text(PROGRAM)
    return tmp_path


def run(command: str) -> int:
    return main(["run", *command.split(), "--device", "reference"])


def steps_of(path: str) -> list[int]:
    found: list[int] = xarray.open_zarr(path).step.values.tolist()
    return found


def test_moments_of_a_pattern_go_to_a_store(folder: Path) -> None:
    pattern = "mean.py --size 9 11 --iterations 10"
    assert run(f"{pattern} --output last.npy") == 0
    for _ in range(2):      # a second run begins the store anew
        assert run(f"{pattern} --output a.zarr --every 4") == 0
        assert steps_of("a.zarr") == [0, 4, 8, 10]
    assert (xarray.open_zarr("a.zarr").u[-1].values == np.load("last.npy")).all()
    both = "--checkpoint kept --checkpoint-every 100"
    assert run(f"{pattern} --output b.zarr --every 1e6s {both}") == 0
    assert steps_of("b.zarr") == [0, 10]
    assert run(f"mean.py --size 9 11 --iterations 13 --output b.zarr {both} --restart require") == 0
    assert steps_of("b.zarr") == [0, 10, 13]


def test_moments_of_a_program_go_to_a_store_for_each_computation(folder: Path) -> None:
    assert run("heat.py --output a.zarr --every 1t") == 0
    for number, path in enumerate(("a.zarr", "a-2.zarr"), 1):
        assert steps_of(path) == [0, 2, 4, 6, 8, 10]
        assert (xarray.open_zarr(path).u[-1].values == np.load(f"{number}.npy")).all()


@pytest.mark.parametrize("command, told", [
    ("mean.py --size 9 9 --iterations 4 --every 2", "--every is of checkpoints; give --checkpoint"),
    ("mean.py --size 9 9 --iterations 4 --checkpoint-every 2", "--checkpoint-every is of checkp"),
    ("mean.py --size 9 9 --iterations 4 --output a.zarr --every 1.5", "a whole number of steps"),
    ("mean.py --size 9 9 --iterations 4 --output a.zarr --every x", "a number above 0, of seconds"),
    ("mean.py --size 9 9 --iterations 4 --output a.zarr --every 2t", "steps take none"),
    ("mean.py --size 9 9 --iterations 4 --checkpoint k --every 2t", "every so many seconds"),
    ("heat.py --output u.npy", "--output is for a pattern"),
])  # fmt: skip
def test_options_that_make_no_sense_are_refused(
    capsys: pytest.CaptureFixture[str], command: str, told: str
) -> None:
    assert run(command) in (1, 2)
    assert told in capsys.readouterr().err


def test_without_tensorstore_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "tensorstore", None)
    assert run("mean.py --size 9 9 --iterations 4 --output a.zarr") == 2
    assert 'pip install "opencl-controllers[io]"' in capsys.readouterr().err
