# SPDX-License-Identifier: MIT
"""Values on their way into a field and out of it: the one place where they change their form.

Into a field go values that fit: a float is rounded once to the field's dtype, what is beyond its
range is refused, and so is what is not whole in a field of integers.  Out of it comes one NaN:
which sign and payload a computed NaN has depends on devices and partitions.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt


def convert(
    cells: npt.NDArray[Any], target: npt.NDArray[Any], lower: Sequence[int] | None = None
) -> None:
    """Copy `cells` to `target`, of the same extent; ValueError where one does not fit.

    `lower` is the index of the first cell, for that error.

    >>> target = np.empty(2, np.uint8)
    >>> convert(np.array([1.0, 255.0]), target)
    >>> convert(np.array([1.5, 2.0]), target)
    Traceback (most recent call last):
    ValueError: cell (0) holds 1.5, but uint8 takes whole numbers from 0 to 255; use a wider ...
    """
    if target.dtype == cells.dtype:
        np.copyto(target, cells)
    elif target.dtype.kind in "iu":
        _into_integers(cells, target, lower)
    else:
        try:
            with np.errstate(over="raise"):
                np.copyto(target, cells, casting="same_kind")
        except FloatingPointError:
            with np.errstate(over="ignore"):
                beyond = np.isinf(cells.astype(target.dtype)) & ~np.isinf(cells)
            raise ValueError(_first(cells, beyond, target.dtype, lower)) from None
        except TypeError as error:
            raise ValueError(str(error)) from None


def converted(
    values: npt.ArrayLike, extent: tuple[int, ...], dtype: np.dtype[Any]
) -> npt.NDArray[Any]:
    """`values`, repeated to `extent`, as an array of `dtype`; ValueError where one does not fit.

    >>> converted(2, (3,), np.dtype("f4")).tolist()
    [2.0, 2.0, 2.0]
    """
    array = np.asarray(values, dtype if dtype.kind == "V" else None)    # structs: NumPy's rules
    target = array if array.dtype == dtype else np.empty(array.shape, dtype)
    if target is not array:
        convert(array, target)
    return np.broadcast_to(target, extent)


def _into_integers(
    cells: npt.NDArray[Any], target: npt.NDArray[Any], lower: Sequence[int] | None
) -> None:
    if cells.dtype.kind not in "iufb":
        raise ValueError(f"Cannot cast {cells.dtype} to {target.dtype}; give whole numbers")
    with np.errstate(invalid="ignore"):
        np.copyto(target, cells, casting="unsafe")
    if not np.array_equal(target, cells):
        raise ValueError(_first(cells, target != cells, target.dtype, lower))


def _first(
    cells: npt.NDArray[Any],
    wrong: npt.NDArray[np.bool_],
    dtype: np.dtype[Any],
    lower: Sequence[int] | None,
) -> str:
    """What does not fit, where, and what to do."""
    where = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
    first = lower or (0,) * wrong.ndim
    cell = ", ".join(str(int(n) + start) for n, start in zip(where, first, strict=True))
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        takes = f"whole numbers from {info.min} to {info.max}"
    else:
        takes = f"numbers up to {np.finfo(dtype).max:.3g}"
    return (
        f"cell ({cell}) holds {cells[where].item()!r}, but {dtype} takes {takes}; use a wider "
        f"dtype, such as float64, or other values"
    )


def with_one_nan(cells: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """`cells`, or a copy where a NaN is among them: each is then NumPy's own, without a payload.

    >>> odd = np.array([0xffc00001, 0x3f800000], np.uint32).view(np.float32)
    >>> [hex(bits) for bits in with_one_nan(odd).view(np.uint32).tolist()]
    ['0x7fc00000', '0x3f800000']
    """
    if cells.dtype.kind != "f" or not cells.size:
        return cells
    with np.errstate(invalid="ignore"):
        if not np.isnan(cells.min()):   # the quickest way to see that there is none
            return cells
    copy = np.array(cells)
    copy[np.isnan(copy)] = np.nan
    return copy
