# SPDX-License-Identifier: MIT
"""How many cells one C value holds, and how C names and converts such values.

A scalar is a vector of width 1.  Conversions between vectors are the built-in functions of OpenCL
C, or, with `clang`, the compiler's own: PoCL's wheel calls the former instead of inlining them,
and aborts on some of width 16.
"""
from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Lanes:
    """Values of `width` cells, 1 to 16."""

    width: int = 1
    clang: bool = False

    def type(self, name: str) -> str:
        """The vector type whose elements have the type `name`.

        >>> Lanes(4).type("float"), Lanes().type("float")
        ('float4', 'float')
        """
        return name if self.width == 1 else f"{name}{self.width}"

    def converted(self, name: str, value: str) -> str:
        """C text that converts `value`, element by element, to elements of the type `name`.

        >>> Lanes().converted("long", "x"), Lanes(4).converted("long", "x")
        ('(long)x', 'convert_long4(x)')
        """
        before, after = self.conversion(name)
        return f"{before}{value}{after}"

    def conversion(self, name: str) -> tuple[str, str]:
        """What `converted` puts before and after a value."""
        if self.width == 1:
            return f"({name})", ""
        if self.clang:
            return "__builtin_convertvector(", f", {self.type(name)})"
        return f"convert_{self.type(name)}(", ")"

    def function(self, text: str, name: str) -> str:
        """The C text of a function of floats of the type `name`; with `clang`, without a call.

        >>> Lanes(8, clang=True).function("fabs({0})", "float"), Lanes().function("1 / {0}", "int")
        ('as_float8(as_int8({0}) & INT_MAX)', '1 / {0}')
        """
        if not self.clang or text != "fabs({0})":
            return text
        whole = {"float": "int", "double": "long"}[name]
        return f"as_{self.type(name)}(as_{self.type(whole)}({{0}}) & {whole.upper()}_MAX)"


SCALAR = Lanes()
WIDTHS = (1, 2, 4)    # of the vectors that are used on GPUs

# Before functions of wide vectors.  clang warns that compilers disagree on how to pass such values;
# ours are always inlined.
WIDE = '#pragma clang diagnostic ignored "-Wpsabi"'

# Functions of OpenCL C that clang has too, of so many operands, by what the names of its own end in
_FUNCTIONS = {
    "copysign": 2, "isfinite": 1, "isinf": 1, "isnan": 1,
    "ceil": 1, "fabs": 1, "floor": 1, "rint": 1, "signbit": 1, "sqrt": 1, "trunc": 1,
}  # fmt: skip
_OF_ANY_TYPE = {"isfinite", "isinf", "isnan"}
_TESTS = {*_OF_ANY_TYPE, "signbit"}
_VECTOR = re.compile(r"\b(?:float|double)(?:2|3|4|8|16)\b")


def clang_functions(
    lines: Sequence[str], dtypes: Sequence[str], texts: Sequence[str] = ()
) -> list[str]:
    """C lines: macros that make functions which `lines` call clang's own, and an empty line.

    PoCL's wheel calls its library for each cell, and then computes one cell at a time.  None where
    values are of both float types, as clang's functions are of one.  texts: those in the lines that
    users wrote, who may call functions of either type; where they have vectors, none, too.

    >>> clang_functions(["t0 = sqrt(u[c]);"], ["float32"])[1:]
    ['#undef sqrt', '#define sqrt(a) __builtin_sqrtf(a)', '']
    >>> clang_functions(["float4 a = sqrt(b);"], ["float32"], ["float4 a = sqrt(b);"])
    []
    """
    floats = [dtype for dtype in dtypes if dtype.startswith("float")]
    called = {name for line in lines for name in re.findall(r"\b(\w+)\s*\(", line)}
    used = [name for name in _FUNCTIONS if name in called]
    of_any = bool(texts)
    if not used or any(map(_VECTOR.search, texts)) or (not texts and len(floats) != 1):
        return []
    macros = []
    for name in used:
        operands = "a, b" if _FUNCTIONS[name] == 2 else "a"
        if of_any:
            macros += _overloaded(name)
        own = f"kgt_{name}" if of_any else _of_clang(name, floats[0])
        macros += [f"#undef {name}", f"#define {name}({operands}) {own}({operands})"]
    return ["// instructions, where the library would be called for each cell", *macros, ""]


def _of_clang(name: str, dtype: str) -> str:
    end = "f" if dtype == "float32" and name not in _OF_ANY_TYPE else ""
    return f"__builtin_{name}{end}"


def _overloaded(name: str) -> list[str]:
    """C lines: clang's function for both float types."""
    result, lines = "int" if name in _TESTS else "", []
    operands = "ab"[: _FUNCTIONS[name]]
    for kind, dtype in (("float", "float32"), ("double", "float64")):
        given = ", ".join(f"const {kind} {one}" for one in operands)
        lines += [
            f"static inline __attribute__((overloadable, always_inline)) {result or kind}",
            f"kgt_{name}({given}) {{ return {_of_clang(name, dtype)}({', '.join(operands)}); }}",
        ]
    return lines


# C lines: macros of clang's, for CPUs.
PREFETCH = (
    "// into the second-level cache, from an address that need not exist",
    "#define KGT_PREFETCH(at) __builtin_prefetch((const void *)(ulong)(at), 0, 2)",
)
PREFETCH_NEAR = (
    "// the same into the first-level cache",
    "#define KGT_PREFETCH_NEAR(at) __builtin_prefetch((const void *)(ulong)(at), 0, 3)",
)
