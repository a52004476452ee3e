# SPDX-License-Identifier: MIT
"""The benchmark of applications: what it counts, prints and writes, and what it refuses."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from controllers.bench.applications import APPLICATIONS, exposed, sizes_of, swept_bytes
from controllers.cli import bench_options
from controllers.cli.companions import folder
from controllers.cli.main import main
from controllers.language.grid import Grid
from controllers.language.step import step
from controllers.plan import PlaceMemory
from controllers.report.report import PlaceReport, Report
from controllers.run.dry_run import dry_run


def test_each_application_is_an_example() -> None:
    assert tuple(APPLICATIONS) == bench_options.APPS
    for name, application in APPLICATIONS.items():
        text = (folder("examples") / f"{name}.py").read_text("utf-8")
        assert "\ndef computation(" in text
        assert len({len(application.quick), len(application.cpu), len(application.gpu)}) == 1


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
