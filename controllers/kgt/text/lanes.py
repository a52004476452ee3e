# SPDX-License-Identifier: MIT
"""How many cells one C value holds, and how C names and converts such values.

A scalar is a vector of width 1.  Conversions between vectors are the built-in functions of OpenCL
C, or, with `clang`, the compiler's own: PoCL's wheel calls the former instead of inlining them,
and aborts on some of width 16.
"""
from __future__ import annotations

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


SCALAR = Lanes()
WIDTHS = (1, 2, 4)    # of the vectors that are used on GPUs

# Before functions of wide vectors.  clang warns that compilers disagree on how to pass such values;
# ours are always inlined.
WIDE = '#pragma clang diagnostic ignored "-Wpsabi"'

# C lines: a macro of clang's, for CPUs.
PREFETCH = (
    "// into the second-level cache, from an address that need not exist",
    "#define KGT_PREFETCH(at) __builtin_prefetch((const void *)(ulong)(at), 0, 2)",
)
