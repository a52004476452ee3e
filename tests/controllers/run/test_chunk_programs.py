# SPDX-License-Identifier: MIT
"""Programs that pass through in chunks: renamed fields, rules of the time."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sample import sample

import controllers as ct
from controllers.plan import ChunkPlan, SkewedPlan

EXAMPLES = Path(__file__).parents[3] / "examples"
GRID = ct.Grid(y=40, x=24)
INTERNAL: dict[str, Any] = {"devices": "cpu", "zero_copy": False}
START = {
    name: np.random.default_rng(number).random((40, 24), dtype=np.float32)
    for number, name in enumerate(("u", "old", "older"))
}


@ct.step
def wave(u: Any, old: Any, older: Any) -> Any:
    around = u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u
    return dict(u=1.9 * u - 0.8 * old + 0.25 * around - 0.05 * older[2, 0], old=u, older=old)


def ran(step: Any, n_steps: int, *, start: Any = START, **options: Any) -> dict[str, Any]:
    with ct.Computation(step, GRID, dtype="float32", dt=0.1, **start, **options) as run:
        for count in (n_steps // 2, n_steps - n_steps // 2):
            run.run(count)
        return {name: np.asarray(run[name].gather()) for name in start}


def alike(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return all(np.array_equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("boundary", [ct.fixed(0), ct.mirror(), "periodic", ct.keep()])
@pytest.mark.parametrize("width", sample([1, 2, 3, 4, 5], 2))
def test_fields_that_are_renamed_whatever_the_steps_of_a_pass(boundary: Any, width: int) -> None:
    right = ran(wave, 11, boundary=boundary, devices="reference")
    assert alike(right, ran(wave, 11, boundary=boundary, chunks=5, halo_width=width, **INTERNAL))


def test_a_cap_below_what_is_needed_and_what_a_pass_of_renames_brings() -> None:
    options = dict(boundary=ct.mirror(), memory_cap=30_000, halo_width=3, **INTERNAL)
    with ct.Computation(wave, GRID, dtype="float32", dt=0.1, **START, **options) as run:
        assert isinstance(run.plan, SkewedPlan)
        text = run.explain()
        run.run(20)
        assert run.report().devices[0].peak_bytes <= options["memory_cap"]
        found = {name: run[name].gather() for name in START}
    assert alike(ran(wave, 20, boundary=ct.mirror(), devices="reference"), found)
    for name in START:
        assert f"field {name}: split, up and down, each row once, 1 image on the host" in text


def test_a_checkpoint_between_passes_of_an_odd_number_of_steps(tmp_path: Path) -> None:
    def kept(n_steps: int, restart: str, **options: Any) -> dict[str, Any]:
        with ct.Computation(
            wave, GRID, dtype="float32", dt=0.1, boundary=ct.fixed(0), **START, **options
        ) as run:  # fmt: skip
            run.run(n_steps, checkpoint=(tmp_path / "kept", ct.every(steps=5)), restart=restart)
            return {name: run[name].gather() for name in START}

    kept(8, "no", chunks=4, halo_width=3, **INTERNAL)
    found = kept(21, "require", chunks=3, halo_width=4, **INTERNAL)
    assert alike(ran(wave, 21, boundary=ct.fixed(0), devices="reference"), found)


@ct.step
def spread(u: Any, v: Any, *, t: ct.Time) -> Any:
    return dict(u=u + 0.1 * (u[-1, 0] + u[1, 0] - 2 * u))


@ct.step
def gather(u: Any, v: Any, *, t: ct.Time) -> Any:
    return dict(v=0.5 * v + u[-2, 0] - u[3, 0])


@pytest.mark.parametrize("width", sample([1, 2, 4], 1))
@pytest.mark.parametrize("steps", [[spread, gather], wave])
def test_cells_outside_that_two_steps_read_and_that_are_others_in_each(
    steps: Any, width: int
) -> None:
    """Chunks cannot be skewed: the rows that are left would be read with those of a later step."""
    timed = ct.fixed(lambda y, x, t: y + x * t)
    names = ("u", "v") if isinstance(steps, list) else ("u", "old", "older")
    start = dict(zip(names, START.values()))
    boundary = {name: ct.fixed(0) if name == "v" else timed for name in names}
    options = dict(start=start, boundary=boundary)
    right = ran(steps, 9, devices="reference", **options)
    assert alike(right, ran(steps, 9, chunks=6, halo_width=width, **INTERNAL, **options))
    with ct.Computation(
        steps, GRID, dtype="float32", dt=0.1, boundary=boundary, chunks=6, **INTERNAL, **start
    ) as run:  # fmt: skip
        assert isinstance(run.plan, ChunkPlan) and not isinstance(run.plan, SkewedPlan)
        assert "cells outside of field 'u', which two steps read, are others in" in run.explain()


@pytest.mark.whole
def test_the_example_of_a_wave_runs_in_chunks_from_the_command_line(tmp_path: Path) -> None:
    """On a device that is told to have memory of its own."""
    text = (EXAMPLES / "wave.py").read_text(encoding="utf-8")
    (tmp_path / "wave.py").write_text(text.replace("dt=dt,", "dt=dt, zero_copy=False,"))
    found = []
    for options in ((), ("--chunks", "5", "--halo-width", "7"), ("--memory-cap", "1m")):
        command = ["-m", "controllers", "run", "wave.py", "--device", "cpu", "--iterations", "50"]
        job = subprocess.run(
            [sys.executable, *command, *options], cwd=tmp_path,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert job.returncode == 0, job.stderr
        assert (" of 1 MiB in use" in job.stdout) == ("--memory-cap" in options)
        found.append(np.load(tmp_path / "wave.npy"))
    assert all(np.array_equal(found[0], one) for one in found) and found[0].any()
