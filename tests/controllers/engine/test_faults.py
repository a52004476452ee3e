# SPDX-License-Identifier: MIT
"""The check that a run equals the reference fails with every injected fault, and only then."""
from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import faults
import pytest
from mpi_jobs import HANGS_S, run_ranks
from sample import sample

FAULTS = faults.all_faults()
CONTROLS = faults.all_controls()
RANKS = (1, 2)


class Jobs:
    """What the check says about the chosen faults: one job per number of ranks tries them all."""

    def __init__(self, names: list[str]) -> None:
        self._names = names
        self._problems: dict[str, str | None] = {}
        self._endings: dict[int, str] = {}

    def problem(self, name: str) -> str | None:
        """What the check has found, None if nothing; fails if the job did not get so far."""
        ranks = ranks_of(name)
        if ranks not in self._endings:
            self._endings[ranks] = self._run(ranks)
        assert name in self._problems, f"no result: {self._endings[ranks]}"
        return self._problems[name]

    def _run(self, ranks: int) -> str:
        chosen = [name for name in self._names if ranks_of(name) == ranks]
        try:
            job = run_ranks(ranks, [str(Path(faults.__file__)), *chosen], 2 * HANGS_S)
            output, ending = job.stdout, f"the job ended with code {job.returncode}\n{job.stderr}"
        except subprocess.TimeoutExpired as error:
            output, ending = str(error.stdout), f"the job was ended after {error.timeout} s"
        for line in output.splitlines():
            if line.startswith('{"name"'):
                result = json.loads(line)
                self._problems[result["name"]] = result["problem"]
        return ending


@pytest.fixture(scope="module")
def jobs(request: pytest.FixtureRequest) -> Jobs:
    """The jobs for the faults and controls that were selected."""
    items = (item for item in request.session.items if isinstance(item, pytest.Function))
    items = (item for item in items if item.module is request.module)
    return Jobs([item.callspec.params["name"] for item in items if "jobs" in item.fixturenames])


def ranks_of(name: str) -> int:
    return faults.SETTINGS[name.partition(":")[0]].combination.ranks


@pytest.mark.parametrize("name", sample(CONTROLS, 100))
def test_without_a_fault_the_check_passes(name: str, jobs: Jobs) -> None:
    assert jobs.problem(name) is None


@pytest.mark.parametrize("name", sample(FAULTS, 45))
def test_with_a_fault_the_check_fails(name: str, jobs: Jobs) -> None:
    assert jobs.problem(name) is not None, f"{name} goes unnoticed"


def kinds_of_waits(names: Iterator[str]) -> set[tuple[str, str]]:
    """What waits for what in the names of faults, without places and numbers."""
    orders = (name.partition(": ")[2].split() for name in names if " not after " in name)
    return {(words[0].partition("@")[0], words[4].partition("@")[0]) for words in orders}


def test_every_kind_of_wait_is_left_out_once() -> None:
    assert kinds_of_waits(iter(FAULTS)) == {
        ("launch", "copy"), ("launch", "upload"), ("launch", "receive"), ("launch", "send"),
        ("copy", "launch"), ("download", "launch"), ("send", "launch"), ("receive", "launch"),
        ("upload", "launch"), ("upload", "download"), ("download", "upload"),
        ("send", "download"), ("download", "send"), ("upload", "receive"), ("receive", "upload"),
        ("pack", "download"), ("download", "pack"), ("unpack", "upload"), ("upload", "unpack"),
    }  # fmt: skip


def test_all_four_corners_are_left_out_once() -> None:
    for setting in ("blocks", "device blocks", "blocks and messages"):
        assert sum("corner" in name for name in FAULTS if name.startswith(f"{setting}:")) == 4
