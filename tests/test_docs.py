# SPDX-License-Identifier: MIT
"""Every code block of README and docs is executed: sessions are compared, commands must succeed.

Programs and sessions run in this process, and once more in one job of two ranks (docs_programs.py).
By default, pages that take long are left out, and few go through on two ranks.
"""
from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from docs_programs import FENCE, PAGES, ROOT, blocks, furnish, run_programs, run_sessions
from mpi_jobs import helpers_path, run_ranks
from sample import sample

NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
SLOW = {    # what takes long
    "sh": (
        "README", "balance", "checking", "estimates", "explain", "failures", "integrity",
        "kernels", "looking", "performance", "reductions", "tasks", "troubleshooting",
        "tuning",
    ),
    "python": (
        "README", "arbiter", "arrays", "balance", "boundaries", "checkpoints", "controllers",
        "failures", "fields", "hybrid", "integrity", "kernels", "looking", "output",
        "programs", "reductions", "tuning", "workspace",
    ),
    "pycon": ("checking", "chunks"),
}
QUICK = ["docs/hitmap.md", "docs/placement.md", "docs/plan.md"]


def pages_with(language: str) -> list[object]:
    """The pages that have blocks in a language, as parameters of a test."""
    slow = {True: [pytest.mark.whole], False: []}
    return [
        pytest.param(page, id=name, marks=slow[page.stem in SLOW[language]])
        for page, name in zip(PAGES, NAMES) if blocks(page, language)
    ]


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that has the examples and tools, and is left as it is found."""
    furnish(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_blocks_say_what_they_are() -> None:
    for page in PAGES:
        kinds = {kind for kind, _ in FENCE.findall(page.read_text("utf-8"))}
        assert kinds <= {"pycon", "python", "sh", "text", "opencl"}, (page, kinds)


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_links_lead_to_a_file_and_a_heading(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", page.read_text("utf-8"))):
        path, _, heading = link.partition("#")
        file = page.parent / path if path else page
        assert link.startswith("http") or file.exists(), link
        assert not heading or heading in headings(file), link


def headings(page: Path) -> set[str]:
    """As links name them."""
    found = re.findall(r"^#+ +(.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", text.lower()).replace(" ", "-") for text in found}


@pytest.mark.parametrize("page", pages_with("pycon"))
def test_sessions_print_what_the_page_says(page: Path, workplace: Path) -> None:
    run_sessions(page, doctest.OutputChecker())


@pytest.mark.parametrize("page", pages_with("python"))
def test_programs_run(page: Path, workplace: Path) -> None:
    run_programs(page)


@pytest.mark.parametrize("names", sample([QUICK, NAMES], 2), ids=["quick", "all"])
def test_programs_and_sessions_go_through_on_two_ranks(names: list[str], tmp_path: Path) -> None:
    support = ROOT / "tests" / "support"
    program = [str(support / "docs_programs.py"), str(tmp_path), *names]
    job = run_ranks(2, program, timeout=300, env=helpers_path())
    assert job.returncode == 0, job.stderr
    for name in names:
        n_programs = len(blocks(ROOT / name, "python"))
        assert f"\n{name}: {n_programs} programs, " in f"\n{job.stdout}"


@pytest.mark.parametrize("page", pages_with("sh"))
def test_commands_succeed(page: Path, workplace: Path) -> None:
    # the shell finds this environment's python and mpiexec, activated or not
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for commands in blocks(page, "sh"):
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", commands],
            env={**os.environ, "PATH": path}, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, f"{commands}\n{done.stdout}\n{done.stderr}"
