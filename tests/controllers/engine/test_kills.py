# SPDX-License-Identifier: MIT
"""A rank that ends in the middle of a job ends the job: soon, for all, and nothing is half done.

`pytest --kills 100 tests/controllers/engine/test_kills.py` draws a hundred of them.
"""
from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import kills
import pytest
from mpi_jobs import SOON_S, run_ranks
from sample import sample

ALLOWED_S = SOON_S  # from the death of the rank to the end of the last process
MARK = "CONTROLLERS_TEST_MARK"
OLD = b"what was there before"
BEGINNINGS = ("controllers: error:", "rank ")   # of messages
PATTERN = "shape = ((-1, 1), (-1, 1))\npattern = [0, 1, 0, 1, 2, 1, 0, 1, 0]\nfactor = 6\n"
OPTIONS = (
    "--size 190 180 --iterations 4000 --steps-per-launch 1 --overlap on --device cpu "
    "--output out.npy"
)


@dataclass
class Ending:
    """How a job ended."""

    job: subprocess.CompletedProcess[str]
    seconds: float      # from the death of the rank
    stray: list[int]
    files: list[str]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "number" in metafunc.fixturenames:
        metafunc.parametrize("number", range(metafunc.config.getoption("--kills")))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "star.py").write_text(PATTERN, encoding="utf-8")
    return tmp_path


def ended(kill: kills.Kill) -> Ending:
    mark = uuid.uuid4().hex
    arguments = [*kill.arguments(), "run", "star.py", *OPTIONS.split()]
    job = run_ranks(kill.ranks, [kills.__file__, *arguments], env={MARK: mark})
    assert kills.TOLD.exists(), f"the rank did not come to its end: {job.stderr}"
    died = float(kills.TOLD.read_text(encoding="utf-8"))
    while (stray := list(marked(mark))) and time.time() - died < ALLOWED_S:
        time.sleep(0.01)
    files = sorted(path.name for path in Path().iterdir() if path != kills.TOLD)
    return Ending(job, time.time() - died, stray, files)


def marked(mark: str) -> Iterator[int]:
    """Processes that have inherited the mark; one that has ended shows no environment."""
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"{MARK}={mark}".encode() in entry.read_bytes():
                yield int(entry.parent.name)
        except OSError:
            continue


def test_a_rank_that_ends_ends_the_job(number: int) -> None:
    kill = kills.drawn(number)
    is_there = number % 2 == 0
    if is_there:
        Path("out.npy").write_bytes(OLD)
    ending = ended(kill)
    print(f"{kill}: {ending.seconds:.2f} s, code {ending.job.returncode}, {ending.files}")
    assert ending.job.returncode != 0, kill
    assert ending.seconds < ALLOWED_S, kill
    assert ending.stray == [], kill
    assert ("out.npy" in ending.files) == is_there, kill
    if is_there:
        assert Path("out.npy").read_bytes() == OLD, kill
    if kill.way != "SIGKILL":       # which leaves no time to remove a file
        assert ending.files == ["out.npy", "star.py"][not is_there :], kill
    if kill.way in ("OSError", "KeyError", "thread"):
        assert "as the test wants it" in ending.job.stderr, kill
        said = [line for line in ending.job.stderr.splitlines() if line.startswith(BEGINNINGS)]
        assert len(said) == 1 and f"rank {kill.rank}" in said[0], kill


@pytest.mark.parametrize("rank", sample([1, 0], 2))
def test_a_terminated_rank_removes_what_is_not_finished(rank: int) -> None:
    ending = ended(kills.Kill(2, rank, "output", "SIGTERM", 1))
    assert ending.job.returncode != 0
    assert ending.files == ["star.py"]


def test_the_marks_find_a_process() -> None:
    mark = uuid.uuid4().hex
    program = [sys.executable, "-c", "input()"]
    env = {**os.environ, MARK: mark}
    with subprocess.Popen(program, env=env, stdin=subprocess.PIPE) as sleeper:
        until = time.monotonic() + SOON_S
        while not list(marked(mark)) and time.monotonic() < until:
            time.sleep(0.01)    # its environment is there as soon as it is another program
        assert list(marked(mark)) == [sleeper.pid]
        sleeper.communicate(b"\n")
    assert list(marked(mark)) == []
