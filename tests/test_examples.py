# SPDX-License-Identifier: MIT
"""The examples run, with one process and with ranks, and check their own results."""
from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi_jobs import run_ranks

from controllers.language.pattern_file import read_patterns
from controllers.program.reference import reference_run

EXAMPLES = Path(__file__).parents[1] / "examples"
TERRAIN = EXAMPLES / "terrain"
# of programs of traced steps; more show more
STEPS = {"red_black": 480, "lattice_boltzmann": 8000, "acoustic": 64, "multigrid": 6}
# of programs of arrays; they compare themselves with NumPy
CELLS = {"conjugate_gradients": 31, "chebyshev": 31}

needs_two_cores = pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="divides a CPU in two")


def run_alone(script: Path, *arguments: str) -> str:
    command = [sys.executable, str(script), *arguments]
    job = subprocess.run(command, capture_output=True, text=True, check=False)
    assert job.returncode == 0, job.stderr
    return job.stdout


@pytest.mark.parametrize("path", sorted(EXAMPLES.rglob("*.py")), ids=lambda path: path.name)
def test_an_example_has_at_most_70_lines(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 70


@pytest.mark.whole
def test_heat_2d_alone_and_on_two_ranks() -> None:
    job = run_ranks(2, EXAMPLES / "heat_2d.py")
    assert job.returncode == 0, job.stderr
    for printed in (run_alone(EXAMPLES / "heat_2d.py"), job.stdout):
        assert printed.splitlines()[-1].count("cells/s") == 1


@pytest.mark.whole
@needs_two_cores
def test_heat_on_two_controllers_is_heat_on_two_ranks() -> None:
    job = run_ranks(2, EXAMPLES / "heat_two_controllers.py")
    assert job.returncode == 0, job.stderr
    printed = [run_alone(EXAMPLES / "heat_two_controllers.py"), job.stdout]
    for text in printed:
        assert text.splitlines()[-1] == "equal to the reference, bit for bit"
    before_table = [text.partition("place  rank")[0] for text in printed]
    assert before_table[0] == before_table[1], "the same layout and messages"


@pytest.mark.whole
def test_the_low_level_program_has_the_bits_of_numpy() -> None:
    assert "in the gradients" in run_alone(EXAMPLES / "low_level.py")


@pytest.mark.whole
@pytest.mark.parametrize("name", ["histogram.py", "matrix_product.py"])
@needs_two_cores
def test_a_data_parallel_program_runs_on_one_device_on_two_and_on_two_ranks(name: str) -> None:
    assert "place 1" not in run_alone(EXAMPLES / name)
    job = run_ranks(2, [str(EXAMPLES / name), "cpu", "1,2"])
    assert job.returncode == 0, job.stderr
    in_one_process = run_alone(EXAMPLES / name, "cpu/1,1", "1,2")
    assert "place 1" in job.stdout and job.stdout == in_one_process


@pytest.mark.whole
def test_unlike_devices_share_one_stencil() -> None:
    table = run_alone(EXAMPLES / "unlike_devices.py").splitlines()
    assert len(table) > 3 and table[0].startswith("place  rank")


@pytest.mark.whole
@pytest.mark.parametrize("name", STEPS)
def test_a_program_of_traced_steps_checks_itself(name: str) -> None:
    runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"](STEPS[name])


def v_cycle(p: Any, f: Any) -> Any:
    """What a V-cycle makes of p, in plain NumPy."""

    def relaxed(p: Any) -> Any:
        for colour in (0, 1):
            cells = np.add.outer(np.arange(len(p)), np.arange(len(p))) % 2 == colour
            p = np.where(cells, p + left_by(p, f) / 4, p)
        return p

    p = relaxed(p)
    if len(p) > 1:
        e, weighed = np.zeros_like(p), spread(left_by(p, f))[1::2, 1::2]
        e[1::2, 1::2] = v_cycle(np.zeros_like(weighed), weighed)
        p = relaxed(p + spread(e))
    return p


def left_by(p: Any, f: Any) -> Any:
    q = np.pad(p, 1)
    return f + q[:-2, 1:-1] + q[2:, 1:-1] + q[1:-1, :-2] + q[1:-1, 2:] - 4 * p


def spread(f: Any) -> Any:
    for axis in (0, 1):
        wide = np.pad(f, 1)
        f = f + (np.roll(wide, 1, axis) + np.roll(wide, -1, axis))[1:-1, 1:-1] / 2
    return f


@pytest.mark.whole
def test_multigrid_needs_as_many_cycles_as_in_numpy(capsys: pytest.CaptureFixture[str]) -> None:
    at = np.arange(1, 64) / 64
    f = 2 / 64**2 * np.add.outer(at * (1 - at), at * (1 - at))
    p, n_cycles = np.zeros_like(f), 0
    while np.linalg.norm(left_by(p, f)) > 1e-8 * np.linalg.norm(f):
        p, n_cycles = v_cycle(p, f), n_cycles + 1
    runpy.run_path(str(EXAMPLES / "multigrid.py"))["main"](6)
    assert abs(int(capsys.readouterr().out.split()[0]) - n_cycles) <= 1


@pytest.mark.whole
@pytest.mark.parametrize("name", sorted(CELLS))
def test_a_program_of_arrays_needs_the_iterations_that_numpy_needs(name: str) -> None:
    runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"](CELLS[name])


@pytest.mark.whole
@pytest.mark.parametrize("name", STEPS | CELLS)
def test_a_program_prints_the_same_on_two_ranks(name: str) -> None:
    script, steps = EXAMPLES / f"{name}.py", str(min((STEPS | CELLS)[name], 100))
    job = run_ranks(2, [str(script), steps])
    assert job.returncode == 0, job.stderr
    assert job.stdout and job.stdout == run_alone(script, steps)


@pytest.mark.whole
@pytest.mark.parametrize("n_ranks", [1, 2])
def test_the_terrain_erodes_as_the_reference_says(n_ranks: int, tmp_path: Path) -> None:
    target = tmp_path / "eroded.npy"
    command = ["-m", "controllers", "run", str(TERRAIN / "diffusion.py"), "--iterations", "50"]
    command += ["--input", str(TERRAIN / "elevation.npy"), "--output", str(target)]
    job = run_ranks(n_ranks, command)
    assert job.returncode == 0, job.stderr
    (stencil,) = read_patterns(TERRAIN / "diffusion.py")
    elevation = np.load(TERRAIN / "elevation.npy")
    right = reference_run(stencil.program("float32"), elevation, 50, (False, False))
    assert np.array_equal(np.load(target), right)


def test_the_terrain_is_the_one_that_matplotlib_ships(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    tool = EXAMPLES.parent / "tools" / "make_terrain.py"
    made = tmp_path / "elevation.npy"
    subprocess.run([sys.executable, str(tool), str(made)], check=True)
    assert made.read_bytes() == (TERRAIN / "elevation.npy").read_bytes()
