# SPDX-License-Identifier: MIT
"""Ranks that do unlike things get one error on all of them, which names the odd one."""
from __future__ import annotations

import json
import time
from pathlib import Path

import disagreements
import pytest
from mpi_jobs import SOON_S, helpers_path, run_parts, run_ranks
from sample import sample

Told = dict[str, list[str]]


@pytest.fixture(scope="module")
def told(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Told:
    """What each rank was told in each case that was selected: one job tries them all."""
    items = [item for item in request.session.items if isinstance(item, pytest.Function)]
    own = [item for item in items if item.path == request.path and "told" in item.fixturenames]
    chosen = [item.callspec.params["name"] for item in own]
    folder = tmp_path_factory.mktemp("disagreements")
    script = f"import os, disagreements; os.chdir({str(folder)!r}); disagreements.main({chosen})"
    job = run_ranks(3, ["-c", script], env=helpers_path())
    assert job.returncode == 0, job.stdout + job.stderr
    assert sorted(path.name for path in folder.iterdir()) == ["in.npy"]
    lines = [json.loads(line) for line in job.stdout.splitlines()]
    return {line["name"]: line["told"] for line in lines}


@pytest.mark.parametrize("name", sample(disagreements.CASES, 6))
def test_all_ranks_are_told_the_same_and_who_is_the_odd_one(name: str, told: Told) -> None:
    first, *others = told[name]
    assert others == [first, first]
    assert "on all ranks" in first or "the same collective calls" in first, first
    assert "most have" in first and f"rank {disagreements.ODD} has" in first, first
    for word in disagreements.CASES[name][2]:
        assert word in first, first


HEAD = """
import sys
import controllers
from hitmap import default_communicator
comm = default_communicator()
mean = controllers.Stencil.of("mean", [(-1, 1)], [1, 0, 1], 2).program("float32")
made = lambda: controllers.Computation(mean, 90, devices="reference", comm=comm)
"""
LEAVING = {
    "before anything is made": "if comm.rank == 1: sys.exit(3)\nmade()",
    "with a word": "if comm.rank == 1: sys.exit('no such file')\nmade()",
    "before a run": "it = made()\nif comm.rank == 1: sys.exit(3)\nit.run(1)",
    "with code 0": "it = made()\nif comm.rank == 0: it.run(1)",
    "while others catch the error": (
        "it = made()\nwhile comm.rank == 0:\n"
        "    try: it.run(1)\n    except ValueError as error: print(error, file=sys.stderr)"
    ),
}


@pytest.mark.whole
@pytest.mark.parametrize("how", sample(LEAVING, 5))
def test_a_rank_that_leaves_early_ends_the_job(how: str) -> None:
    start = time.monotonic()
    job = run_ranks(2, HEAD + LEAVING[how])
    assert time.monotonic() - start < SOON_S
    assert job.returncode != 0
    assert "the end of the program" in job.stderr or "while other ranks go on" in job.stderr


@pytest.mark.whole
@pytest.mark.parametrize("code", [3, 0])
def test_ranks_that_leave_together_end_as_they_say(code: int) -> None:
    late = "import time\nif comm.rank == 1: time.sleep(0.5)\n"
    program = HEAD + f"made().run(2)\n{late}sys.exit({code})"
    job = run_ranks(2, program)
    assert job.returncode == code
    assert " of 2 on " not in job.stderr    # which begins all messages of the hook


@pytest.mark.whole
def test_freed_communicators_give_back_what_agreements_needed() -> None:
    program = HEAD + (
        "from hitmap import agree\n"
        "for turn in range(3000):      # more than MPICH has communicators\n"
        "    other = comm.Dup(); agree(other, 'turn', turn); other.Free()\n"
    )
    job = run_ranks(2, program)
    assert job.returncode == 0, job.stderr


def test_commands_that_differ_between_ranks_are_an_error_of_usage(tmp_path: Path) -> None:
    pattern = tmp_path / "mean.py"
    pattern.write_text("shape = ((-1, 1),)\npattern = [1, 0, 1]\nfactor = 2\n", encoding="utf-8")
    command = f"-m controllers run {pattern} --size 90 --device reference --iterations 5".split()
    job = run_parts([command, [*command, "--output", str(tmp_path / "out.npy")]])
    assert job.returncode == 2
    assert "output must be the same on all ranks: rank 0 has None, rank 1 has" in job.stderr
    assert job.stderr.count("controllers: error: ") == 1
    assert "Traceback" not in job.stderr
