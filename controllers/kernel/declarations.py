# SPDX-License-Identifier: MIT
"""Declarations of the functions of OpenCL C that generated text calls.

PoCL 3 reads a header of some ten thousand of them twice in each build.  Generated text calls few.
So it brings their declarations along, the same as those of the header, which is told to declare
none.  Types and constants are in another header.
"""
from __future__ import annotations

import re
from collections.abc import Iterator

NO_HEADER = "-D_OPENCL_H_"      # its guard: as if it had been read
WITH_THE_HEADER = " PoCL 3."    # in the version of a platform that is known to have it

_WHOLE = tuple(f"{sign}{name}" for name in ("char", "short", "int", "long") for sign in ("", "u"))
_REAL = ("float", "double")
_SIZES = ("", "2", "3", "4", "8", "16")
_SIGNED = {"float": "int", "double": "long"}    # what tests of a vector give
_CONST, _OTHER = "__attribute__((overloadable, const))", "__attribute__((overloadable))"
_OF_ITEMS = (
    "global_size", "global_id", "local_size", "local_id", "num_groups", "group_id", "global_offset",
)  # fmt: skip
_OF_REALS = {   # of how many operands
    **dict.fromkeys((
        "sqrt", "fabs", "floor", "ceil", "rint", "trunc", "exp", "exp2", "expm1", "log", "log2",
        "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh",
        "cbrt",
    ), 1),
    **dict.fromkeys(("fmod", "copysign", "atan2", "hypot", "pow"), 2),
    "fma": 3,
}  # fmt: skip
_TESTS = ("isnan", "isinf", "isfinite", "signbit")
_EXTREMES = ("min", "max")
_ATOMIC = ("add", "max", "or", "xchg")
# what stands before a parenthesis and is no function of OpenCL C
_WORDS = frozenset((
    "if", "for", "while", "switch", "case", "else", "return", "sizeof", "defined", "volatile",
    "asm", "__asm__", "__volatile__", "__attribute__", "_Pragma", "aligned", "reqd_work_group_size",
))  # fmt: skip
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_CALLED = re.compile(r"(?<![#\w])([A-Za-z_]\w*)\s*\(")
_DEFINED = re.compile(
    r"#\s*define\s+(\w+)\(|\bvoid\s+(\w+)\s*\(|\b([A-Za-z_]\w*)\s*\([^(){};]*\)\s*\{"
)
_OURS = ("kgt_", "KGT_", "item_", "as_", "__builtin_")


def declared(text: str) -> str | None:
    """`text` behind declarations of what it calls; None where these are not all known.

    Text that quotes a user's, by `#line`, or includes some is left as it is.

    >>> declared("__kernel void f(__global int *a) { a[0] = clz(a[1]); }") is None
    True
    >>> print(declared("__kernel void f(__global int *a) { a[0] = get_work_dim(); }"))
    uint __attribute__((overloadable, const)) get_work_dim(void);
    __kernel void f(__global int *a) { a[0] = get_work_dim(); }
    """
    code = _COMMENT.sub("", text)
    if "#line" in code or "#include" in code:
        return None
    defined = {name for names in _DEFINED.findall(code) for name in names}
    called = {name for name in _CALLED.findall(code) if not name.startswith(_OURS)}
    lines: list[str] = []
    for name in sorted(called - defined - _WORDS):
        found = [*_functions(name)]
        if not found:
            return None
        lines += found
    return "\n".join([*lines, text])


def _functions(name: str) -> Iterator[str]:
    """The lines that declare all functions of a name; none where it is not known."""
    if name == "get_work_dim":
        yield f"uint {_CONST} get_work_dim(void);"
    elif name.removeprefix("get_") in _OF_ITEMS:
        yield f"size_t {_CONST} {name}(uint);"
    elif name == "barrier":
        yield "void __attribute__((overloadable, convergent)) barrier(cl_mem_fence_flags);"
    elif name == "mem_fence":
        yield f"void {_OTHER} mem_fence(cl_mem_fence_flags);"
    elif name.startswith(("atomic_", "atom_")):
        yield from _atomic(name)
    elif name.startswith("convert_"):
        yield from _conversions(name)
    elif name == "abs":
        yield from _of_types(_WHOLE, "{unsigned} abs({type})")
    elif name in _EXTREMES:
        both = "{type} " + name + "({type}, {type})"
        yield from _of_types((*_WHOLE, *_REAL), both)
        yield from _of_types((*_WHOLE, *_REAL), "{type} " + name + "({type}, {one})", _SIZES[1:])
    elif name in _OF_REALS:
        operands = ", ".join(["{type}"] * _OF_REALS[name])
        yield from _of_types(_REAL, "{type} " + f"{name}({operands})")
    elif name in _TESTS:
        yield from _of_types(_REAL, "{truth} " + name + "({type})")


def _of_types(
    names: tuple[str, ...], form: str, sizes: tuple[str, ...] = _SIZES
) -> Iterator[str]:
    """A function of each of these types, of vectors too; `form` says result, name and operands."""
    for one in names:
        unsigned = one if one.startswith("u") else f"u{one}"
        lines = [
            form.format(
                type=f"{one}{size}", one=one, unsigned=f"{unsigned}{size}",
                truth=f"{_SIGNED.get(one)}{size}" if size else "int",
            ).replace(" ", f" {_CONST} ", 1) + ";"
            for size in sizes
        ]  # fmt: skip
        yield from _where_known(one, lines)


def _conversions(name: str) -> Iterator[str]:
    """convert_long4 and the like, from all types; none where it says how it is rounded."""
    match = re.fullmatch(r"convert_([a-z]+)(\d*)", name)
    if match and match[1] in (*_WHOLE, *_REAL) and match[2] in _SIZES:
        form = f"{match[1]}{match[2]} {name}({{type}})"
        found = _of_types((*_WHOLE, *_REAL), form, (match[2],))
        yield from _where_known(match[1], [*found])


def _atomic(name: str) -> Iterator[str]:
    """Atomic functions of a number, on 32 bits; those called atom_ on 64 bits, too."""
    prefix, _, what = name.partition("_")
    if what in _ATOMIC:
        for space in ("__global", "__local"):
            for one in ("int", "uint"):
                yield f"{one} {_OTHER} {name}(volatile {space} {one} *, {one});"
            wider = [
                f"{one} {_OTHER} {name}(volatile {space} {one} *, {one});"
                for one in ("long", "ulong")
            ]
            kind = "base" if what in ("add", "xchg") else "extended"
            if prefix == "atom":
                yield from (f"#ifdef cl_khr_int64_{kind}_atomics", *wider, "#endif")


def _where_known(one: str, lines: list[str]) -> list[str]:
    """Lines that need a type."""
    return ["#ifdef cl_khr_fp64", *lines, "#endif"] if one == "double" else lines
