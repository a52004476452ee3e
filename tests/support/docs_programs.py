# SPDX-License-Identifier: MIT
"""The Python blocks and sessions of some pages of README and docs on the ranks of this job.

Each page has a folder of its own, which holds the examples and tools, and the page's blocks run
there in turn, each in a namespace of its own.  Sessions show what one process prints; here they
must go through.
"""
from __future__ import annotations

import doctest
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from hitmap import default_communicator

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path, language: str) -> list[str]:
    """The blocks of a page that are in one language."""
    return [text for kind, text in FENCE.findall(page.read_text("utf-8")) if kind == language]


def furnish(folder: Path) -> None:
    """Let a folder have the examples and tools, to be left as they are."""
    for name in ("examples", "tools", "docs"):
        (folder / name).symlink_to(ROOT / name)


def run_programs(page: Path) -> int:
    """Run the programs of a page in this folder; an exception ends it."""
    programs = blocks(page, "python")
    for number, program in enumerate(programs, start=1):
        name = f"{page.name}, program {number}"
        exec(compile(program, name, "exec"), {"__name__": "docs"})
    return len(programs)


class AnyOutput(doctest.OutputChecker):
    """What is printed depends on the number of ranks; exceptions are seen all the same."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        return True


def run_sessions(page: Path, checker: doctest.OutputChecker) -> int:
    """Run the sessions of a page in this folder as one; `AssertionError` if something is wrong."""
    session = "\n".join(blocks(page, "pycon"))
    test = doctest.DocTestParser().get_doctest(session, {}, page.name, str(page), 0)
    result = doctest.DocTestRunner(checker, optionflags=doctest.ELLIPSIS).run(test)
    assert result.failed == 0, f"{page.name}: {result.failed} parts of its sessions are wrong"
    return result.attempted


def main(folder: Path, names: Sequence[str]) -> None:
    comm = default_communicator()
    for name in names:
        page, own = ROOT / name, folder / name
        if comm.rank == 0:
            own.mkdir(parents=True)
            furnish(own)
        comm.Barrier()
        os.chdir(own)
        n_programs, n_parts = run_programs(page), run_sessions(page, AnyOutput())
        comm.Barrier()
        if comm.rank == 0:
            print(f"{name}: {n_programs} programs, {n_parts} parts", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
