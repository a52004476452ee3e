# SPDX-License-Identifier: MIT
"""Signals that announce the end of a job: the run ends after a checkpoint, with a code of its own.
"""
from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kept_programs import PROGRAMS, alike, cells_of, ran
from mpi_jobs import helpers_path, run_ranks

import controllers as ct

SOME = ct.every(steps=1000)
ON_RANK_1 = """import os, signal, sys
from kept_programs import PROGRAMS
from hitmap.comm import default_communicator
comm = default_communicator()
def look(done, total):
    if comm.rank == 1 and done > 20:
        os.kill(os.getpid(), signal.SIGUSR1)
with PROGRAMS["wave"](devices="reference", comm=comm) as run:
    run.run(10**9, progress=look, checkpoint=sys.argv[1])
"""
PROGRAM = """import os, signal, sys
from kept_programs import PROGRAMS
def look(done, total):
    if sys.argv[1:] and done > 20:
        os.kill(os.getpid(), signal.SIGTERM)
with PROGRAMS["wave"](devices="reference") as run:
    run.run(500, progress=look)
    run.u.save("u.npy")
"""
PATTERN = "shape = [(-1, 1)]\npattern = [1, 2, 1]\nfactor = 4\n"


def signalling(number: int, times: int = 1) -> Any:
    """A `progress` that sends this process a signal so many times."""
    left = [times]

    def look(done: int, total: int) -> None:
        if done > 5 and left[0]:
            left[0] -= 1
            os.kill(os.getpid(), number)

    return look


@pytest.mark.parametrize("number, told", [
    (signal.SIGTERM, "SIGTERM: the run has ended after"),
    (signal.SIGUSR1, "SIGUSR1: the run has ended after"),
    (signal.SIGINT, "the run has ended after"),
])  # fmt: skip
def test_a_signal_ends_the_run_after_a_checkpoint(
    tmp_path: Path, number: signal.Signals, told: str
) -> None:
    kind = KeyboardInterrupt if number == signal.SIGINT else ct.Stopped
    before = signal.getsignal(number)
    with PROGRAMS["wave"](devices="reference") as run:
        with pytest.raises(kind, match=told) as error:
            run.run(10**9, progress=signalling(number), checkpoint=(tmp_path / "a", SOME))
        n_steps, want = run.step, cells_of(run)
    assert getattr(error.value, "code", 75) == 75
    assert signal.getsignal(number) == before
    assert [path.name for path in (tmp_path / "a/run-1").iterdir()] == [f"000001-step-{n_steps}"]
    assert alike(want, ran("wave", n_steps))
    assert alike(want, ran("wave", n_steps, kept=tmp_path / "a", restart="require"))


def test_a_signal_between_moments_ends_the_steps_after_a_checkpoint(tmp_path: Path) -> None:
    with PROGRAMS["wave"](devices="reference") as run:
        with pytest.raises(ct.Stopped):
            for now in run.steps(900, every=10, checkpoint=(tmp_path / "a", SOME)):
                if now.step == 30:
                    os.kill(os.getpid(), signal.SIGTERM)
        n_steps = run.step
    assert 30 <= n_steps < 900
    found = ran("wave", n_steps + 3, kept=tmp_path / "a", restart="require")
    assert alike(found, ran("wave", n_steps + 3))


def test_an_error_counts_more_than_a_checkpoint_that_is_due(tmp_path: Path) -> None:
    folder = tmp_path / "a/run-1"

    def fails(done: int, total: int) -> None:
        if folder.is_dir() and any(folder.iterdir()):       # the clock has asked by now
            time.sleep(0.02)
            raise ArithmeticError("of the user's")

    with PROGRAMS["wave"](devices="reference") as run:
        with pytest.raises(ArithmeticError, match="of the user's"):
            run.run(10**9, progress=fails, checkpoint=(tmp_path / "a", ct.every(seconds=0.01)))
        assert run.step > 0
        run.run(3)      # nothing is torn


def test_a_handler_of_the_program_stays(tmp_path: Path) -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, frame: heard.append(number))
    try:
        with PROGRAMS["wave"](devices="reference") as run:
            run.run(50, progress=signalling(signal.SIGUSR1), checkpoint=tmp_path / "a")
            assert run.step == 50 and heard == [signal.SIGUSR1]
    finally:
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.whole
def test_a_signal_of_one_rank_ends_all_with_the_code(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(ON_RANK_1)
    outcome = run_ranks(2, [str(tmp_path / "job.py"), str(tmp_path / "a")], env=helpers_path())
    assert outcome.returncode == 75, outcome.stderr
    [newest] = (tmp_path / "a/run-1").iterdir()
    n_steps = int(newest.name.rpartition("-")[2])
    assert alike(ran("wave", n_steps, kept=tmp_path / "a"), ran("wave", n_steps))


def command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "controllers", "run", *words], cwd=folder, text=True,
        capture_output=True, timeout=300, env={**os.environ, **helpers_path()},
    )  # fmt: skip


