# SPDX-License-Identifier: MIT
"""The tools whose figures are in the documentation run, in small; how fast things are is theirs."""
from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from mpi_jobs import HANGS_S

TOOLS = Path(__file__).parents[1] / "tools"
ONE_CORE = ["--device", "cpu/1", "--cores", "2"]
PIECE = re.compile(r"  .+: (\S+) to (\S+) ms, rows (\d+) to (\d+) in .+")


def printed(tool: str, *words: str) -> str:
    """What a tool prints, with nothing known of devices."""
    done = subprocess.run(
        [sys.executable, TOOLS / f"{tool}.py", *words], capture_output=True, text=True,
        timeout=HANGS_S, env={**os.environ, "CONTROLLERS_ESTIMATES": "off"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_sides_do_all_rows_of_a_task_in_pieces_after_its_submission() -> None:
    """Each row once, whoever does it; a task that one side has done alone has no pieces."""
    given = [*ONE_CORE, "--pause", "--milliseconds", "60", "--ratios", "1", "--rounds", "2"]
    head, *tasks = printed("measure_sides", *given, "--pieces").split(" a task of ")
    assert head.startswith("1:1: first alone ") and len(tasks) == 2
    for task in tasks:
        took, *lines = task.splitlines()
        rows = list[tuple[int, int]]()
        for line in lines:
            piece = PIECE.fullmatch(line)
            assert piece is not None, line
            assert 0 < float(piece[1]) < float(piece[2]) <= float(took.split()[0]), task
            rows.append((int(piece[3]), int(piece[4])))
        rows.sort()
        assert [low for low, _ in rows[1:]] == [high for _, high in rows[:-1]]
        assert not rows or (rows[0][0], rows[-1][1]) == (0, 512)


def test_shares_are_measured_with_the_bits_of_one_device() -> None:
    given = ["--size", "256", "--settle", "100", "--steps", "90", "--slower", "2", "--axes", "2"]
    assert "same bits: 1 of 1" in printed("measure_balance", *given, "--dtypes", "float32")


@pytest.mark.whole
def test_times_over_the_sums_of_a_side_are_listed_for_both_ways_to_merge() -> None:
    given = ["--private", "--size", "20", "--pause", "2", "1", "--steps", "1", "--rounds", "1"]
    table = printed("measure_hybrid", *ONE_CORE, *given, "--every", "25", "--seconds", "1")
    of_2_cores = [line.split()[1] for line in table.splitlines() if line.split()[:1] == ["2"]]
    assert of_2_cores == ["changed", "whole", "0", "25"]


def test_what_a_task_costs_is_listed() -> None:
    found = printed("measure_tasks", *ONE_CORE, "overhead")
    medians = dict(re.findall(r"overhead, (.+): median (\S+),", found))
    assert {"to enqueue", "submit", "to end"} <= {*medians}
    assert float(medians["to enqueue"]) < float(medians["to end"])
