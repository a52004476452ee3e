# SPDX-License-Identifier: MIT
"""The table of bad inputs: what a user may get wrong, and what must be said about it.

A row is added where it belongs: `patterns`, `inputs`, `kernels` and `options` make the command
around it.  Some of those that are `whole`, more with `pytest --whole`, are started with mpiexec
each; the others are run one after the other in one job of two ranks (`bad_input_server.py`), since
a start takes longer than a case.
"""
from __future__ import annotations

import os
import pickle
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Union

import numpy as np
import numpy.typing as npt

FOLDER, PIPE = "a folder", "a pipe"
Content = Union[str, bytes, npt.NDArray[Any]]   # of a file; FOLDER and PIPE make those

WEIGHTS = "[[0, 1, 0], [1, 2, 1], [0, 1, 0]]"
STAR = f"shape = ((-1, 1), (-1, 1))\npattern = {WEIGHTS}\nfactor = 6\n"
BASE = "star.py --size 9 9 --iterations 1 --device cpu"


@dataclass(frozen=True)
class Bad:
    """One row: the files and the command, and what the error must say (a regular expression)."""

    title: str
    command: str
    message: str
    files: Mapping[str, Content] = field(default_factory=dict)
    whole: bool = False
    code: int = 2

    def prepare(self, folder: Path) -> None:
        """Make the folder in which the command is run."""
        folder.mkdir(parents=True)
        for name, content in {"star.py": STAR, **self.files}.items():
            path = folder / name
            if isinstance(content, np.ndarray):
                np.save(path, content)
            elif content is FOLDER:
                path.mkdir()
            elif content is PIPE:
                os.mkfifo(path)
            else:
                path.write_bytes(content if isinstance(content, bytes) else content.encode())


def pattern(title: str, text: str | bytes, message: str, options: str = "", **more: Any) -> Bad:
    """A pattern file with this text."""
    command = f"run bad.py --size 9 9 --iterations 1 {options}"
    return Bad(f"pattern: {title}", command, message, {"bad.py": text}, **more)


def changed(title: str, old: str, new: str, message: str, options: str = "", **more: Any) -> Bad:
    """The good pattern file with one change."""
    assert old in STAR
    return pattern(title, STAR.replace(old, new), message, options, **more)


def array(title: str, content: Content, message: str, options: str = "", **more: Any) -> Bad:
    """A file as --input."""
    command = f"run star.py --iterations 1 --device cpu --input in.npy {options}"
    return Bad(f"input: {title}", command, message, {"in.npy": content}, **more)


def kernel(title: str, content: Content, message: str, options: str = "", **more: Any) -> Bad:
    """A file as --kernel."""
    command = f"run {BASE} --kernel own.cl {options}"
    return Bad(f"kernel: {title}", command, message, {"own.cl": content}, **more)


def option(words: str, message: str, **more: Any) -> Bad:
    """Options behind a command that is good; the last one of a name counts."""
    title = words if len(words) < 60 else f"{words[:30]}... ({len(words)} characters)"
    return Bad(title, f"run {BASE} {words}", message, **more)


def npy(header: str, body: bytes = b"\0" * 64, version: int = 1) -> bytes:
    """A .npy file with this header."""
    text = header.encode("latin-1").ljust(118) + b"\n"
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H", len(text)) + text + body


def described(shape: str, descr: str = "'<f4'") -> bytes:
    """A .npy file of 64 bytes that says that it holds an array of this shape."""
    return npy(f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}")


def table() -> tuple[Bad, ...]:
    """All rows; their titles differ."""
    rows = (*patterns(), *inputs(), *kernels(), *options(), *outputs(), *commands())
    assert len({row.title for row in rows}) == len(rows), "two rows of one title"
    return rows


