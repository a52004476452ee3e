# SPDX-License-Identifier: MIT
"""What the verbs of a controller are told of cells: which, of what dtype, with what values."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hitmap.argument import sizes_of, wrong
from hitmap.conversion import converted
from hitmap.shape import Shape

_KINDS = "biufcV"   # of dtypes: truth values, numbers, structures


def box_of_tile(cells: Shape | Sequence[int] | npt.NDArray[Any]) -> Shape:
    """The cells of a new tile; from the origin, where they are extents or those of an array."""
    if isinstance(cells, Shape):
        box = cells
    else:
        extent = cells.shape if isinstance(cells, np.ndarray) else sizes_of(cells, "box")
        box = Shape.of_extent(extent)
    if box.empty or not box.extent:
        raise ValueError(f"a tile needs at least one cell, got {box}; use a larger box")
    return box


def cell_dtype(dtype: npt.DTypeLike) -> np.dtype[Any]:
    """The dtype of the cells of a tile; TypeError where cells cannot be of it."""
    try:
        found = np.dtype(dtype)
    except TypeError:
        found = np.dtype(object)
    if dtype is None or found.kind not in _KINDS or found.hasobject or found.subdtype:
        raise wrong(
            "the dtype of a tile", "one of numbers or structs of them", dtype,
            'write one such as "float32", or np.dtype([("x", "f4"), ...], align=True)',
        )  # fmt: skip
    return found


def cell_values(
    values: npt.ArrayLike, extent: tuple[int, ...], dtype: np.dtype[Any]
) -> npt.NDArray[Any]:
    """New values of cells as an array of `extent` and `dtype`.

    ValueError where their shape is another or `dtype` cannot hold one of them, TypeError where they
    are no such values.
    """
    expected = f"numbers that {dtype} can hold" if dtype.kind != "V" else f"values of {dtype}"
    remedy = f"give an array of {extent}, or one number"
    try:
        array = np.asarray(values)
        if dtype.kind == "V" and not isinstance(values, (np.ndarray, np.generic)):
            array = np.asarray(values, dtype)   # tuples become structures
    except (TypeError, ValueError, OverflowError):
        raise wrong("values", expected, values, remedy) from None
    suits = array.dtype.kind in "biufc" or array.dtype == dtype
    if not suits:
        raise wrong("values", expected, values, remedy)
    try:
        np.broadcast_to(array, extent)
    except ValueError:
        raise ValueError(
            f"values: {extent} cells cannot be given an array of {array.shape}; {remedy}"
        ) from None
    return converted(array, extent, dtype)
