# SPDX-License-Identifier: MIT
"""Dtypes of fields, in any spelling of NumPy's."""
from __future__ import annotations

import numpy as np
import numpy.typing as npt

from controllers.program.program import DTYPES
from hitmap.argument import one_of, wrong


def dtype_name(dtype: npt.DTypeLike | None) -> str:
    """The name of a dtype of fields; TypeError where it is none, ValueError where no field has it.

    >>> dtype_name(np.float32), dtype_name("f4"), dtype_name(np.dtype("int64")), dtype_name(float)
    ('float32', 'float32', 'int64', 'float64')
    """
    try:
        name = "" if dtype is None else str(np.dtype(dtype).name)
    except TypeError:
        name = ""
    if not name:
        expected = f"one of {', '.join(DTYPES)}"
        raise wrong("dtype", expected, dtype, 'write np.float32 or "float32"')
    one_of(name, DTYPES, "the dtype")
    return name