def patterns() -> Iterator[Bad]:
    """Pattern files."""
    call = "__import__('os').system('touch EXECUTED')"
    yield changed("a call", "6", call, "bad.py:3: '__import__' cannot stand here", whole=True)
    yield pattern("an import", "import os\n" + STAR, "bad.py:1: .*literals only", whole=True)
    yield pattern("a statement", "open('EXECUTED', 'w')\n" + STAR, "bad.py:1: ")
    yield pattern("no factor", "shape = ((0, 0),)\npattern = [1]\n", "factor is missing",
                  whole=True)
    yield pattern("no syntax", "shape = ((\n", "bad.py:2: not Python's syntax", whole=True)
    yield pattern("empty", "", "found no stencil; assign shape", whole=True)
    yield changed("NaN", "2", "nan", "'nan' cannot stand here", whole=True)
    yield changed("1e400", "2", "1e400", "bad.py:2: .*finite, got inf; .*float64", whole=True)
    yield changed("-1e400", "6", "-1e400", "bad.py:3: .*finite, got -inf")
    for zero in ("0", "-0.0", "0x0", "0e9"):
        yield changed(f"factor {zero}", "6", zero, "bad.py:3: .*cannot be 0; use 1",
                      whole=zero == "0")
    yield changed("390 digits", "2", "9" * 390, "bad.py:2: .*float64, got .* of 1296 bits")
    yield changed("401 digits", "2", "9" * 401, "401 characters, the limit is 400")
    yield changed("beyond float32", "2", "1e39", "1e\\+39 is beyond .*float32; .*wider", whole=True)
    yield changed("a small factor", "6", "1e-60", "factor rounds to 0 in float32; .*wider")
    yield changed("small weights", WEIGHTS, str([1e-60] * 9), "weights round to 0 in float32; ")
    yield changed("a product", WEIGHTS, "[1] * 9", "bad.py:2: '.' cannot stand here")
    yield changed("a fraction", "2", "0.5", "0.5 is no whole .*scale it", "--dtype int32",
                  whole=True)
    yield changed("65 bits", "6", str(2**64), "beyond the 64 bits.*scale it", "--dtype int64")
    yield changed("complex", "2", "2j", "a value is a number.* got 2j")
    yield changed("a string", "2", "'2'", "bad.py:2: .*numbers, got '2'")
    yield changed("True", "2", "True", "'True' cannot stand here")
    yield changed("None", "6", "None", "'None' cannot stand here")
    yield changed("a list as factor", "6", "[6]", "bad.py:3: .*numbers, got \\[6\\]")
    yield changed("octal", "2", "010", "bad.py:2: ")
    yield changed("all weights 0", WEIGHTS, str([0] * 9), "all weights are 0; give")
    yield changed("swapped ends", "(-1, 1), (", "(1, -1), (", "bad.py:1: .*swap them", whole=True)
    yield changed("fractions as ends", "(-1, 1), (", "(-1.0, 1), (", "bad.py:1: .*whole numbers")
    yield changed("no pair", "(-1, 1), (", "(-1, 0, 1), (", "bad.py:1: .*one pair")
    yield changed("a number as shape", "((-1, 1), (-1, 1))", "3", "bad.py:1: shape is one pair")
    yield pattern("5 axes", f"shape = {((0, 0),) * 5}\npattern = [1]\nfactor = 1\n",
                  "1 to 4 .*got 5")
    yield pattern("no axes", "shape = ()\npattern = [1]\nfactor = 1\n", "1 to 4 axes, got 0")
    far = "shape = ((-3000000000, 0),)\npattern = [1]\nfactor = 1\n"
    yield pattern("too far", far, "at most 2147483647 cells, got \\(-3000000000.*smaller shape")
    even = "shape = ((-1, 1),)\npattern = [1, 1]\nfactor = 2\n"
    yield pattern("even", even, "3 offsets.* has 2 weights; give one per offset", whole=True)
    yield changed("ragged", "[0, 1, 0]]", "[0, 1]]", "axis 1 .*needs 3 entries, got 2", whole=True)
    yield pattern("deep", f"shape = {'[' * 99}{']' * 99}", "nested deeper than 8")
    yield pattern("twice", STAR + "factor = 6\n", "bad.py:4: 'factor' is assigned twice; keep one")
    yield pattern("unknown", STAR + "radius = 1\n", "unknown name 'radius'; use shape, pattern")
    yield pattern("no UTF-8", STAR.encode() + b"# \xff\n", "bad.py:4: .*UTF-8")
    yield pattern("UTF-16", STAR.encode("utf-16"), "bad.py:1: .*like UTF-16.*save it as UTF-8")
    yield pattern("NUL", STAR + "\0", "bad.py:4: ")
    yield pattern("2 MB", STAR + "#" * (2 << 20), "at most 1048576 bytes")
    yield pattern("other axes", "shape = ((0, 1),)\npattern = [1, 1]\nfactor = 1\n",
                  "one size per axis")
    for name in ("a b", "größe", "2d", "", "x" * 99):
        text = f"{STAR}name = '{name}'\n"
        yield pattern(f"the name {name[:9]!r}", text, "bad.py:4: .*choose another",
                      whole=name == "a b")
    for name in ("double", "kernel", "float4", "get__id"):
        text = f"{STAR}name = '{name}'\n"
        yield pattern(f"the name {name}", text, "choose another name", whole=name == "double")
    hint = 'choose another name: it is the file.s name; add name = "..." to the file'
    yield Bad("the file float.py", "run float.py --size 9 9 --iterations 1", hint,
              {"float.py": STAR})
    wide = "shape = ((-2, 2),)\npattern = [1, 1, 1, 1, 1]\nfactor = 5\n"
    small = "-2 to 2 on axis 0, where the field has 4 cells.*larger field"
    yield pattern("larger than the field", wide, small, "--size 4", whole=True)
    for name, content in (("gone.py", None), ("dir.py", FOLDER), ("pipe.py", PIPE)):
        files = {} if content is None else {name: content}
        command = f"run {name} --size 9 9 --iterations 1"
        yield Bad(name, command, f"{name}: .*give a pattern file", files, whole=True)
    for name in ("-", "/dev/stdin", "/dev/zero", "star.py/x.py", "x" * 300):
        command = f"run {name} --size 9 9 --iterations 1"
        yield Bad(f"pattern {name[:20]}", command, f"{name}: .*give a pattern file")
    yield Bad("no name of a pattern", "run '' --size 9 9 --iterations 1", "name of a file, got ''")
    two = "".join(STAR.replace(" =", f"_{name} =") for name in "ab")
    yield pattern("two stencils", two, "say which one, with --stencil NAME; it has a, b")
    yield pattern("no such stencil", two, "no stencil 'c', .*it has a, b", "--stencil c")


