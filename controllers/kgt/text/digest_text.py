# SPDX-License-Identifier: MIT
"""The functions of kernels that take digests: kernels_cl/digest_term.cl, for CPUs digest_cells.cl.

`controllers/integrity/digest.py` says what a digest is.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from controllers.kgt.text.fixed import UNSIGNED_TYPES, fixed_source


def digest_functions(dtype: np.dtype[Any], *, in_vectors: bool, ahead: bool = False) -> str:
    """C text that stands before a kernel; it takes cells of a dtype.

    in_vectors: the function of cells of a row, in vectors, too.  ahead: which asks for cells.

    >>> print(digest_functions(np.dtype("float32"), in_vectors=True)[:65])
    #define KGT_CELL uint
    #define KGT_SIZE 4
    #define KGT_INFINITE 0x7
    """
    macros = {"KGT_CELL": UNSIGNED_TYPES[dtype.itemsize], "KGT_SIZE": str(dtype.itemsize)}
    if dtype.kind == "f":
        infinite, nan = (dtype.type(one).view(f"u{dtype.itemsize}") for one in (np.inf, np.nan))
        macros |= {"KGT_INFINITE": f"{infinite:#x}UL", "KGT_NAN": f"{nan:#x}UL"}
    if ahead:
        macros["KGT_AHEAD"] = ""
    defined = (f"#define {name} {value}".rstrip() for name, value in macros.items())
    files = ["digest_term", *(["digest_cells"] if in_vectors else [])]
    return "\n".join([*defined, *map(fixed_source, files)])
