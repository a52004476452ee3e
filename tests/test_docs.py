# SPDX-License-Identifier: MIT
"""Every code block of README and docs is executed: sessions are compared, commands must succeed."""
from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MEASURING = ("docs/performance.md", "docs/tuning.md")       # their commands take a minute
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]


def blocks(page: Path, language: str) -> list[str]:
    return [text for kind, text in FENCE.findall(page.read_text("utf-8")) if kind == language]


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that has the examples and tools, and is left as it is found."""
    for name in ("examples", "tools", "docs"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_blocks_say_what_they_are(page: Path) -> None:
    kinds = {kind for kind, _ in FENCE.findall(page.read_text("utf-8"))}
    assert kinds <= {"pycon", "python", "sh", "text", "opencl"}, kinds


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_sessions_print_what_the_page_says(page: Path, workplace: Path) -> None:
    session = "\n".join(blocks(page, "pycon"))
    test = doctest.DocTestParser().get_doctest(session, {}, page.name, str(page), 0)
    assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test).failed == 0


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_programs_run(page: Path, workplace: Path) -> None:
    for number, program in enumerate(blocks(page, "python")):
        exec(compile(program, f"{page.name}, program {number}", "exec"), {"__name__": "docs"})


@pytest.mark.parametrize("page", [
    pytest.param(page, marks=pytest.mark.whole) if name in MEASURING else page
    for page, name in zip(PAGES, NAMES)
], ids=NAMES)  # fmt: skip
def test_commands_succeed(page: Path, workplace: Path) -> None:
    # the shell finds this environment's python and mpiexec, activated or not
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for commands in blocks(page, "sh"):
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", commands],
            env={**os.environ, "PATH": path}, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, f"{commands}\n{done.stdout}\n{done.stderr}"
