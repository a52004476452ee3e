# SPDX-License-Identifier: MIT
"""OpenCL C that is written by hand: the files of kernels_cl."""
from __future__ import annotations

import importlib.resources
from collections.abc import Mapping
from functools import lru_cache

# of OpenCL, by their bytes: for bits that are moved or looked at, not numbers
UNSIGNED_TYPES = {1: "uchar", 2: "ushort", 4: "uint", 8: "ulong"}


@lru_cache
def fixed_source(name: str) -> str:
    """The text of `kernels_cl/NAME.cl`, a kernel that is written by hand."""
    return (importlib.resources.files("kernels_cl") / f"{name}.cl").read_text("utf-8")


def accessors(n_axes: int, macros: Mapping[str, str] | None = None) -> str:
    """kernels_cl/accessors.cl with its macros, and further ones, defined in front of it."""
    defined = {"AXES": str(n_axes), **(macros or {})}
    lines = (f"#define {name} {value}".rstrip() for name, value in defined.items())
    return "\n".join((*lines, fixed_source("accessors")))
