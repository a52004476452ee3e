# SPDX-License-Identifier: MIT
"""The values of expressions in NumPy, each operation in the dtype that NumPy 2 gives it."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from controllers.program.arithmetic import converted
from controllers.program.dtypes import CONDITION, Kind, kind_of_number, signature
from controllers.program.expression import Expression, Given, Outcome, Read, Symbol, evaluate
from controllers.program.functions import FUNCTIONS


class KindValues(NamedTuple):
    """An array or a scalar of the kind's dtype; of a weak one also a plain number."""

    kind: Kind
    array: Any


def values_of(
    expression: Expression,
    read: Callable[[Read], npt.NDArray[Any]],
    dtype: str,
    given: Callable[[Given], Any] | None = None,
) -> npt.NDArray[Any]:
    """The values of an expression in a box of cells, as a field of `dtype` holds them.

    `read` returns, for each read, the array of the old values that the cells of the box see there:
    all of the box's extent, each of its field's dtype.  `given` returns int64 for an index, and for
    scalars and coordinates values of `given_dtype`.  The result may be one of these arrays itself,
    or one that is broadcast over the box.  Overflow, NaN and division by zero follow IEEE 754,
    without warnings; integers wrap.
    """

    def seen(node: Read) -> KindValues:
        array = read(node)
        return KindValues(Kind(array.dtype.name), array)

    def number(value: float) -> KindValues:
        return KindValues(kind_of_number(value), value)

    def weak(node: Given) -> KindValues:
        assert given is not None, f"{node} is given"
        values = given(node)
        return KindValues(Kind(values.dtype.name, weak=True), values)

    with np.errstate(all="ignore"):
        result = _evaluated(expression, seen, number, weak)
    return np.asarray(in_dtype(result, dtype))


def _evaluated(
    expression: Expression,
    read: Callable[[Read], KindValues],
    number: Callable[[float], KindValues],
    given: Callable[[Given], KindValues],
) -> KindValues:
    def specified(node: Outcome, operands: object) -> KindValues:
        return _evaluated(node.specified(), read, number, given)

    return evaluate(expression, read, number, operation, given=given, outcome=specified)


def operation(symbol: Symbol, *operands: KindValues) -> KindValues:
    """In the dtype that `signature` says, which all values are converted to before."""
    function = FUNCTIONS[symbol]
    dtype, kind = signature(function, [operand.kind for operand in operands])
    arrays = [one.array if one.kind == CONDITION else in_dtype(one, dtype) for one in operands]
    if function.converts:
        return KindValues(kind, converted(arrays[0], function.converts))
    result = np.asarray(function.computed(whole=Kind(dtype).whole)(*arrays))
    assert result.dtype == kind.dtype, f"{symbol} gives {result.dtype} instead of {kind.dtype}"
    return KindValues(kind, result)


def in_dtype(values: KindValues, dtype: str) -> Any:
    """The same in another dtype; plain numbers are rounded once."""
    if isinstance(values.array, (int, float)):
        return np.dtype(dtype).type(values.array)
    return values.array if values.kind.dtype == dtype else converted(values.array, dtype)
