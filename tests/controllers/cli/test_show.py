# SPDX-License-Identifier: MIT
"""`controllers show`: what is in arrays, checkpoints and zarr stores, and pictures of it."""
from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import numpy as np
import pytest
from films import n_frames
from shown_runs import made

import controllers as ct
from controllers.cli import main


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_damaged_checkpoint_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    made()
    old, new = sorted(Path("kept/run-1").iterdir())
    (new / "manifest").write_bytes((new / "manifest").read_bytes()[:-1])
    assert main(["show", "kept"]) == 0
    text = capsys.readouterr().out
    assert "steps: 4\n" in text and f"{new.name} cannot be read: its manifest has another" in text
    file = old / "rank-0.cells"
    file.write_bytes(bytes([file.read_bytes()[0] ^ 1]) + file.read_bytes()[1:])
    assert main(["show", "kept"]) == 0      # of which no cells were looked at
    if importlib.util.find_spec("matplotlib"):
        assert main(["show", "kept", "--plot", "a.png"]) == 2
        assert "is damaged: rank-0.cells has another checksum" in capsys.readouterr().err
    (old / "manifest").unlink()
    assert main(["show", "kept"]) == 2
    assert "no checkpoint in it is whole" in capsys.readouterr().err


def test_a_store_is_described(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tensorstore")
    made(output=("run.zarr", ct.every(steps=4)))
    assert main(["show", "run.zarr"]) == 0
    text = capsys.readouterr().out
    assert re.search(r"u +float64 +11 x 16 +y 0 to 5.5, x 2 to 10\n", text), text
    assert "program: heat\n" in text and "steps: 0, 4, 8\ntimes: 0, 2, 4" in text


def test_what_is_there_is_drawn_at_a_step(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    made()
    assert main(["show", "u.npy", "--plot", "a.svg", "--at", "y=3"]) == 0
    assert "u, y = 3" in Path("a.svg").read_text("utf-8")
    command = ["show", "kept", "--field", "u", "--limits", "0,1", "--stride", "2"]
    assert main([*command, "--plot", "b.svg", "--step", "4"]) == 0
    assert "heat, step 4, t = 2" in Path("b.svg").read_text("utf-8")
    assert main([*command, "--plot", "c.gif"]) == 0 and n_frames(Path("c.gif")) == 2
    capsys.readouterr()
    assert main(["show", "kept", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["steps"] == [4, 8] and found["fields"]["v"] == {
        "dtype": "int32", "shape": [11, 16], "axes": ["y", "x"]
    }  # fmt: skip


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("none.npy", "none.npy: No such file or directory"),
        (".", "has no checkpoints and is no zarr store"),
        ("text.npy", "text.npy: "),
        ("words.npy", "holds <U1.*fields are real numbers"),
        ("kept --plot a.png --step 5", "no such step; there are 4, 8|needs matplotlib"),
        ("kept --plot a.png --field w", "no field 'w'; there are u, v|needs matplotlib"),
        ("kept --plot a.png --at z=1", "no axis 'z'; there are y, x|needs matplotlib"),
        ("kept --plot a.xyz", "must end with one of|needs matplotlib"),
        ("u.npy --plot u.npy", "is the file of the file|must end"),
        ("kept --plot no/a.png", "no folder 'no'"),
        ("empty.zarr", "has no arrays that are fields"),
        ("old.zarr", "no document of zarr of format 3"),
    ],
)
def test_what_cannot_be_shown(
    words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if "kept" in words or "u.npy" in words:
        made()
    Path("text.npy").write_text("no array", encoding="utf-8")
    np.save("words.npy", np.array(["a"]))
    for name, version in (("empty.zarr", 3), ("old.zarr", 2)):
        Path(name).mkdir()
        document = {"zarr_format": version, "node_type": "group"}
        (Path(name) / "zarr.json").write_text(json.dumps(document), encoding="utf-8")
    assert main(["show", *words.split()]) == 2
    assert re.search(message, capsys.readouterr().err)