def inputs() -> Iterator[Bad]:
    """Files of --input."""
    good = np.ones((9, 9), "f4")
    saved = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (9, 9), }", good.tobytes())
    gone = "run star.py --iterations 1 --input gone.npy"
    yield Bad("input: missing", gone, "gone.npy: No such file.*give a .npy file", whole=True)
    yield array("cut off", saved[:-40], "cut off.*\\(9, 9\\) cells of float32, 324 bytes, and 284",
                whole=True)
    yield array("header cut off", saved[:40], "damaged header", whole=True)
    yield array("empty", b"", "is no .npy file, it begins with b''", whole=True)
    yield array("pickled objects", np.array([[None] * 9] * 9),
                "pickled Python objects.*save numbers", whole=True)
    yield array("a pickle", pickle.dumps(good), "is no .npy file, it begins with b'.x80",
                whole=True)
    yield array("text", "1 2 3\n4 5 6\n", "begins with b'1 2 3.n'; give a .npy")
    yield array("a .npz file", b"PK\x03\x04...", "begins with b'PK.*several arrays")
    yield array("1 axis", np.ones(9, "f4"), "has 2 axes but the field has 1", whole=True)
    yield array("5 axes", np.ones((2,) * 5, "f4"), "has 2 axes but the field has 5")
    yield array("0 axes", np.array(3.0), "a single number, not an array")
    yield array("no cells", np.ones((9, 0), "f4"), "at least one cell, got \\(9, 0\\)", whole=True)
    yield array("smaller than the stencil", np.ones((9, 2)), "axis 1, where the field has 2 cells",
                whole=True)
    yield array("complex", np.ones((9, 9), "c8"), "complex64, which are not real", whole=True)
    for dtype in ("?", "f2", "u8", "g"):
        name = np.dtype(dtype).name
        yield array(name, np.ones((9, 9), dtype), f"holds {name}, .*convert it .*--dtype float64")
    for name, dtype in {"structs": "f4,i4", "texts": "U3", "dates": "M8[s]", "raw": "V4"}.items():
        yield array(name, np.zeros((9, 9), dtype), "are not real numbers; give")
    large = np.full((9, 9), 1e300)
    yield array("beyond float32", large, "float32 takes numbers up to 3.4e.38; use a wider",
                "--dtype float32", whole=True)
    large[:5] = 0
    yield array("beyond on rank 1", large, "--input: rank 1: .*cell \\(5, 0\\) holds 1e.300",
                "--dtype float32", whole=True)
    yield array("NaN as integer", np.full((9, 9), np.nan), "int32 takes whole", "--dtype int32")
    yield array("with --size", saved, "--size: not allowed with", "--size 9 9")
    yield array("a folder", FOLDER, "in.npy: Is a directory; give", whole=True)
    yield array("a pipe", PIPE, "in.npy: is a pipe", whole=True)
    yield array("10^12 cells in 64 bytes", described(str((10**6,) * 2)), "cut off.* and 64 follow")
    yield array("2^124 cells", described(str((2**62,) * 2)), "cut off")
    yield array("10^60 cells", described(str((10**30,) * 2)), "damaged header: no array")
    for shape in ("(-3, -3)", "9", "('a', 'b')", "(9.0, 9)", "[9, 9]", "None"):
        yield array(f"the shape {shape}", described(shape), "damaged header")
    for descr in ("'<q9'", "['x']", "None", "'|O'", "[('a', '<f4', -1)]", "9"):
        yield array(f"the dtype {descr}", described("(4, 4)", descr), "damaged header|pickled")
    call = "__import__('os').system('touch EXECUTED')"
    hostile = {"brackets": "(" * 5000, "signs": "-" * 9000 + "1", "long": "x" * 20000,
               "no dict": "[]", "a call": call, "NUL": "\0", "keys": "{}"}
    for title, header in hostile.items():
        yield array(f"header: {title}", npy(header), "damaged header: .*; give a .npy file")
    yield array("version 9", npy("{}", version=9), "damaged header: .*version \\(9, 0\\)")
    claim = b"\x93NUMPY\2\0" + struct.pack("<I", 2**31 - 1)
    yield array("header of 2 GiB", claim, "damaged header: it claims 2147483647 bytes, the limit")
    devices = "/dev/stdin", "/dev/zero", "/proc/kmsg"
    for name in ("-", *devices, "star.py", "star.py/x.npy", "x" * 300):
        command = f"run star.py --iterations 1 --input {name}"
        yield Bad(f"input {name[:20]}", command, f"--input {name}: .*; give a .npy file")


