# SPDX-License-Identifier: MIT
"""The documentation and the examples that travel with the package, and the texts that name them."""
from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sample import sample

import controllers
from controllers.cli import companions
from controllers.cli.main import main

ROOT = Path(__file__).parents[3]
COMMANDS = (
    "run", "tune", "bench", "devices", "doctor", "estimates", "kgt", "examples", "docs"
)  # fmt: skip
# another package, in the public index, has the name of ours
WRONG_NAME = re.compile(r"pip3? install\s+(-\S+\s+)*[\"']?controllers\b")
FOLDERS = ("controllers", "hitmap", "kernels_cl", "docs", "examples", "tests", "tools", ".ci",
           ".github")  # fmt: skip


def texts() -> list[Path]:
    """The files of the tree that people or pip read."""
    found = [path for name in FOLDERS for path in (ROOT / name).rglob("*")]
    binary = {".pyc", ".npy", ".png"}
    return [path for path in [*ROOT.iterdir(), *found]
            if path.is_file() and path.suffix not in binary]  # fmt: skip


def test_no_text_recommends_the_package_of_another_project() -> None:
    some = ("README.md", ".ci/run", "controllers/report/report.py")
    assert {ROOT / name for name in some} < {*texts()}
    assert WRONG_NAME.search('pip install -U "' + 'controllers[local]"')
    wrong = [path for path in texts() if WRONG_NAME.search(path.read_text("utf-8", "replace"))]
    assert wrong == []
    assert "\nname = opencl-controllers\n" in (ROOT / "setup.cfg").read_text("utf-8")


def test_every_command_says_how_to_read_the_documentation_that_it_names(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for command in COMMANDS:
        assert main([command, "--help"]) == 0
        text = " ".join(capsys.readouterr().out.split())
        assert "docs/" not in text and ".md" not in text
        assert "controllers docs lists the documentation" in text
        for name in re.findall(r"see controllers docs (\w+)", text):
            assert companions.page(name).startswith("# ")


def test_pages_are_listed_and_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs"]) == 0
    *lines, where = capsys.readouterr().out.splitlines()
    assert where == f"in {companions.folder('docs')}"
    assert len(lines) == 1 + len([*ROOT.glob("docs/**/*.md")])
    assert [line.split(maxsplit=1) for line in lines if line.startswith("hitmap ")] == [
        ["hitmap", "Hitmap: where the cells are"]
    ]
    for name in ("kernels", "docs/kernels.md"):
        assert main(["docs", name]) == 0
        assert capsys.readouterr().out == (ROOT / "docs/kernels.md").read_text("utf-8")
    assert main(["docs", "kernel"]) == 2
    assert capsys.readouterr().err == (
        "controllers: error: there is no page 'kernel', did you mean kernels?\n"
    )
    assert main(["docs", "../README"]) == 2


def test_examples_are_listed_with_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["examples"]) == 0
    lines = capsys.readouterr().out.splitlines()[1:-1]
    assert len(lines) == len([*ROOT.glob("examples/**/*.py")])
    assert all(re.fullmatch(r"[\w/]+\.py +\S.{10,}", line) for line in lines)


def test_examples_are_copied_and_replace_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "new" / "examples"
    assert main(["examples", "--copy", str(target)]) == 0
    right = {
        path.relative_to(ROOT / "examples"): path.read_bytes()
        for path in ROOT.glob("examples/**/*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    copied = {path.relative_to(target): path for path in target.glob("**/*") if path.is_file()}
    assert {name: path.read_bytes() for name, path in copied.items()} == right
    assert all(path.stat().st_mode & stat.S_IWUSR for path in copied.values())
    (target / "heat_2d.py").write_text("mine")
    for name in ("low_level.py", "histogram.py"):
        (target / name).unlink()
    capsys.readouterr()
    assert main(["examples", "--copy", str(target)]) == 2
    assert "has acoustic.py already; choose another folder" in capsys.readouterr().err
    assert (target / "heat_2d.py").read_text() == "mine" and not (target / "low_level.py").exists()
    monkeypatch.setattr("shutil.copyfile", lambda *_: (_ for _ in ()).throw(OSError(28, "full")))
    assert main(["examples", "--copy", str(tmp_path / "other")]) == 1
    assert capsys.readouterr().err == f"controllers: error: --copy {tmp_path / 'other'}: full\n"


def test_what_needs_no_device_and_no_ranks_loads_neither_opencl_nor_mpi(tmp_path: Path) -> None:
    pattern = ROOT / "examples" / "patterns" / "heat_1d3.py"
    np.save(tmp_path / "a.npy", np.zeros((3, 4)))
    script = (
        "import sys\n"
        "from controllers.cli import main\n"
        f"for words in ('docs', 'docs plan', 'examples', 'kgt {pattern} --print', 'show a.npy'):\n"
        "    assert main(words.split()) == 0\n"
        "assert not {'pyopencl', 'mpi4py.MPI'} & {*sys.modules}\n"
    )
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True, timeout=60,
                   env={**os.environ, "PYTHONPATH": str(Path(controllers.__file__).parents[1])},
                   stdout=subprocess.DEVNULL)  # fmt: skip


@pytest.mark.parametrize("words", sample(["docs kernels", "docs", "examples"], 3))
def test_a_reader_that_has_seen_enough_is_no_failure(words: str) -> None:
    source, sink = os.pipe()
    os.close(source)
    job = subprocess.run([sys.executable, "-m", "controllers", *words.split()],
                         stdout=sink, stderr=subprocess.PIPE, timeout=60)  # fmt: skip
    os.close(sink)
    assert (job.returncode, job.stderr) == (0, b"")


def test_an_incomplete_installation_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("controllers.__file__", str(tmp_path / "controllers" / "__init__.py"))
    assert main(["docs"]) == 1
    assert "install opencl-controllers again" in capsys.readouterr().err
