# SPDX-License-Identifier: MIT
"""What tasks took is listed, drawn and forgotten."""
from __future__ import annotations

import json
from pathlib import Path

import pytest

from controllers.cli.main import main
from controllers.estimates.estimates import Estimates
from controllers.estimates.task_key import Case, TaskKey, Work

KEYS = [TaskKey(f"task {n}", "numpy", f"device {n}", "driver 1") for n in range(3)]


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three tasks: of the first five sizes are known, one of which was disturbed."""
    folder = tmp_path / "estimates"
    monkeypatch.setenv("CONTROLLERS_ESTIMATES", str(folder))
    estimates = Estimates(folder)
    for n in range(1, 6):
        estimates.add(KEYS[0], Case(100 * n, 2), 0.01 * n * (10 if n == 3 else 1), Work(8.0, 9.0))
    for key in KEYS[1:]:
        estimates.add(key, Case(7), 0.5)
    estimates.keep()
    return folder


def test_a_line_for_each_task(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["estimates"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + len(KEYS)
    words = [" ".join(line.split()) for line in lines[1:]]
    assert words[0] == "task 0 numpy device 0 100 to 500 2 5 now 0.0%"
    assert words[1] == "task 1 numpy device 1 7 1 1 now -"


def test_words_choose_and_json_has_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["estimates", "device", "0", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["task"] == "task 0" and found["driver"] == "driver 1" and found["error"] < 1e-9
    seconds = [case["seconds"] for case in found["cases"]]
    assert seconds == pytest.approx([0.01, 0.02, 0.3, 0.04, 0.05])
    assert {(case["units"], case["nbytes"], case["operations"]) for case in found["cases"]} == {
        (2, 8.0, 9.0)
    }


def test_what_is_listed_is_forgotten(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["estimates", "task 1", "--forget"]) == 0
    assert capsys.readouterr().out.endswith("forgotten: 1\n")
    assert [key for key, _ in Estimates(kept).all()] == [KEYS[0], KEYS[2]]
    assert main(["estimates", "--forget", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 2
    assert main(["estimates"]) == 0
    assert capsys.readouterr().out == f"nothing is known in {kept}\n"


def test_a_picture_has_what_was_measured_over_what_was_foreseen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "found.svg"
    assert main(["estimates", "--plot", str(picture)]) == 0
    text = picture.read_text("utf-8")
    assert "task 0 (numpy) on device 0" in text and "task 1" not in text
    assert main(["estimates", "task 1", "--plot", str(tmp_path / "none.svg")]) == 2
    assert "execute more first" in capsys.readouterr().err
    assert not (tmp_path / "none.svg").exists()
    assert main(["estimates", "--plot", str(tmp_path / "found.nothing")]) == 2


def test_where_nothing_is_kept_it_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CONTROLLERS_ESTIMATES", "off")
    assert main(["estimates"]) == 2
    assert "CONTROLLERS_ESTIMATES is off" in capsys.readouterr().err
