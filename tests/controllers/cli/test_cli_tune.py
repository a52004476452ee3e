# SPDX-License-Identifier: MIT
"""The command tune, and the option --tune of the command run."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi_jobs import run_ranks

from controllers import kgt, reference_run
from controllers.cli import main
from controllers.kernel.winners import VARIABLE
from controllers.kgt.strategies.wavefront import WavefrontConfig
from controllers.language.pattern_file import read_patterns
from controllers.tuning import offline

LINE = "shape = ((-1, 1),)\npattern = [1, 0, 2]\nfactor = 3\n"
TUNE = "line.py --size 20000 --device cpu:0 --seconds 600"      # more than it takes


@pytest.fixture(autouse=True)
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a pattern file, where winners are kept too."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(VARIABLE, str(tmp_path / "tuning"))
    Path("line.py").write_text(LINE, encoding="utf-8")
    return tmp_path


def tune(arguments: str) -> int:
    return main(["tune", *arguments.split()])


@pytest.mark.whole
def test_the_table_starts_with_the_default_and_ends_with_the_winner(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert tune(f"{TUNE} --search exhaustive") == 0
    title, steps, head, first, *others, last = capsys.readouterr().out.splitlines()
    assert "stage line, 19998 cells; 6 of 6 configurations measured in" in title
    assert steps.startswith("a step, by steps per launch: 1: ") and ", 8: " in steps
    assert head.split() == ["configuration", "time", "of", "the", "default's"]
    assert first.startswith("strategy '") and first.endswith(" 1.000")
    assert len(others) == 5
    assert [line.split()[-1] for line in others] == sorted(line.split()[-1] for line in others)
    assert last.endswith(": kept for later runs")


@pytest.mark.whole
def test_a_winner_is_used_by_later_runs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = "run line.py --size 20000 --device cpu:0 --iterations 3 --json"
    monkeypatch.setattr(offline, "WORTH", 10.0)     # the best that is not the default
    monkeypatch.setattr(
        "controllers.tuning.trials.Trials.best", property(lambda trials: [*trials.ratios][-1])
    )
    assert tune(f"{TUNE} --search random --json") == 0
    (found,) = json.loads(capsys.readouterr().out)
    winner = found["winner"]
    assert winner != found["tried"][0]["configuration"]
    assert found["kept"] is True
    assert main([*run.split()]) == 0
    (kernel,) = json.loads(capsys.readouterr().out)["kernels"]
    assert all(f"{name} {winner[name]}" in kernel["origin"] for name in ("lanes", "segment"))


@pytest.mark.whole
def test_without_a_cache_it_says_that_nothing_is_kept(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "off")
    assert tune(TUNE) == 0
    assert capsys.readouterr().out.rstrip().endswith("not kept, CONTROLLERS_TUNING is off")


def test_where_nothing_can_be_chosen_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert tune("line.py --size 12 --device cpu:0") == 0
    assert capsys.readouterr().out.rstrip().endswith("nothing was tried, and nothing changes")


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ("line.py", 2, "--size"),
        ("none.py --size 900", 2, "none.py: No such file"),
        ("line.py --size 900 900", 2, "one size per axis"),
        (f"{TUNE} --seconds -1", 2, "at least 0, got '-1'"),
        (f"{TUNE} --seconds nan", 2, "at least 0, got 'nan'"),
        (f"{TUNE} --search luck", 2, "luck"),
        (f"{TUNE} --seed -3", 2, "-3"),
        ("line.py --size 20000 --device reference", 2, "only OpenCL devices have"),
        (f"{TUNE} --memory-cap 200k", 2, "use more devices or a larger --memory-cap"),
        ("line.py --size 20000 --device accelerator", 3, "accelerator"),
        ("line.py --size 20000 --iterations 3", 2, "--iterations"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    arguments: str, code: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tune(arguments) == code
    said = capsys.readouterr()
    assert says in said.err
    assert said.err.count("\n") == 1 and not said.out


@pytest.mark.whole
def test_ranks_tune_their_own_devices() -> None:
    command = "tune line.py --size 40000 --device cpu:0/1,1 --seconds 600 --json"
    job = run_ranks(2, ["-m", "controllers", *command.split()])
    assert job.returncode == 0, job.stderr
    found = json.loads(job.stdout)
    assert [one["rank"] for one in found] == [0, 1]
    assert all(len(one["tried"]) > 1 for one in found)


@pytest.mark.whole
def test_a_run_that_tunes_writes_what_any_run_writes(capsys: pytest.CaptureFixture[str]) -> None:
    np.save("in.npy", field := np.random.default_rng(4).random(20_000, np.float32))
    command = "run line.py --input in.npy --iterations 60 --tune 600 --output out.npy --json"
    assert main([*command.split(), "--device", "cpu:0"]) == 0
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert report["steps"] == 60
    (stencil,) = read_patterns("line.py")
    right = reference_run(stencil.program("float32"), field, 60, (False,))
    assert np.array_equal(np.load("out.npy"), right)


@pytest.mark.parametrize("options", ["--tune -1", "--tune x", "--tune 1 --kernel generic"])
def test_a_run_that_cannot_be_tuned_is_refused(
    options: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = f"run line.py --size 900 --iterations 3 --device cpu:0 {options}"
    assert main(command.split()) == 2
    assert "tune" in capsys.readouterr().err


def test_configurations_are_named_in_json_as_in_python(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert tune(f"{TUNE} --seconds 0 --json") == 0
    (found,) = json.loads(capsys.readouterr().out)
    usual = WavefrontConfig(slices=1, band=1)
    assert kgt.config_from(found["winner"]) == usual
    assert [n for n, _ in found["at_once"]] == [8]      # others are not begun in no time
    assert (found["n_configurations"], found["kept"]) == (6, False)


def test_a_program_is_tuned_as_it_runs(capsys: pytest.CaptureFixture[str]) -> None:
    Path("heat.py").write_text("import numpy\n", encoding="utf-8")
    assert tune("heat.py --size 9") == 2
    assert "heat.py:1: " in (said := capsys.readouterr().err)
    assert "a program is tuned as it runs, by controllers run FILE.py --tune" in said
