# SPDX-License-Identifier: MIT
"""The benchmark of applications: what it counts, prints and writes, and what it refuses."""
from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sample import sample

import controllers as ct
from controllers.bench.applications import (
    APPLICATIONS,
    GENERIC,
    PATTERNS,
    exposed,
    flops_per_cell,
    swept_bytes,
)
from controllers.bench.program_file import computation_of, sizes_of
from controllers.cli import bench_options
from controllers.cli.companions import folder
from controllers.cli.main import main
from controllers.language.grid import Grid
from controllers.language.step import repeat, step
from controllers.plan import PlaceMemory
from controllers.report.report import PlaceReport, Report
from controllers.run.dry_run import dry_run

EXAMPLES = folder("examples")


def test_each_application_is_an_example() -> None:
    assert tuple(APPLICATIONS) == bench_options.APPS
    assert tuple(PATTERNS) == bench_options.PATTERNS
    for name, application in APPLICATIONS.items():
        assert (EXAMPLES / f"{application.file or name}.py").is_file()
        assert len({len(application.quick), len(application.cpu), len(application.gpu)}) == 1
        assert name.endswith(GENERIC) == (application.options == {"kernel": "generic"})


@pytest.mark.parametrize("name", sample(
    [one for one in APPLICATIONS if not one.endswith(GENERIC)], 20
))  # fmt: skip
def test_each_application_has_the_extent_that_is_wanted_and_runs(name: str) -> None:
    one = APPLICATIONS[name]
    path = EXAMPLES / f"{one.file or name}.py"
    wanted = tuple(min(n, 1000) for n in one.quick)
    with computation_of(path, wanted, {"devices": "reference"}, one.instead) as run:
        assert run.program.n_axes == len(wanted) and run.domain.extent == wanted
        assert run.step == 0
        run.run(1)
        assert run.step == 1


TOOL = Path(__file__).parents[3] / "tools/compare_applications.py"


@pytest.mark.whole
def test_the_tool_finds_the_same_bits_on_parts_and_says_so(tmp_path: Path) -> None:
    names = ["jacobi_2d4"]
    words = [sys.executable, str(TOOL), *names]
    told = subprocess.run([*words, "--steps", "5"], cwd=tmp_path, text=True, capture_output=True)
    assert told.returncode == 0, told.stdout + told.stderr
    assert [line.split()[:2] for line in told.stdout.splitlines()] == [
        [name, "cpu/1,1"] for name in names
    ]  # fmt: skip
    assert all("the same bits, of " in line for line in told.stdout.splitlines())


def test_a_computation_is_called_with_an_extent_or_with_one_number() -> None:
    def cube(n: int, **options: Any) -> Any:
        """Of one number."""

    assert sizes_of(cube, (5, 5, 5)) == (5,)
    with pytest.raises(ValueError, match="got 5x6; give such a size"):
        sizes_of(cube, (5, 6))


def test_each_sweep_reads_and_writes_its_fields_once() -> None:
    push = step(lambda u, v: dict(v=v + u[1] - u[-1]))
    move = step(lambda u, v: dict(u=u + v[1] - v[-1]))
    plan = dry_run([push, move], Grid(x=9), 1, dtype="float32", boundary="periodic").plan
    assert (plan.program.bytes_per_cell, swept_bytes(plan)) == (4 * 4, 2 * 3 * 4)


def test_what_is_repeated_counts_as_often_as_it_was_done() -> None:
    add = step(lambda u, v: dict(u=u + v))
    halve = step(lambda u: dict(u=u / 2 + u[1], most=ct.max(u)))
    again = repeat(halve, until=lambda now: now.most < 1, at_most=9)
    plan = dry_run([add, again], Grid(x=9), 1, dtype="float32", boundary="periodic").plan
    for n in (1, 5):
        done = {again.name: n}
        assert (swept_bytes(plan, done), flops_per_cell(plan, done)) == (12 + 8 * n, 1 + 2 * n)


PROGRAM = """
import sys
import controllers as ct
assert sys.argv[1:] == []
grid = ct.Grid(y=4, x=4, lower=1, upper=(3, 2), boundary="periodic")
with ct.Computation(ct.step(lambda u: dict(u=u + 1)), grid, u=lambda y, x: y) as run:
    run.run(99)
    raise AssertionError("it is left before")
"""


def test_a_program_is_executed_until_it_runs_and_has_the_cells_that_are_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["controllers", "bench"])
    path = tmp_path / "program.py"
    path.write_text(PROGRAM, "utf-8")
    options = {"devices": "reference"}
    with computation_of(path, (6, 3), options, {"u + 1": "u + 2"}) as run:
        run.run(1)
        assert run.u[:, 0].tolist() == [3 + 1.25 + 0.5 * n - 1 for n in range(6)]
    with pytest.raises(ValueError, match=r"1 axes is wanted.*make such a grid"):
        computation_of(path, (6,), options)
    path.write_text("import controllers\nx = 1 + len('a')\n", "utf-8")
    with pytest.raises(RuntimeError, match="runs no computation; have it run one"):
        computation_of(path, (6, 3), options)


def test_the_exchange_is_the_mean_over_places_of_the_time_without_kernels() -> None:
    places = tuple(
        PlaceReport(n, 0, "cpu", 50, 0.5, 1.0, 1.0, exposed_s, PlaceMemory(tiles=8))
        for n, exposed_s in enumerate((0.5, 1.5))
    )
    assert exposed(Report(4.0, 2, 100, places)) == 0.25
    assert exposed(Report(0.0, 0, 100, places)) == 0


@pytest.mark.whole
@pytest.mark.parametrize("selector", ["cpu", "cpu/1,1"])
def test_the_command_measures_prints_and_writes_applications(
    selector: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [f"--json={tmp_path / 'out.json'}", f"--picture={tmp_path / 'out.png'}"]
    words = ["--quick", "--apps=himeno,life", "--sizes=12x12x14,40x40", f"--device={selector}"]
    assert main(["bench", "apps", *words, *files]) == 0
    printed = capsys.readouterr().out
    assert "12x12x14" in printed and "himenoBMT" in printed
    himeno, life = json.loads((tmp_path / "out.json").read_text())["applications"]
    assert himeno["flops_per_s"] == 34 * himeno["cell_steps_per_s"] > 0
    assert (himeno["bytes_per_cell"], life["bytes_per_cell"]) == (56, 2)
    assert all(one["copy_bytes_per_s"] > 0 and 0 <= one["exchange"] <= 1 for one in (himeno, life))
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("apps --apps himeno,swam", "swam"),
        ("--apps himeno", "bench apps"),
        ("apps --stencils 2d4", "--stencils"),
        ("apps --with mine.py", "--with"),
        ("apps --sizes 9x9 --apps himeno --device cpu", "3 axes"),
        ("applications", "apps"),
    ],
)
def test_what_applications_cannot_use_is_refused(
    words: str, said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text("", "utf-8")
    assert main(["bench", *words.split()]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("controllers: error: ") and said in line


def test_an_application_that_cannot_be_computed_is_left_out_and_named(
    capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "apps", "--apps=life", "--sizes=9x8", "--device=cpu"]) == 1
    assert "life is left out on cpu: all axes have the same" in capsys.readouterr().err
