# SPDX-License-Identifier: MIT
"""Numbers that users write in expressions."""
from __future__ import annotations

import numpy as np


def plain_number(value: float) -> float:
    """A plain number; NumPy's are taken as such."""
    if type(value) in (float, int):
        return value
    if isinstance(value, (float, np.floating)):
        return float(value)
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, np.ndarray):
        raise TypeError(
            f"an operand is an expression or a number, got an array of shape {value.shape}; make "
            f"it a field of the program, and read that"
        )
    raise TypeError(f"an operand is a read, a constant, an operation or a number, got {value!r}")
