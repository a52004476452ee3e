# SPDX-License-Identifier: MIT
"""The list of seeded faults fits the code, and the script that tries them tells what it sees."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from sample import sample

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tools"))

from find_mutants import Mutant, read_mutants  # noqa: E402

MUTANTS = list(read_mutants())


def test_there_are_at_least_40_faults_of_different_names() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 40


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_fault_fits_the_code_and_the_tests_beside_it_exist(mutant: Mutant) -> None:
    text = (ROOT / mutant.file).read_text("utf-8")
    compile(mutant.applied(text), mutant.file, "exec")
    assert mutant.tests and all((ROOT / "tests" / f"{t}.py").exists() for t in mutant.tests)


def test_a_fault_that_is_nowhere_is_an_error() -> None:
    with pytest.raises(ValueError, match="0 times; bring mutants.txt up to date"):
        Mutant("none", "f.py", (), "old", "new").applied("text")


# one fault, and those of a module; .ci/nightly tries all
@pytest.mark.whole
@pytest.mark.parametrize(
    "part", sample(["a read waits for the newest write only", "memory/history.py"], 2)
)
def test_the_script_finds_the_faults_of_a_part(part: str) -> None:
    command = [sys.executable, str(ROOT / "tools" / "find_mutants.py"), part]
    job = subprocess.run(command, capture_output=True, text=True, check=False)
    assert job.returncode == 0, job.stdout + job.stderr
    count = sum(part in f"{mutant.name} {mutant.file}" for mutant in MUTANTS)
    assert job.stdout.splitlines()[-1] == f"{count} of {count} faults found"
