# SPDX-License-Identifier: MIT
"""Which of the faults in tools/mutants.txt do the tests find?

    python tools/find_mutants.py [WORD ...] [--jobs N]

Each fault is put into a copy of the tree, and the test files named beside it run until one test
fails.  With words, only faults whose line holds all of them.  Exit code 1 if a fault is not
found, or if the tests fail without any.
"""
from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "tools" / "mutants.txt"
FOLDERS = ("hitmap", "controllers", "kernels_cl", "tests", "examples", "tools", "docs")
FILES = ("setup.cfg", "README.md")
NOTHING_RUN = 5     # pytest's exit status where all tests are left to --whole
TIMEOUT_S = 400     # a fault may make a test hang; all tests together take longer


@dataclass(frozen=True)
class Mutant:
    """A fault: `old` becomes `new` in `file`; `tests` may find it."""

    name: str
    file: str
    tests: tuple[str, ...]
    old: str = ""
    new: str = ""

    def applied(self, text: str) -> str:
        """`text` with the fault; ValueError unless there is exactly one place for it."""
        if text.count(self.old) != 1 or self.old == self.new:
            raise ValueError(
                f"{self.name}: {self.file} holds {self.old!r} {text.count(self.old)} times; bring "
                f"{LIST.name} up to date"
            )
        return text.replace(self.old, self.new)


def read_mutants(path: Path = LIST) -> Iterator[Mutant]:
    """The faults of a list."""
    mutant = None
    for line in path.read_text("utf-8").splitlines():
        mark, text = line[:1], line[2:]
        if mark == "@":
            if mutant is not None:
                yield mutant
            name, file, tests = (part.strip() for part in text.split("|"))
            mutant = Mutant(name, file, tuple(tests.split()))
        elif mark == "-" and mutant is not None:
            mutant = replace(mutant, old=_with_line(mutant.old, text))
        elif mark == "+" and mutant is not None:
            mutant = replace(mutant, new=_with_line(mutant.new, text))
    if mutant is not None:
        yield mutant


def _with_line(text: str, line: str) -> str:
    return f"{text}\n{line}" if text else line


def problem(tests: tuple[str, ...], mutant: Mutant | None = None) -> str:
    """Why tests fail in a copy of the tree, perhaps with `mutant` in it; "" if none does."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in FOLDERS:
            ignored = shutil.ignore_patterns("__pycache__", ".hypothesis")
            shutil.copytree(ROOT / name, copy / name, ignore=ignored)
        for name in FILES:
            shutil.copy(ROOT / name, copy / name)
        if mutant is not None:
            path = copy / mutant.file
            path.write_text(mutant.applied(path.read_text("utf-8")), "utf-8")
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-n0", "-p", "no:cacheprovider"]
        command += [f"tests/{test}.py" for test in tests]
        environment = {**os.environ, "PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            for more in ([], ["--whole"]):
                job = subprocess.run(
                    [*command, *more], cwd=copy, env=environment, capture_output=True, text=True,
                    timeout=TIMEOUT_S if mutant else None, check=False, start_new_session=True,
                )  # fmt: skip
                if job.returncode != NOTHING_RUN:
                    break
        except subprocess.TimeoutExpired:
            return f"more than {TIMEOUT_S} s"
        return job.stdout[-2000:] + job.stderr if job.returncode else ""


def try_mutant(mutant: Mutant) -> tuple[Mutant, bool, float]:
    """The fault, whether it was found, and after how many seconds."""
    start = time.perf_counter()
    return mutant, bool(problem(mutant.tests, mutant)), time.perf_counter() - start


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("words", nargs="*", metavar="WORD", help="only faults that hold all words")
    parser.add_argument("--jobs", type=int, default=2, help="faults tried at the same time")
    arguments = parser.parse_args()
    mutants = [
        mutant for mutant in read_mutants()
        if all(word in f"{mutant.name} {mutant.file}" for word in arguments.words)
    ]  # fmt: skip
    if not mutants:
        print(f"no fault holds the words {' '.join(arguments.words)}", file=sys.stderr)
        return 1
    tests = tuple(sorted({test for mutant in mutants for test in mutant.tests}))
    if text := problem(tests):
        print(f"{text}\nthe tests fail without any fault: nothing to be learnt", file=sys.stderr)
        return 1
    missed = 0
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for mutant, found, seconds in pool.map(partial(try_mutant), mutants):
            missed += not found
            verdict = "found" if found else "NOT FOUND"
            print(f"{verdict:9}  {seconds:4.0f} s  {mutant.file}: {mutant.name}", flush=True)
    print(f"{len(mutants) - missed} of {len(mutants)} faults found")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
