# SPDX-License-Identifier: MIT
"""Output of runs that are killed, go on, are read meanwhile, or cannot write: no half moments."""
from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from full_disk import full_disk
from kept_programs import PROGRAMS, alike, cells_of, ran
from mpi_jobs import find_mpiexec, helpers_path, run_ranks
from output_runs import STEPS, check

import controllers as ct

JOB = Path(__file__).parents[2] / "support/output_runs.py"
SOME = ct.every(steps=2)


def steps_of(path: Path) -> list[int]:
    import xarray

    found: list[int] = xarray.open_zarr(path).step.values.tolist()
    return found


@pytest.mark.whole
def test_stores_of_killed_runs_are_whole_and_go_on(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    count = pytestconfig.getoption("output_kills")
    outcome = subprocess.run(
        [sys.executable, str(JOB), "kill", "0", str(count), str(tmp_path)],
        capture_output=True, text=True, timeout=1700, env={**os.environ, **helpers_path()},
    )  # fmt: skip
    assert outcome.returncode == 0, outcome.stderr
    said = outcome.stdout.split()
    assert said[0] == "kills:" and int(said[1]) >= count, outcome.stdout


@pytest.mark.whole
@pytest.mark.parametrize("ranks", [1, pytest.param(3, marks=pytest.mark.whole)])
def test_a_reader_that_polls_never_sees_half_a_step(tmp_path: Path, ranks: int) -> None:
    command = [find_mpiexec(), "-n", str(ranks), sys.executable, str(JOB), "run", str(tmp_path)]
    job = subprocess.Popen(
        [*command, "100000"], env={**os.environ, **helpers_path()}, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    counts: set[int] = set()
    try:
        while len(counts) < 8:      # it sees it grow
            assert job.poll() is None
            if (tmp_path / "a.zarr").exists():
                steps = check(tmp_path / "a.zarr")
                assert steps == [*range(0, 2 * len(steps), 2)]
                assert len(steps) >= max(counts, default=0)
                counts.add(len(steps))
    finally:
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()
    assert len(check(tmp_path / "a.zarr")) >= max(counts)


@pytest.mark.whole
def test_a_job_that_has_lost_a_rank_leaves_a_whole_store(tmp_path: Path) -> None:
    command = [find_mpiexec(), "-n", "3", sys.executable, str(JOB), "run", str(tmp_path), "100000"]
    job = subprocess.Popen(
        command, env={**os.environ, **helpers_path()}, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    while not (tmp_path / "a.zarr").exists() or len(check(tmp_path / "a.zarr")) < 5:
        assert job.poll() is None
    os.killpg(job.pid, signal.SIGKILL)
    job.wait()
    assert len(check(tmp_path / "a.zarr")) >= 5
    outcome = run_ranks(2, [str(JOB), "run", str(tmp_path), str(STEPS)], env=helpers_path())
    assert outcome.returncode == 0, outcome.stderr


def test_a_run_that_goes_on_writes_again_what_came_after_its_checkpoint(tmp_path: Path) -> None:
    out, kept = (tmp_path / "a.zarr", SOME), (tmp_path / "kept", ct.every(steps=5))
    with PROGRAMS["wave"](devices="reference") as run:
        run.run(12, output=out, checkpoint=kept)
    assert steps_of(out[0]) == [0, 2, 4, 6, 8, 10, 12]
    newest = tmp_path / "kept/run-1/000003-step-12"
    assert newest.is_dir()
    shutil.rmtree(newest)       # as if the job had been killed before
    with PROGRAMS["wave"](devices="reference", places_per_controller=3) as run:
        run.run(15, output=out, checkpoint=kept, restart="require")
    assert steps_of(out[0]) == [0, 2, 4, 6, 8, 10, 12, 14, 15]
    with PROGRAMS["wave"](devices="reference") as run:      # which is over: nothing is written
        before = (out[0] / "zarr.json").stat().st_mtime_ns
        run.run(15, output=out, checkpoint=kept, restart="require")
        assert (out[0] / "zarr.json").stat().st_mtime_ns == before
    with PROGRAMS["wave"](devices="reference") as run:      # of no checkpoint: anew
        run.run(3, output=out)
    assert steps_of(out[0]) == [0, 2, 3]


@pytest.mark.whole
def test_moments_that_are_saved_by_hand_go_on_too(tmp_path: Path) -> None:
    path, kept = tmp_path / "a.zarr", (tmp_path / "kept", ct.every(steps=4))
    for n_steps, restart in ((10, "no"), (16, "require")):
        with PROGRAMS["wave"](devices="reference") as run:
            for now in run.steps(n_steps, every=3, checkpoint=kept, restart=restart):
                now.save(path)
    assert steps_of(path) == [3, 6, 9, 10, 12, 15, 16]


def test_another_program_does_not_go_on_in_a_store(tmp_path: Path) -> None:
    path, kept = tmp_path / "a.zarr", (tmp_path / "kept", ct.every(steps=4))
    with PROGRAMS["wave"](devices="reference") as run:
        run.run(4, checkpoint=kept, output=path)
    with PROGRAMS["wave"](devices="reference") as run, pytest.raises(
        ValueError, match=r"u was .float64.* and is .float32.*name another output"
    ):
        wanted = ct.output(path, SOME, dtype="float32")
        run.run(8, checkpoint=kept, restart="require", output=wanted)


def test_a_full_disk_ends_the_run_with_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    with PROGRAMS["wave"](devices="reference") as run:
        run.run(4, output=(path, SOME))
        with full_disk(1000), pytest.raises(
            OSError, match="a.zarr: writing has failed: .*what is listed there is complete"
        ):
            run.run(200, output=(path, SOME))
        assert run.step <= 12       # one was written, one waited, and the third one had to
        assert alike(cells_of(run), ran("wave", run.step))      # nothing is torn
        assert steps_of(path) == [0, 2, 4]
        run.run(3)


@pytest.mark.whole
def test_a_rank_whose_disk_is_full_ends_all_with_one_error(tmp_path: Path) -> None:
    outcome = run_ranks(3, [str(JOB), "run", str(tmp_path), "500", "2"], env={
        **helpers_path(), "PYTHONDONTWRITEBYTECODE": "1",       # which would be cut short
    })  # fmt: skip
    assert outcome.returncode == 1
    assert "a.zarr: writing has failed: rank 2: " in outcome.stderr
    assert outcome.stderr.count("OSError: ") <= 2, outcome.stderr   # the head, and its traceback
    assert check(tmp_path / "a.zarr") == []


def test_a_folder_that_cannot_be_written_is_refused_before_the_first_step(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    wrong = {tmp_path / "file/a.zarr": "Not a directory", tmp_path / "nowhere/a.zarr": "No such"}
    if os.geteuid() != 0:       # root may write anywhere
        wrong[closed / "a.zarr"] = "Permission denied"
    for path, told in wrong.items():
        with PROGRAMS["wave"](devices="reference") as run:
            with pytest.raises(OSError, match=told):
                run.run(4, output=(path, SOME))
            assert run.step == 0


def test_an_interrupted_run_has_all_its_moments(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"

    def interrupt(done: int, total: int) -> None:
        if done >= 20:
            raise KeyboardInterrupt

    with PROGRAMS["wave"](devices="reference") as run:
        with pytest.raises(KeyboardInterrupt):
            run.run(100000, interrupt, output=(path, SOME))
        step = run.step
        assert steps_of(path) == [*range(0, step + 1, 2)]


def test_moments_after_the_first_nan_are_dropped(tmp_path: Path) -> None:
    @ct.step
    def burst(u):
        return dict(u=u + 1 + 0 * np.sqrt(7.0 - u))

    with ct.Computation(burst, ct.Grid(x=5), u=0, devices="reference") as run:
        with pytest.raises(FloatingPointError):
            run.run(60, output=(tmp_path / "a.zarr", ct.every(steps=1)), stop_if=True)
        assert steps_of(tmp_path / "a.zarr") == [*range(run.step + 1)]
