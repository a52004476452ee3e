# SPDX-License-Identifier: MIT
"""The page of environment variables has all of them, and no other."""
from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
NAME = re.compile(r"\bCONTROLLERS_[A-Z_]+\b")
EXAMPLES = {"CONTROLLERS_EXAMPLE"}


def test_the_page_lists_the_variables_that_the_source_reads() -> None:
    modules = [*ROOT.glob("controllers/**/*.py"), *ROOT.glob("hitmap/**/*.py")]
    read = {name for module in modules for name in NAME.findall(module.read_text("utf-8"))}
    rows = (ROOT / "docs/variables.md").read_text("utf-8").splitlines()
    listed = [row.split("`")[1] for row in rows if row.startswith("| `CONTROLLERS_")]
    assert listed == sorted(read - EXAMPLES)