def kernels() -> Iterator[Bad]:
    """Files of --kernel."""
    yield kernel("does not compile", "NEW(u) = 1\n+ q;", "'own' \\(own.cl\\) does not compile",
                 whole=True)
    yield kernel("reads what is not declared", "NEW(u) = NEAR(u, 1, 1);",
                 "at the offset \\(1, 1\\)", whole=True)
    yield kernel("writes nothing", ";", "does not set its cell; write NEW")
    yield kernel("only a comment", "// nothing", "own.cl holds no OpenCL C; write a body")
    yield kernel("UTF-16", "NEW(u) = 1;".encode("utf-16"), "own.cl:1: .*looks like UTF-16")
    yield kernel("no UTF-8", b"NEW(u) = 1;\n// \xff", "own.cl:2: is no UTF-8")
    yield kernel("a parameter without a value",
                 "__kernel void f(__global const float *u, __global float *u_new, float z) {}",
                 "the parameter 'z' has no value")
    yield kernel("two kernels", "__kernel void a(int n) {}\n__kernel void b(int n) {}",
                 "holds the kernels a, b and none is called 'own'")
    yield kernel("on the reference", "NEW(u) = HERE(u);", "choose another device",
                 "--device reference")
    yield kernel("a folder", FOLDER, "own.cl: Is a directory; give a .cl file", whole=True)
    yield kernel("a pipe", PIPE, "own.cl: is a pipe", whole=True)
    yield option("--kernel gone.cl", "gone.cl: No such file.*give a .cl file", whole=True)
    for word in ("Generic", "''", "own.c", "/dev/zero"):
        yield option(f"--kernel {word}", "specialised, generic or the name of a .cl file, got")


