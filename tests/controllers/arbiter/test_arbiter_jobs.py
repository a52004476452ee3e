# SPDX-License-Identifier: MIT
"""Processes that share cores and devices: none is given twice, whoever is killed, and in turn."""
from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import arbiter_jobs
import pytest
from mpi_jobs import HANGS_S


def run(*words: str) -> str:
    command = [sys.executable, arbiter_jobs.__file__, *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=2 * HANGS_S)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not done.stderr, done.stderr
    return done.stdout


@pytest.mark.parametrize("n_kills", [10, pytest.param(100, marks=pytest.mark.whole)])
def test_no_unit_is_given_twice_when_processes_are_killed(n_kills: int, tmp_path: Path) -> None:
    """8 processes, 5 cores, 2 devices: all others finish, and nothing is left of the dead."""
    told = run("kills", str(tmp_path), str(n_kills), str(n_kills))
    assert told.startswith(f"{n_kills} killed, ")
    assert int(told.split()[2]) >= n_kills * arbiter_jobs.N_PROCESSES
    assert "ticket" not in told and "inner" not in told


@pytest.mark.whole
def test_before_whatever_call_a_process_dies_all_is_free(tmp_path: Path) -> None:
    told = run("crashes", str(tmp_path))
    assert int(told.split()[2]) > 50, "it passed through all of it"


@pytest.mark.whole
def test_nobody_is_overtaken_more_often_than_there_are_others(tmp_path: Path) -> None:
    """Who waits is served after those before it: each of the others is there at most once.

    Who got the core before, and logs that late, asks again behind it.
    """
    n_turns = 20
    run("queue", str(tmp_path), str(n_turns))
    waits: dict[str, Counter[str]] = {}
    turns: Counter[str] = Counter()
    most = 0
    for line in (tmp_path / "log").read_text().splitlines():
        word, pid = line.split()
        if word == "waits":
            waits[pid] = Counter()
            continue
        turns[pid] += 1
        most = max(most, *waits.pop(pid, Counter({"": 0})).values(), 0)
        for others in waits.values():
            others[pid] += 1
    assert list(turns.values()) == [n_turns] * arbiter_jobs.N_PROCESSES
    assert most == 1
