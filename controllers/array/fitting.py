# SPDX-License-Identifier: MIT
"""What operands of unlike kinds become where they meet: terms with the same positions.

Arrays of the host are spread over the places; distributed ones that do not lie cell by cell with
the others, as slices with steps, columns beside rows, and fields of other computations, are looked
at, and go the same way.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from controllers.array.arrays import Arrays
from controllers.array.operand import Frame, Operand
from controllers.array.promotion import converted
from controllers.array.reductions import Reduced
from controllers.array.term import Term
from controllers.program.functions import DTYPES

Matched: TypeAlias = tuple[Arrays, list[Any], Frame]     # terms and numbers


def matched(inputs: Sequence[Any]) -> Matched | None:
    """The terms of operands that lie cell by cell together, and numbers; None of others."""
    terms: list[Any] = []
    arrays = frame = None
    is_plain = True
    for one in inputs:
        if type(one) is float or type(one) is int:
            terms.append(one)
            continue
        if not isinstance(one, Reduced):
            if not isinstance(one, (np.integer, np.floating)):
                return None
            terms.append(one)
            is_plain = False
            continue
        operand = one.operand()
        if operand is None:
            return None
        term, its = operand
        if frame is None:
            arrays, frame = one.arrays, its
        elif arrays is not one.arrays or (its is not frame and its != frame):
            return None
        terms.append(term)
    if arrays is None or frame is None:
        return None
    return arrays, terms if is_plain else _weakened(terms), frame


def fitted(
    function: Callable[..., Any], inputs: Sequence[Any]
) -> Matched | list[Any]:
    """Terms and numbers with the positions that they share; or arrays, for NumPy to compute.

    ValueError where NumPy cannot repeat their shapes so that they fit.
    """
    given = [_plain(one) for one in inputs]
    first = next(one for one in given if isinstance(one, Reduced))
    arrays = first.arrays
    shapes = [one.shape for one in given if isinstance(one, (Reduced, np.ndarray))]
    shape = _common(function, shapes)
    operands = [_operand(one, arrays) for one in given]
    frames = [one[1] for one in operands if one is not None and one[1].shape == shape]
    if not frames:
        return [np.asarray(one) if isinstance(one, Reduced) else one for one in given]
    frame = frames[0]
    like = next(one[0] for one in operands if one is not None and one[1] == frame)
    terms: list[Any] = []
    for one, operand in zip(given, operands):
        if operand is not None and operand[1] == frame:
            terms.append(operand[0])
        elif isinstance(one, (Reduced, np.ndarray)):
            array = np.broadcast_to(np.asarray(one), shape)
            terms.append(arrays.held_array(_holdable(array), frame, like))
        else:
            terms.append(one)
    return arrays, _weakened(terms), frame


def _plain(one: Any) -> Any:
    """Lists become arrays, arrays without axes NumPy's numbers, and truth values 0 and 1."""
    if isinstance(one, (list, tuple)):
        one = np.asarray(one)
    if isinstance(one, np.ndarray) and one.ndim == 0:
        one = one[()]
    if isinstance(one, (bool, np.bool_)):
        return int(one)
    if isinstance(one, (Reduced, np.ndarray, int, float, np.integer, np.floating)):
        return one
    raise TypeError(
        f"operands of fields are numbers and arrays, got {type(one).__name__} {one!r:.60}; convert "
        f"it"
    )


def _operand(one: Any, arrays: Arrays) -> Operand | None:
    if not isinstance(one, Reduced):
        return None
    if one.arrays is not arrays:
        arrays.check_grid(one.arrays)
        return None
    return one.operand()


def _common(function: Callable[..., Any], shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        name = getattr(function, "__name__", "a function")
        raise ValueError(
            f"np.{name}: operands of the shapes {', '.join(map(str, shapes))} do not fit each "
            f"other; take slices of one shape"
        ) from None


def _holdable(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if array.dtype.name not in (*DTYPES, "bool"):
        raise TypeError(
            f"an array of {array.dtype} beside a field: devices compute with "
            f"{', '.join(DTYPES)}; convert it, by astype"
        )
    return array


def _weakened(terms: Sequence[Any]) -> list[Term | float]:
    """Python numbers in place of NumPy's, whose dtypes the terms that they meet get."""
    dtypes = [one.dtype for one in terms if isinstance(one, np.generic)]
    if dtypes:
        common = _common_dtype(
            tuple([one.kind.dtype for one in terms if hasattr(one, "kind")]), tuple(dtypes)
        )
        if common not in DTYPES:
            raise TypeError(
                f"a number of {dtypes[0]} beside a field makes {common}, which no field holds; use "
                f"a Python number"
            )
        terms = [
            converted(one, common) if hasattr(one, "kind") and one.kind.dtype != common else one
            for one in terms
        ]
    return [one.item() if isinstance(one, np.generic) else one for one in terms]


@cache
def _common_dtype(dtypes: tuple[str, ...], others: tuple[np.dtype[Any], ...]) -> str:
    return str(np.result_type(*map(np.dtype, dtypes), *others).name)


def with_whole_exponent(
    function: Callable[..., Any], inputs: Sequence[Any]
) -> tuple[Any, ...]:
    """2.0 as 2, which is a product, as NumPy computes it."""
    if function is np.power and isinstance(inputs[1], (float, np.floating)):
        if float(inputs[1]).is_integer():
            return inputs[0], int(inputs[1])
    return tuple(inputs)


def at_host(value: Any) -> Any:
    """Arrays in place of distributed ones, also in lists."""
    if isinstance(value, Reduced):
        return np.asarray(value)
    if isinstance(value, (list, tuple)) and any(isinstance(one, Reduced) for one in value):
        return type(value)(map(at_host, value))
    return value
