# SPDX-License-Identifier: MIT
"""The programs whose lines are counted in the documentation have so many; some are computed."""
from __future__ import annotations

import ast
import io
import re
import tokenize
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from docs_programs import blocks

from controllers.bench.applications import APPLICATIONS

EXAMPLES = Path(__file__).parents[1] / "examples"
PAGE = Path(__file__).parents[1] / "docs" / "programs.md"
README = Path(__file__).parents[1] / "README.md"
HEAT, WAVE = blocks(PAGE, "python")[-2:]


def lines_of(program: str) -> int:
    """Those that hold anything but comments and docstrings."""
    idle = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    tokens = tokenize.generate_tokens(io.StringIO(program).readline)
    kept = [t for t in tokens if t.type not in (*idle, tokenize.ENDMARKER)]
    lines = {line for token in kept for line in range(token.start[0], token.end[0] + 1)}
    told = (ast.Module, ast.FunctionDef, ast.ClassDef)
    for one in (node for node in ast.walk(ast.parse(program)) if isinstance(node, told)):
        if ast.get_docstring(one) is not None:
            lines -= {*range(one.body[0].lineno, (one.body[0].end_lineno or 0) + 1)}
    return len(lines)


def test_the_table_says_how_many_lines_they_have() -> None:
    row = re.search(r"\| this page \| heat: (\d+) \| (\d+) \|", PAGE.read_text("utf-8"))
    assert row and (lines_of(HEAT), lines_of(WAVE)) == (int(row[1]), int(row[2]))


def test_the_table_of_examples_says_how_many_lines_they_have() -> None:
    table = README.read_text("utf-8")
    rows = re.findall(r"^\| `(\w+\.py)` \| (\d+) \|", table, re.MULTILINE)
    texts = {name: (EXAMPLES / name).read_text("utf-8") for name, _ in rows}
    assert {name: int(n) for name, n in rows} == {one: lines_of(texts[one]) for one in texts}
    beside = re.findall(r"\| `(\w+\.py)`: (\d+)", table)
    assert len(beside) > 5 and {*beside} <= {*rows}
    assert {f"{one.file or name}.py" for name, one in APPLICATIONS.items()
            if not one.file.startswith("patterns/")} <= {*texts}  # fmt: skip


def test_comments_docstrings_and_empty_lines_do_not_count() -> None:
    assert lines_of("# one\n\nx = (1,\n     2)  # two\n\n\n") == 2
    assert lines_of('"""What\nthis is."""\ndef f(x):\n    """One."""\n    return """x\n"""') == 3


def saved(program: str, name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(folder)
    exec(compile(program, str(PAGE), "exec"), {})
    return np.load(name)


@pytest.mark.whole
def test_the_heat_is_that_of_plain_numpy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    u = np.zeros((102, 102))
    u[41:61, 41:61] = 1
    for _ in range(1000):
        near = (u[:-2, 1:-1] + u[1:-1, :-2]) - 4 * u[1:-1, 1:-1] + u[1:-1, 2:] + u[2:, 1:-1]
        u[1:-1, 1:-1] += 0.1 * near
    assert np.array_equal(saved(HEAT, "heat.npy", tmp_path, monkeypatch), u[1:-1, 1:-1])


@pytest.mark.whole
def test_the_wave_is_that_of_plain_numpy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = (np.arange(40) + 0.5) * 0.1
    u = old = np.exp(-4 * (at[:, None, None] ** 2 + at[:, None] ** 2 + at**2))
    weights = [-205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560]
    for _ in range(100):
        wide, curved = np.pad(u, 4, "symmetric"), 3 * weights[0] * u
        for axis in range(3):
            for k, weight in enumerate(weights[1:], 1):
                for step in (-k, k):
                    near = np.roll(wide, step, axis)[4:-4, 4:-4, 4:-4]
                    curved = curved + weight * near
        u, old = 2 * u - old + (0.03 / 0.1) ** 2 * curved, u
    got = saved(WAVE, "wave.npy", tmp_path, monkeypatch)
    assert np.allclose(got, u, rtol=0, atol=1e-12) and 0.01 < abs(got).max() < 2
