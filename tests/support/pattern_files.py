# SPDX-License-Identifier: MIT
"""Random pattern files, for hypothesis: good ones, good ones that were spoilt, and any text."""
from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

MARK = "EXECUTED"   # what no file may ever do
_CALLS = [
    f"__import__('os').system('touch {MARK}')", f"open('{MARK}', 'w')", f"exec('{MARK} = 1')",
    f"f'{{open(\"{MARK}\", \"w\")}}'", "print(1)", "exit()", "lambda: 1", "(lambda: exit())()",
    "().__class__.__base__.__subclasses__()", "pattern.append", "pattern[0]", "[x for x in (1,)]",
]  # fmt: skip
_STATEMENTS = [
    "import os", "from os import *", "if 1:\n  ", "class A: pass", "def f(): pass", "del shape",
    "global shape", "with a: b", "raise", "assert 0", "return 1", "shape += 1", "shape: int = 1",
    "shape = pattern = 1", "shape, pattern = 1, 2", "shape = ", "= 1", "@f", "yield", "pass",
]  # fmt: skip
_WORDS = [
    "1 + 1", "2 ** 999999", "1 if 1 else 2", "not 1", "~1", "--1", "+1", "*[1]", "**{}", "{1: 2}",
    "{1}", "...", "None", "True", "1j", "b'1'", "r'1'", "u'1'", "'a' 'b'", '"""', "'''", "'", '"',
    "name", "shape", "pattern_a", "factor_", "_", "x := 1", "await 1", "(yield)", ":", ";", "\\",
    "name = '../../up'", "name = '/tmp/abs'", "name = 'a/b'", "name = 'double'", "name = 1",
]  # fmt: skip
NUMBERS = [
    "1e400", "-1e400", "1e-400", "-0.0", "0", "0.0", "0x10", "-0X1f", "1_000", "1__0", "0b11",
    "0o17", "017", "1e1_0", ".5", "5.", "1e", "0x", "nan", "inf", "-inf", "1.7976931348623157e308",
    "5e-324", "9" * 309, "9" * 399, "9" * 401, "9" * 5000, "0x" + "f" * 300, "2147483648",
    "-2147483649", "9223372036854775808", "1e39", "0.1", "1j", "True", "'1'",
]  # fmt: skip
_SHAPES = [
    "[" * 9, "[" * 200, "(" * 90000, "]" * 9, "((((((((", "-" * 5000, "1," * 3000, "#" * 5000,
    "'" + "a" * 90000 + "'", "x" * 500, "x" * 90000, "\\\n" * 2000, "\n" * 20000, " " * 9000,
    "(" * 50, "\0", "\ufeff", "\u2028", "\u202e", "\uff11", "ß", "ﬁ", "\U0001d7d9",
    "\x0c", "\t", "\r", "\x1a", "\x85", "\ud7ff",
]  # fmt: skip
_VALUES = [*NUMBERS, "'text'", "''", "[]", "()", "[1]", "[[1]]", "(-1, 1)", "((-1, 1),)", "-1"]
HOSTILE = [*_CALLS, *_STATEMENTS, *_WORDS, *NUMBERS, *_SHAPES]
_SPOILINGS = ["replace", "insert", "remove", "double", "exchange", "cut"]
_TOKEN = re.compile(r"\w+|\s|.", re.DOTALL)


@dataclass(frozen=True)
class Good:
    """The text of a good pattern file, and what it says."""

    text: str
    names: tuple[str, ...]
    shape: tuple[tuple[int, int], ...]
    weights: tuple[float, ...]
    factor: float


@st.composite
def good_files(draw: st.DrawFn) -> Good:
    """One stencil or two equal ones; comments, nesting and spelling of the numbers vary."""
    n_axes = draw(st.integers(1, 4))
    ends = st.tuples(st.integers(-2, 1), st.integers(0, 2)).map(lambda e: (e[0], e[0] + e[1]))
    shape = tuple(draw(st.lists(ends, min_size=n_axes, max_size=n_axes)))
    extent = [high - low + 1 for low, high in shape]
    number = st.one_of(st.integers(-9, 9), st.floats(-100, 100, width=32))
    weights = draw(st.lists(number, min_size=math.prod(extent), max_size=math.prod(extent)))
    if not any(weights):
        weights[0] = 1
    factor = draw(number.filter(bool))
    pattern = _nested(weights, extent) if draw(st.booleans()) else weights
    names = draw(st.sampled_from([("",), ("a",), ("one", "two_2")]))
    before = draw(st.sampled_from(["", '"""Text."""\n', "# comment\n", "\n\n", "\ufeff"]))
    end = draw(st.sampled_from(["\n", "  # why\n", "\r\n", "\n\n"]))
    lines = [
        f"{key}{'_' * bool(name)}{name} = {value!r}{end}"
        for name in names
        for key, value in (("shape", shape), ("pattern", pattern), ("factor", factor))
    ]
    return Good(before + "".join(lines), names, shape, tuple(weights), factor)


@st.composite
def spoilt_files(draw: st.DrawFn) -> str:
    """A good file of which a few tokens were replaced, removed, doubled or exchanged."""
    tokens = _TOKEN.findall(draw(good_files()).text)
    for _ in range(draw(st.integers(1, 4))):
        first, second = (draw(st.integers(0, len(tokens) - 1)) for _ in range(2))
        what = draw(st.sampled_from([*["value"] * 4, *_SPOILINGS]))
        if what == "value":
            numbers = [place for place, token in enumerate(tokens) if token.isdigit()]
            if numbers:
                tokens[draw(st.sampled_from(numbers))] = draw(st.sampled_from(_VALUES))
        elif what in ("replace", "insert"):
            new = draw(st.one_of(st.sampled_from(HOSTILE), st.text(max_size=5)))
            tokens[first : first + (what == "replace")] = [new]
        elif what == "remove":
            del tokens[first : second + 1]
        elif what == "double":
            tokens[first:first] = tokens[first : second + 1]
        elif what == "exchange":
            tokens[first], tokens[second] = tokens[second], tokens[first]
        else:
            del tokens[first:]
        tokens = tokens or ["\n"]
    return "".join(tokens)


def any_files() -> st.SearchStrategy[bytes]:
    """Bytes, text, words of Python in any order, and spoilt files."""
    words = st.sampled_from([*HOSTILE, "shape", "pattern", "factor", "=", "[", "]", "(", ")", ",",
                             "1", "-", "\n", " ", "\n    "])  # fmt: skip
    numbers = st.builds(
        "shape = ((-1, 0),)\npattern = [{}, {}]\nfactor = {}\n".format,
        *[st.one_of(st.sampled_from(NUMBERS), st.floats().map(repr), st.integers().map(str))] * 3,
    )
    texts = [st.text(), st.lists(words, max_size=40).map("".join), numbers]
    texts += [spoilt_files()] * 3   # three times as often
    return st.one_of(st.binary(), *(text.map(_encoded) for text in texts))


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _nested(values: list[Any], extent: list[int]) -> list[Any]:
    if len(extent) == 1:
        return values
    step = len(values) // extent[0]
    rows = [values[first : first + step] for first in range(0, len(values), step)]
    return [_nested(row, extent[1:]) for row in rows]