@pytest.mark.whole
def test_a_command_is_given_again_until_it_is_done(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    words = ("program.py", "--checkpoint", "kept", "--every", "1000")
    ended = command(tmp_path, *words, "--", "ends")
    assert ended.returncode == 75, ended.stderr
    assert "SIGTERM: the run has ended after" in ended.stderr and not ended.stdout
    done = command(tmp_path, *words, "--restart", "require")
    assert done.returncode == 0, done.stderr
    assert np.array_equal(np.load(tmp_path / "u.npy"), ran("wave", 500)["u"])
    other = command(tmp_path, *words, "--restart", "require", "--iterations", "503")
    assert other.returncode == 0, other.stderr
    assert np.array_equal(np.load(tmp_path / "u.npy"), ran("wave", 503)["u"])


@pytest.mark.whole
def test_a_program_whose_computations_have_no_steps_is_told(tmp_path: Path) -> None:
    (tmp_path / "arrays.py").write_text(
        "import controllers as ct\nwith ct.workspace(devices='reference') as on:\n    pass\n"
    )
    ended = command(tmp_path, "arrays.py", "--checkpoint", "kept")
    assert ended.returncode == 2 and "whose runs --checkpoint would keep" in ended.stderr
    assert not (tmp_path / "kept").exists()


@pytest.mark.whole
def test_options_of_a_pattern(tmp_path: Path) -> None:
    (tmp_path / "mean.py").write_text(PATTERN)
    words = ("mean.py", "--size", "40", "--device", "reference", "--checkpoint", "kept")
    for steps in ("7", "12"):
        done = command(tmp_path, *words, "--iterations", steps, "--output", f"{steps}.npy")
        assert done.returncode == 0, done.stderr
    assert [path.name for path in sorted((tmp_path / "kept/run-1").iterdir())] == [
        "000001-step-7", "000002-step-12"
    ]  # fmt: skip
    whole = command(tmp_path, *words[:-2], "--iterations", "12", "--output", "whole.npy")
    assert whole.returncode == 0, whole.stderr
    assert (tmp_path / "whole.npy").read_bytes() == (tmp_path / "12.npy").read_bytes()
    other = command(tmp_path, *words, "--iterations", "12", "--dtype", "float64")
    assert other.returncode == 2
    assert "the dtype of" in other.stderr and "was float32 and is float64" in other.stderr
    alone = command(tmp_path, *words[:-2], "--iterations", "12", "--restart", "require")
    assert alone.returncode == 2 and "--restart is of checkpoints" in alone.stderr
    never = command(tmp_path, *words, "--iterations", "12", "--every", "0")
    assert never.returncode == 2 and "--every" in never.stderr


WAVES = """import os, signal
from kept_programs import PROGRAMS
def look(done, total):
    if done > 20 and os.environ["SLURM_RESTART_COUNT"] != "2":
        os.kill(os.getpid(), signal.SIGUSR1)
with PROGRAMS["wave"](devices="reference") as run:
    run.run(700, progress=look)
    run.u.save("u.npy")
"""
SLURM = """
srun() { shift; "$PYTHON" "$@"; }
scontrol() { echo "$@" >> requeued; }
"""


@pytest.mark.whole
def test_the_job_script_of_the_docs_goes_on_until_all_is_done(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs/checkpoints.md").read_text()
    [script] = [text for text in page.split("```") if text.startswith("text\n#!/bin/bash")]
    head, _, rest = script.removeprefix("text\n").partition("\n")
    (tmp_path / "job").write_text(f"{head}{SLURM}{rest}")
    (tmp_path / "waves.py").write_text(WAVES)
    env = {**os.environ, **helpers_path(), "PYTHON": sys.executable, "SLURM_JOB_ID": "17"}
    for count, code in enumerate((75, 75, 0)):
        ended = subprocess.run(
            ["bash", "job"], cwd=tmp_path, text=True, capture_output=True, timeout=300,
            env={**env, "SLURM_RESTART_COUNT": str(count)},
        )  # fmt: skip
        assert ended.returncode == code, ended.stderr
    assert (tmp_path / "requeued").read_text().splitlines() == 2 * ["requeue 17"]
    assert np.array_equal(np.load(tmp_path / "u.npy"), ran("wave", 700)["u"])