def options() -> Iterator[Bad]:
    """Numbers, words, and options that do not exist or do not go together."""
    for word in ("-1", "1.5", "x", "nan", "''", "1e3", "9" * 5000):
        yield option(f"--iterations {word}", "whole number that is not negative, got",
                     whole=word == "-1")
    for words in ("-9 9", "9.5 9", "9,9", "9x9"):
        yield option(f"--size {words}", "whole number that is not negative, got")
    yield option("--size 0 9", "at least 1 cell, got 0", whole=True)
    yield option("--size 9 9 9", "2 axes but the field has 3", whole=True)
    yield option("--size 2 9", "axis 0, where the field has 2 cells", whole=True)
    yield option(f"--size {10**30} 9", "less than 2\\^63 bytes, got")
    yield option("--size 3000000000 300000000", "at most 2048 places; use .*a smaller field")
    for words in ("nan,1", "inf,1", "0,0", "-1,2", "1e400,1", "1e-400,0", "-inf,1"):
        value = words if words[0] != "-" or words[1].isdigit() else f"={words}"
        yield option(f"--weights {value}".replace(" =", "="),
                     "must be finite and not negative.*got",
                     whole=words in ("nan,1", "inf,1", "-1,2"))
    for words in ("1,,2", "''", "0x10,1", "'1;2'", "a,b", "True,1", "1,2,", "1j,1", "'[1,2]'"):
        yield option(f"--weights {words}", "numbers between commas, such as 1,3.7, or auto, got",
                     whole=words == "1,,2")
    yield option("--weights 1", "2 places need as many weights, got 1", whole=True)
    yield option("--weights 1,2,3", "2 places need as many weights, got 3", whole=True)
    yield option("--weights 1 2", "unknown words: '2'")
    yield option("--weights 1,2 --partition bands", "weights belong to .*got partition 'bands'")
    yield option("--partition weighted", "weights belong to .*weights None")
    yield option("--partition rings", "'rings' \\(choose from", whole=True)
    yield option("--partition cyclic", "needs it.*block None")
    yield option("--partition cyclic --block 0", "at least 1 cell")
    yield option("--partition cyclic --block 3 3 3", "each of 2 axes")
    yield option("--block 3", "belongs to the partition 'cyclic'")
    yield option("--align 0", "at least 1 cell")
    yield option("--align 2 2 2", "each of 2 axes")
    for word in ("no-such", "cpu,gpu", "cpu:9", "'*'"):
        yield option(f"--device {word}", "no device fits|positions count", whole=word == "no-such")
    for word in ("0", "''", "cpu:-1", "cpu/x", "cpu/0", "cpu/99", "reference/1,1", "reference:3"):
        yield option(f"--device {word}", "got|cores in all|only a CPU|positions count")
    for word in ("float16", "complex64", "f4", "Float32"):
        yield option(f"--dtype {word}", f"'{word}' \\(choose from '?float32",
                     whole=word == "float16")
    for word in ("9" * 400, "9" * 5000, f"{'9' * 400}t", "1e400", "-1"):
        message = "memory cap is a number of bytes, less than|expected one"
        yield option(f"--memory-cap {word}", message, whole=word == "9" * 400)
    yield option("--overlap maybe", "'maybe' \\(choose from '?auto")
    yield option("--tune -1", "a number of seconds, at least 0, got '-1'")
    yield option("--tune 1 --kernel generic", "no configurations to tune; leave it out", whole=True)
    yield option("--boundary open", "one of fixed, periodic, .*got 'open'")
    yield option("--boundary fixed,fixed,fixed", "2 axes need one boundary.*got 3")
    yield option("--boundary ''", "2 axes need one boundary.*got 0")
    yield option("--warp", "unknown option '--warp'; see controllers run --help", whole=True)
    yield option("--iteration 3", "'--iteration', did you mean --iterations", whole=True)
    yield option("--out=x.npy", "'--out', did you mean --output")
    yield option("-x", "unknown words: '-x'")
    yield option("more", "unknown words: 'more'")
    yield option("--json=1", "--json: ignored explicit argument '1'")
    yield option("--output", "--output: expected one argument")


