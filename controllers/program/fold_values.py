# SPDX-License-Identifier: MIT
"""The values of folds in NumPy: what they mean, with no word on how devices compute them."""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias, Union

import numpy as np
import numpy.typing as npt

from controllers.program.dtypes import Dtypes, applied, given_dtype
from controllers.program.expression import Expression, Given, Read
from controllers.program.fold import CONDITIONS, FoldKind
from controllers.program.stage import Stage
from controllers.program.values import values_of
from hitmap.shape import Shape

Array: TypeAlias = "npt.NDArray[Any]"
Result: TypeAlias = Union[float, int, bool, np.generic]


class Operands(NamedTuple):
    """What one fold takes of a box of cells, arrays over it: operands, and which cells take part.
    """

    kind: FoldKind
    values: Array
    mask: Array


def operand_dtypes(stage: Stage, dtypes: Dtypes) -> dict[str, str]:
    """By fold, the dtype in which its operand is folded; bool where that is a condition.

    >>> from controllers.program.fold import Fold
    >>> n = Read("n", (0,))
    >>> folds = {"largest": Fold("max", n / 2), "any": Fold("any", n > 0)}
    >>> operand_dtypes(Stage("s", {}, ((0, 0),), folds), "int32")
    {'largest': 'float64', 'any': 'bool'}
    """
    floats = given_dtype(stage, dtypes)
    folded = [fold.operand for fold in stage.folds.values()]
    values = applied(folded, dtypes, floats)[1]
    return {name: value.kind.dtype for name, value in zip(stage.folds, values)}


def operands(
    stage: Stage,
    box: Shape,
    read: Callable[[Read], Array],
    given: Callable[[Given], Any] | None,
    dtypes: Dtypes,
) -> dict[str, Operands]:
    """What the folds of a stage take of the cells of a box; `read`, `given`: see `values_of`."""

    def over_box(expression: Expression, dtype: str) -> Array:
        return np.broadcast_to(values_of(expression, read, dtype, given), box.extent)

    everywhere = np.broadcast_to(np.True_, box.extent)
    each = operand_dtypes(stage, dtypes)
    return {
        name: Operands(
            fold.kind, over_box(fold.operand, each[name]),
            everywhere if fold.over is None else over_box(fold.over, "bool"),
        )
        for name, fold in stage.folds.items()
    }  # fmt: skip


def results_of(found: Mapping[str, Operands], box: Shape, domain: Shape) -> dict[str, Result]:
    """What the folds of a stage are, of a box of a domain that holds all cells that take part.

    ValueError for an extreme of no cells.
    """
    return {name: _result(name, one, box, domain) for name, one in found.items()}


def _result(name: str, one: Operands, box: Shape, domain: Shape) -> Result:
    values = one.values[one.mask]
    if one.kind == "sum":
        return exact_sum(values)
    if one.kind in CONDITIONS:
        return bool(values.any() if one.kind == "any" else values.all())
    if not values.size:
        raise ValueError(
            f"the fold {name!r} is the {one.kind} of no cells; let it cover some, by a larger "
            f"domain or another condition"
        )
    if one.kind.startswith("arg"):
        at = values.argmin() if one.kind == "argmin" else values.argmax()
        cell = np.argwhere(one.mask)[at] + box.lower - domain.lower
        return int(np.ravel_multi_index(tuple(cell), domain.extent))
    extreme: np.generic = values.min() if one.kind == "min" else values.max()
    if extreme == 0 and values.dtype.kind == "f":      # -0 is less than 0
        below = np.signbit(values[values == 0])
        is_below = below.any() if one.kind == "min" else below.all()
        extreme = values.dtype.type(-0.0 if is_below else 0.0)
    return extreme


def exact_sum(values: Array) -> float:
    """The sum of numbers without any rounding, rounded once to float64; NaN and inf as IEEE 754.

    >>> exact_sum(np.array([1e300, 1.0, -1e300])), exact_sum(np.array([2**53, 1, 1]))
    (1.0, 9007199254740994.0)
    >>> exact_sum(np.array([1e308, 1e308])), exact_sum(np.array([np.inf, -np.inf]))
    (inf, nan)
    """
    if values.dtype.kind != "f":
        return float(sum(values.tolist()))
    numbers = values.astype(np.float64)
    special = numbers[~np.isfinite(numbers)]
    if special.size:
        with np.errstate(invalid="ignore"):
            return float(special.sum())
    try:
        return math.fsum(numbers)
    except OverflowError:   # on the way, or in the end
        whole = sum(map(Fraction, numbers.tolist()), Fraction(0))
    try:
        return float(whole)
    except OverflowError:
        return math.inf if whole > 0 else -math.inf
