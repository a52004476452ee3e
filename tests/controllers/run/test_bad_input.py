# SPDX-License-Identifier: MIT
"""Bad input, through the command line under 2 ranks: one error on all of them, and nothing else."""
from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from bad_input import Bad, table
from mpi_jobs import SOON_S, find_mpiexec, helpers_path, run_group, run_ranks
from sample import sample

from controllers.cli import main

ROWS = {row.title: row for row in table()}
N_JOBS = 2          # at a time
SAMPLE, WHOLE = 30, 5       # one in so many of those that may be started by themselves is
SERVER = Path(__file__).parents[2] / "support" / "bad_input_server.py"
Listing = dict[str, tuple[int, int]]


@dataclass(frozen=True)
class Ending:
    """How a command line ended: the exit codes of its ranks, what they said, what they changed."""

    codes: tuple[int, ...]
    out: str
    error: str
    changed: dict[str, object]


def listing(folder: Path) -> Listing:
    """Names, times and sizes of all that is there."""
    stats = {str(path.relative_to(folder)): path.lstat() for path in folder.rglob("*")}
    return {name: (stat.st_mtime_ns, stat.st_size) for name, stat in stats.items()}


def difference(before: Listing, after: Listing) -> dict[str, object]:
    return dict(before.items() ^ after.items())


def run_whole(row: Bad, folder: Path) -> Ending:
    """In a job of its own."""
    before = listing(folder)
    command = [find_mpiexec(), "-n", "2", sys.executable, "-m", "controllers"]
    in_folder = ["sh", "-c", 'cd "$0" && exec "$@"', str(folder)]
    try:
        job = run_group([*in_folder, *command, *shlex.split(row.command)], SOON_S, os.environ)
        codes, out, error = (job.returncode,), job.stdout, job.stderr
    except subprocess.TimeoutExpired as end:
        codes, out, error = (), str(end.stdout), f"hangs\n{end.stderr}"
    return Ending(codes, out, error, difference(before, listing(folder)))


def run_served(rows: Sequence[tuple[Bad, Path]], folder: Path) -> dict[str, Ending]:
    """One after the other in one job; in another one, what is left after one that ends it."""
    endings: dict[str, Ending] = {}
    before = {row.title: listing(own) for row, own in rows}
    while left := [(row, own) for row, own in rows if row.title not in endings]:
        jobs = folder / "jobs.json"
        words = [(str(own), shlex.split(row.command)) for row, own in left]
        jobs.write_text(json.dumps(words), encoding="utf-8")
        job = run_ranks(2, [str(SERVER), str(jobs)], env=helpers_path())
        answers = [json.loads(line) for line in job.stdout.splitlines() if line.startswith("{")]
        for (row, own), found in zip(left, answers):
            changed = difference(before[row.title], listing(own))
            codes = tuple(found["codes"])
            endings[row.title] = Ending(codes, found["out"], found["error"], changed)
        if len(answers) < len(left):
            row, own = left[len(answers)]
            endings[row.title] = Ending((), "", f"ended the job\n{job.stderr}", {})
    return endings


@pytest.fixture(scope="module")
def endings(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, Ending]:
    """How the chosen rows ended: the jobs run two at a time."""
    items = [item for item in request.session.items if isinstance(item, pytest.Function)]
    chosen = [item.callspec.params["title"] for item in items if "endings" in item.fixturenames]
    folder = tmp_path_factory.mktemp("bad")
    rows = [(ROWS[title], folder / str(number)) for number, title in enumerate(chosen)]
    for row, own in rows:
        row.prepare(own)
    one_in = WHOLE if request.config.getoption("whole") else SAMPLE
    whole = [(row, own) for row, own in rows if row.whole][::one_in]
    found = run_served([pair for pair in rows if pair not in whole], folder)
    with ThreadPoolExecutor(N_JOBS) as pool:
        ends = pool.map(lambda pair: run_whole(*pair), whole)
        found |= {row.title: ending for (row, _), ending in zip(whole, ends)}
    return found


@pytest.mark.parametrize("title", sample(ROWS, 12))
def test_bad_input_is_one_error_on_all_ranks(title: str, endings: Mapping[str, Ending]) -> None:
    row, ending = ROWS[title], endings[title]
    assert set(ending.codes) == {row.code}, ending.error
    said = [line for line in ending.error.splitlines() if line.startswith("controllers: error: ")]
    assert len(said) == 1, ending.error
    assert re.search(row.message, ending.error), ending.error
    assert "Traceback" not in ending.error and "Warning" not in ending.error
    assert len(said[0]) < 600
    assert ending.out == ""
    assert ending.changed == {}


def test_the_same_on_one_rank(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:  # fmt: skip
    one_in = 1 if request.config.getoption("whole") else 3      # other rows than two ranks try
    for number, row in enumerate([*ROWS.values()][one_in // 2 :: one_in]):
        if "2 places" in row.message or "rank 1" in row.message:
            continue
        folder = tmp_path / str(number)
        row.prepare(folder)
        monkeypatch.chdir(folder)
        before = listing(folder)
        assert main(shlex.split(row.command)) == row.code, row.title
        printed = capfd.readouterr()
        assert printed.err.count("controllers: error: ") == 1, row.title
        assert printed.out == "", row.title
        assert difference(before, listing(folder)) == {}, row.title


@pytest.mark.whole
def test_the_tables_own_checks_would_notice(tmp_path: Path) -> None:
    good = Bad("good", "run star.py --size 9 9 --iterations 1 --output out.npy", "nothing")
    good.prepare(tmp_path / "good")
    ending = run_whole(good, tmp_path / "good")
    assert ending.codes == (0,)
    assert set(ending.changed) == {"out.npy"}
    assert "controllers: error: " not in ending.error and ending.out != ""


PROGRAM = """
import sys
import controllers
from hitmap import default_communicator
def fail(name):
    if name == sys.argv[1] and default_communicator().rank == 1:
        raise ArithmeticError("no such elevation")
mean = controllers.Stencil.of("mean", [(-1, 1)], [1, 0, 1], 2)
with controllers.Computation(mean.program("float32"), 100) as run:
    run.load(lambda tile: fail("init"))
    run.run(100)
    run.visit(lambda tile: fail("output"))
    run.save("out.npy")
"""


@pytest.mark.parametrize("where", sample(["init", "output"], 2))
def test_an_exception_in_init_or_output_on_one_rank_ends_both(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    job = run_ranks(2, ["-c", PROGRAM, where], SOON_S)
    assert job.returncode != 0
    (said,) = [line for line in job.stderr.splitlines() if line.startswith("rank ")]
    assert said.startswith("rank 1 of 2 on ") and "ArithmeticError: no such elevation" in said
    assert job.stdout == "" and listing(tmp_path) == {}