def outputs() -> Iterator[Bad]:
    """Names that cannot be written."""
    yield option("--output no/out.npy", "no folder 'no'; make it first", whole=True)
    yield option("--plot no/p.png", "no folder 'no'; make it first", whole=True)
    yield option("--output star.py/out.npy", "no folder 'star.py'")
    yield option("--output ''", "the name of a file, got ''")
    yield option("--output .", "is a folder; give the name of a file", whole=True)
    yield option("--plot ..", "is a folder; give the name of a file")
    yield option("--output /proc/out.npy", "cannot be written: ", whole=True)
    yield option("--plot /proc/p.png", "cannot be written: ")
    for name in ("x" * 300, "x" * 250):     # the second one is short, its temporary name is not
        yield option(f"--output {name}", "File name too long", whole=len(name) == 250)
    yield option("--output pipe", "is a pipe or a device", files={"pipe": PIPE}, whole=True)
    yield option("--output star.py", "is the file of the pattern as well; give another", whole=True)
    yield option("--output ./own.cl --kernel own.cl", "is the file of --kernel as well",
                 files={"own.cl": "NEW(u) = HERE(u);"})
    yield option("--output a.png --plot ./a.png", "is the file of --output as well", whole=True)
    for name in ("p", "p.xyz", "p.npy", "p.pgf"):
        yield option(f"--plot {name}", "must end with one of .*png|needs matplotlib",
                     whole=name == "p.xyz")


def commands() -> Iterator[Bad]:
    """The command itself, and what it cannot do without."""
    yield Bad("no command", "", "COMMAND")
    yield Bad("an unknown command", "simulate", "'simulate' \\(choose from", whole=True)
    yield Bad("no arguments", "run", "required: FILE.py")
    yield Bad("no size", "run star.py --iterations 1", "--input --size is required", whole=True)
    yield Bad("no iterations", "run star.py --size 9 9", "required: --iterations", whole=True)
    yield Bad("a cap that is no number", f"run {BASE} --memory-cap much", "memory cap is a number")
    yield Bad(
        "an array over the memory cap",
        "run star.py --size 900 900 --iterations 1 --memory-cap 1m --device cpu",
        'field "u" needs .* MiB .*cap is 1 MiB.*--memory-cap', whole=True,
    )  # fmt: skip
    yield Bad(
        "more steps per launch than any kernel computes",
        f"run {BASE} --steps-per-launch {10**9}", "at most 256 steps, got 1000000000; use fewer",
    )  # fmt: skip
    yield Bad("no place to plan for", f"run {BASE} --dry-run 0", "at least 1 place, got 0")
    yield Bad("a word too much", "devices more", "unknown words: 'more'; see controllers devices")
    yield Bad("an option of another command", "devices --size 9", "unknown option '--size'")
