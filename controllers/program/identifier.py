# SPDX-License-Identifier: MIT
"""Names that may reach generated OpenCL C.

A name is an ASCII identifier of at most 48 characters, without two underscores in a row and without
one at either end, that is no reserved word, type or macro of OpenCL C.  Generated names are made
from it:

- a kernel is `kgt_NAME`, so a stencil may be called `sin`;
- a field `u` becomes `u`, `u_new`, `u_first`, `u_pitch_0` ...; so no field's name ends like these,
  nor is it a variable of the kernels themselves (`item`, `extent_0`, `start_0` ...).
"""
from __future__ import annotations

import re

from hitmap.argument import short as short
from hitmap.argument import wrong

MAX_LENGTH = 48  # with prefix and suffix it stays within the 63 characters that C99 distinguishes

_C99 = """
auto break case char const continue default do double else enum extern float for goto if inline
int long register restrict return short signed sizeof static struct switch typedef union
unsigned void volatile while asm typeof main NULL
"""
_OPENCL = """
kernel global local constant private generic pipe read_only write_only read_write uniform half
bool true false complex imaginary quad vec_step uchar ushort uint ulong size_t ptrdiff_t
intptr_t uintptr_t sampler_t event_t queue_t clk_event_t reserve_id_t ndrange_t memory_order
memory_scope image1d_t image1d_buffer_t image1d_array_t image2d_t image2d_array_t
image2d_depth_t image2d_array_depth_t image2d_msaa_t image2d_array_msaa_t image2d_msaa_depth_t
image2d_array_msaa_depth_t image3d_t MAXFLOAT HUGE_VALF HUGE_VAL INFINITY NAN CHAR_BIT CHAR_MAX
CHAR_MIN SCHAR_MAX SCHAR_MIN UCHAR_MAX SHRT_MAX SHRT_MIN USHRT_MAX INT_MAX INT_MIN UINT_MAX
LONG_MAX LONG_MIN ULONG_MAX linux unix
"""
RESERVED_WORDS = frozenset(_C99.split() + _OPENCL.split())

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)
_TYPE = re.compile(
    r"(char|uchar|short|ushort|int|uint|long|ulong|float|double|half|bool|quad)"
    r"(2|3|4|8|16)(x(2|3|4|8|16))?|(atomic|memory)_\w+|(cl|CL|CLK|FP|FLT|DBL|HALF|M|ATOMIC)_\w+"
)
_GENERATED = re.compile(
    r"kgt_\w*|item|t\d+|\w*_(new|first|pitch_\d+)|(c|extent|last|start|group|item|at)_\w*|get_\w+"
)


def check_identifier(name: str, what: str) -> str:
    """`name`, if it may reach generated code; `what` says in the error whose name it is.

    >>> check_identifier("jacobi_2d4", "stencil")
    'jacobi_2d4'
    >>> check_identifier("float4", "stencil")
    Traceback (most recent call last):
        ...
    ValueError: the name of a stencil cannot be 'float4', a word of OpenCL C; choose another name
    """
    return _checked(name, what, _fault(name))


def check_field_name(name: str) -> str:
    """`name`, if a field, which is a variable of generated kernels, may be called so.

    >>> check_field_name("rho")
    'rho'
    """
    taken = "which kernels use themselves" if _GENERATED.fullmatch(name) else ""
    return _checked(name, "field", _fault(name) or taken)


def _checked(name: str, what: str, fault: str) -> str:
    if fault:
        raise ValueError(
            f"the name of a {what} cannot be {short(name)}, {fault}; choose another name"
        )
    return name


def _fault(name: str) -> str:
    if not isinstance(name, str):
        raise wrong("a name", "a text", name, "write it in quotes")
    if len(name) > MAX_LENGTH:
        return f"which has {len(name)} characters, the limit is {MAX_LENGTH}"
    if not _WORD.fullmatch(name):
        return "which is not made of letters, digits and _ with a letter first"
    if "__" in name or name.endswith("_"):
        return "which has two _ in a row or one at the end"
    if name in RESERVED_WORDS or _TYPE.fullmatch(name):
        return "a word of OpenCL C"
    return ""
