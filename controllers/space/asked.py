# SPDX-License-Identifier: MIT
"""What is asked for of a workspace and of its arrays, checked."""
from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from controllers.program.functions import DTYPES
from controllers.settings.division import WEIGHTED, Division
from controllers.settings.execution import Execution
from controllers.settings.overrides import overrides
from hitmap.argument import short

MOST_AXES = 3


def checked(
    values: Any, split: int | None, dtype: npt.DTypeLike | None, usual: str | None
) -> str:
    """The dtype that an array gets; ValueError or TypeError where there is no such array.

    usual: that of arrays of floats.
    """
    if split not in (0, None) or isinstance(split, bool):
        raise ValueError(
            f"arrays are split by rows or whole at each place, got split={short(split)}; use "
            f"split=0 or split=None"
        )
    if not 1 <= len(values.shape) <= MOST_AXES:
        raise ValueError(
            f"arrays have 1 to {MOST_AXES} axes, got the shape {values.shape}; reshape it, or "
            f"use a number"
        )
    if dtype is not None:
        return dtype_of(dtype)
    if usual is not None and values.dtype.kind == "f":
        return usual
    return dtype_of(values.dtype)


def dtype_of(dtype: npt.DTypeLike) -> str:
    """Its name; TypeError where devices do not compute with it."""
    name: str = np.dtype(dtype).name
    if name not in DTYPES:
        raise TypeError(
            f"devices compute with {', '.join(DTYPES)}, got {name}; convert it, by astype or dtype="
        )
    return name


def division_of(division: Division) -> Division:
    """As it is said from outside; ValueError where it is no division of rows."""
    said = overrides().divided(division)
    if said.kind not in ("bands", *WEIGHTED[:1]) or said.align != 1:
        with overrides().answering():
            raise ValueError(
                f"the arrays of a workspace are split by rows, got {said.kind}; give weights, or "
                f"leave it out"
            )
    return said


def execution_of(execution: Execution) -> Execution:
    """As it is said from outside; ValueError where it is for computations alone."""
    said = overrides().executed(execution)
    with overrides().answering():
        if said.checked != "off":
            raise ValueError(
                f"check={said.check!r} watches the steps of a computation, and a workspace has "
                f"none; leave it out"
            )
        if said.chooses:
            raise ValueError(
                "devices='auto' chooses by the steps of a computation, and a workspace has none; "
                "name the devices, such as devices=['gpu', 'cpu']"
            )
    return said
