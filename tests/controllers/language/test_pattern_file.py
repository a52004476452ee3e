# SPDX-License-Identifier: MIT
from __future__ import annotations

import time
from pathlib import Path

import pytest

from controllers.language.pattern_file import PatternFileError, read_patterns
from controllers.language.weights import Stencil

MEAN = "shape = ((-1, 1),)\npattern = [1, 0, 1]\nfactor = 2\n"


def write(folder: Path, text: str | bytes, name: str = "mean.py") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_file_of_one_stencil_is_named_after_its_stem_or_by_name(tmp_path: Path) -> None:
    mean = Stencil.of("mean", [(-1, 1)], [1, 0, 1], 2)
    assert read_patterns(write(tmp_path, MEAN)) == (mean,)
    (named,) = read_patterns(str(write(tmp_path, MEAN + 'name = "other"', "2-d.py")))
    assert named.name == "other"


def test_a_stem_that_is_no_identifier_asks_for_a_name(tmp_path: Path) -> None:
    with pytest.raises(PatternFileError, match=r'2-d.py:1: .*add name = "..."'):
        read_patterns(write(tmp_path, MEAN, "2-d.py"))


def test_several_stencils_stand_in_the_order_of_their_first_line(tmp_path: Path) -> None:
    text = MEAN.replace(" =", "_b =") + MEAN.replace(" =", "_a_1 =")
    assert [stencil.name for stencil in read_patterns(write(tmp_path, text))] == ["b", "a_1"]


def test_docstring_comments_tuples_signs_and_line_ends_are_allowed(tmp_path: Path) -> None:
    text = '"""Doc: import os; f(x)."""\r\n# c\r\nshape = -1, 0\r\n'
    text = (
        text.replace("-1, 0", "(-1, 0),")
        + "pattern = (\r\n  -1.5,  # west\r\n  1e-3,\r\n)\r\nfactor = -0x10\r\n"
    )
    (stencil,) = read_patterns(write(tmp_path, b"\xef\xbb\xbf" + text.encode()))
    assert stencil == Stencil.of("mean", [(-1, 0)], [-1.5, 1e-3], -16)


@pytest.mark.parametrize(
    "text, line, match",
    [
        ("import os\n" + MEAN, 1, "literals only"),
        ("\nfrom os import path\n" + MEAN, 2, "literals only"),
        (MEAN + "shape = tuple([1])", 4, "'tuple' cannot stand here"),
        (MEAN + "open('x')", 4, "literals only"),
        (MEAN + "factor(2)", 4, "literals only"),
        (MEAN.replace("2", "1 + 1"), 3, r"'\+' cannot"),
        (MEAN.replace("2", "3 - 1"), 3, "'-' cannot"),
        (MEAN.replace("2", "--1"), 3, "'-' cannot"),
        (MEAN.replace("2", "2 if 1 else 3"), 3, "'if' cannot"),
        (MEAN.replace("2", "not 1"), 3, "'not' cannot"),
        (MEAN.replace("2", "lambda: 1"), 3, "'lambda' cannot"),
        (MEAN.replace("2", "[2][0]"), 3, r"'\[' cannot"),
        (MEAN.replace("2", "(2)(0)"), 3, r"'\(' cannot"),
        (MEAN.replace("2", "f'{1}'"), 3, "cannot stand|literals"),
        (MEAN.replace("2", "{1: 2}"), 3, r"'{' cannot"),
        (MEAN.replace("2", "None"), 3, "'None' cannot"),
        (MEAN.replace("2", "True"), 3, "'True' cannot"),
        (MEAN.replace("2", "2j"), 3, "number, a string"),
        (MEAN.replace("factor = 2", "factor: int = 2"), 3, "':' cannot"),
        (MEAN.replace("factor = 2", "factor += 2"), 3, "cannot"),
        (MEAN.replace("factor = 2", "factor = name = 2"), 3, "'name' cannot"),
        (MEAN + "if 1:\n    factor = 3\n", 4, "cannot"),
        (MEAN + "  factor = 3\n", 4, "indent|cannot"),
        (MEAN + "factor = 3\n", 4, "assigned twice"),
        (MEAN + "'doc'\n", 4, "only assignments"),
        (MEAN + "radius = 3\n", 4, "unknown name 'radius'"),
        (MEAN + "name_x = 3\n", 4, "unknown name 'name_x'"),
        (MEAN + "shape_x = ((0, 0),)\n", 4, "pattern_x is missing"),
        (MEAN + "name = 3\n", 4, "name is a string, got 3"),
        (MEAN + "name = 'float4'\n", 4, "OpenCL"),
        (MEAN + "name = 'a/b'\n", 4, "'a/b'"),
        (MEAN + MEAN.replace(" =", "_mean ="), 4, "second stencil"),
        (MEAN.replace("((-1, 1),)", "3"), 1, "pair"),
        (MEAN.replace("[1, 0, 1]", "[1, 0]"), 2, "3 offsets .* 2 weights"),
        (MEAN.replace("[1, 0, 1]", "[1, 0, 'x']"), 2, "numbers, got 'x'"),
        (MEAN.replace("factor = 2", "factor = 0"), 3, "cannot be 0"),
        (MEAN.replace("2", "1" * 401), 3, "401 characters"),
        (MEAN.replace("2", "1e999"), 3, "finite"),
        (MEAN.replace("[1, 0, 1]", "[1, 0, 1"), 3, "cannot|syntax"),
        (MEAN.replace("[1, 0, 1]", "[1,, 1]"), 2, "cannot|syntax"),
        ("", 1, "no stencil"),
        ("# nothing\n", 1, "no stencil"),
    ],
)
def test_what_is_no_literal_is_refused_with_file_and_line(
    tmp_path: Path, text: str, line: int, match: str
) -> None:
    with pytest.raises(PatternFileError, match=match) as caught:
        read_patterns(write(tmp_path, text))
    assert f"mean.py:{line}: " in str(caught.value)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    "text",
    [
        b"shape = " + b"[" * 400_000,
        b"shape = " + b"(" * 150 + b")" * 150,
        b"shape = " + b"-" * 900_000 + b"1",
        b"shape = " + b"1+" * 400_000 + b"1",
        b"shape = " + b"not " * 200_000 + b"1",
        b"shape = x" + b".x" * 400_000,
        b"shape = x" + b"(1)" * 300_000,
        b"shape = " + b"1 if 1 else " * 80_000 + b"1",
        b"shape = '" + b"a" * 900_000 + b"'",
        b"'" * 900_001,
        b"\\\n" * 400_000,
        b"shape = " + b"9" * 900_000,
        b"shape = 0x" + b"f" * 390,
        b"shape = 1\0\n",
        b"\xff\xfe\n",
        b"# " + b"x" * (1 << 20),
        b"shape" + b"_" * 900_000 + b" = 1",
        b"\n" * 900_000 + b"x",
        pytest.param(
            b"shape = [" + b"1," * 500_000 + b"]\npattern=[1]\nfactor=1", marks=pytest.mark.whole
        ),
    ],
    ids=range(19),
)
def test_hostile_files_give_an_error_and_quickly(tmp_path: Path, text: bytes) -> None:
    started = time.process_time()
    with pytest.raises(PatternFileError, match=r"mean.py:\d+: ") as caught:
        read_patterns(write(tmp_path, text))
    assert time.process_time() - started < 20
    assert len(str(caught.value)) < 600


def test_a_file_that_cannot_be_read_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="missing"):
        read_patterns(tmp_path / "missing.py")
    with pytest.raises(OSError, match=str(tmp_path)):
        read_patterns(tmp_path)
