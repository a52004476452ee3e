# SPDX-License-Identifier: MIT
"""Stencils given as a pattern of weights: the first front end of `Program`.

new[i] = (sum of weight[o] * old[i + o] over the offsets o of the shape) / factor
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from controllers.language.dtype import dtype_name
from controllers.program.dtypes import Kind, stores
from controllers.program.expression import Application, Constant, Expression, Read
from controllers.program.functions import QUOTIENT, WIDENED
from controllers.program.identifier import check_identifier, short
from controllers.program.number import whole_number
from controllers.program.offsets import Offsets, check_offsets
from controllers.program.program import INTEGERS, Field, Program, Stage
from hitmap.argument import whole, wrong

MAX_WEIGHTS = 65536
FIELD = "u"
Pattern = Union[Sequence[Any], npt.NDArray[Any]]


@dataclass(frozen=True)
class Stencil:
    """A pattern of weights over a box of offsets, with one common factor that divides the sum.

    `shape` holds the inclusive first and last offset per axis (1 to 4 axes), `weights` one number
    per offset in C order.
    """

    name: str
    shape: Offsets
    weights: tuple[float, ...]
    factor: float

    def __post_init__(self) -> None:
        check_identifier(self.name, "stencil")
        check_offsets(self.shape, f"stencil {self.name!r}")
        if self._n_offsets > MAX_WEIGHTS or len(self.weights) != self._n_offsets:
            raise ValueError(
                f"stencil {self.name!r}: its shape {self.shape} has {self._n_offsets} offsets "
                f"(at most {MAX_WEIGHTS}), the pattern has {len(self.weights)} weights; "
                "give one per offset"
            )
        for value in (*self.weights, self.factor):
            if not math.isfinite(value):
                raise ValueError(
                    f"stencil {self.name!r}: weights and factor must be finite, got {value}; "
                    "write numbers within the range of float64"
                )
        if self.factor == 0:
            raise ValueError(
                f"stencil {self.name!r}: the factor divides the sum and cannot be 0; use 1"
            )
        if not any(self.weights):
            raise ValueError(f"stencil {self.name!r}: all weights are 0; give at least one other")

    @classmethod
    def of(
        cls,
        name: str,
        shape: Sequence[Sequence[int]] | None = None,
        pattern: Pattern = (),
        factor: float = 1,
    ) -> Stencil:
        """A stencil from plain numbers; `pattern` is flat (C order) or nested as the shape says.

        Without a shape it is nested, and odd along each axis: its middle is the cell itself.

        >>> Stencil.of("mean", [(-1, 1)], [1, 0, 1], 2).weights
        (1, 0, 1)
        >>> Stencil.of("sum", pattern=[[1, 2, 1]]).shape
        ((0, 0), (-1, 1))
        """
        what = f"stencil {str(name)!r}"
        nested = pattern.tolist() if isinstance(pattern, np.ndarray) else pattern
        ends = _ends_around_middle(nested, what) if shape is None else checked_ends(shape, what)
        extent = tuple(high - low + 1 for low, high in ends)
        weights = tuple(_number(value, what) for value in _flat(nested, extent, what))
        return cls(name, ends, weights, _number(factor, what))

    def __repr__(self) -> str:
        n_read = sum(weight != 0 for weight in self.weights)
        ends = " x ".join(f"({low}, {high})" for low, high in self.shape)
        return f"<Stencil {self.name}: {n_read} weights over {ends}, factor {self.factor}>"

    @property
    def n_axes(self) -> int:
        """Axes of the pattern, 1 to 4."""
        return len(self.shape)

    @property
    def _n_offsets(self) -> int:
        return math.prod(high - low + 1 for low, high in self.shape)

    def program(self, dtype: npt.DTypeLike) -> Program:
        """The program that applies this stencil to one field, "u", of `dtype`, however spelt.

        Weights and factor are rounded once to the dtype.  Terms are in C order and summed left to
        right from the first; weights that are zero then are skipped, a weight of 1 makes no
        product; one division by the factor ends it, none where the factor is 1.  Integer fields
        are computed as if in int64, the quotient truncated toward zero, the result wrapped to the
        dtype.  ValueError where the dtype is unknown or too narrow for the numbers, and where
        numbers for an integer dtype are not whole.

        >>> Stencil.of("mean", [(-1, 1)], [1, 0, 1], 2).program("float32").flops_per_cell
        2
        """
        dtype = dtype_name(dtype)
        with np.errstate(over="ignore", under="ignore"):
            weights = [self._rounded(weight, dtype) for weight in self.weights]
            factor = self._rounded(self.factor, dtype)
        if factor == 0 or not any(weights):
            raise ValueError(
                f"stencil {self.name!r}: {'all weights round' if factor else 'the factor rounds'} "
                f"to 0 in {dtype}; use a wider dtype or scale the numbers"
            )
        total: Expression | None = None
        for offset, weight in zip(product(*(range(a, b + 1) for a, b in self.shape)), weights):
            if weight:
                read: Expression = Read(FIELD, offset)
                if dtype in INTEGERS:
                    read = Application(WIDENED, read)
                term = read if weight == 1 else Application("*", Constant(weight), read)
                total = term if total is None else Application("+", total, term)
        assert total is not None, "some weight is not zero"
        divide = QUOTIENT if dtype in INTEGERS else "/"
        result = total if factor == 1 else Application(divide, total, Constant(factor))
        if dtype in INTEGERS and not stores(Kind("int64"), dtype):
            result = Application(dtype, result)
        stage = Stage(self.name, {FIELD: result}, self.shape)
        return Program(self.name, (Field(FIELD, dtype),), (stage,))

    def _rounded(self, value: float, dtype: str) -> float:
        if dtype in INTEGERS:
            number = "factor" if value == self.factor else "weight"
            return whole_number(value, dtype, f"stencil {self.name!r}: the {number}")
        rounded = float(np.dtype(dtype).type(float(value)))
        if not math.isfinite(rounded):
            raise ValueError(
                f"stencil {self.name!r}: {short(value)} is beyond the range of {dtype}; "
                "use a wider dtype or scale the numbers"
            )
        return rounded


def checked_ends(shape: Sequence[Sequence[int]], what: str) -> Offsets:
    """The pairs of a shape as plain numbers; ValueError, which names `what`, unless they are one.

    >>> checked_ends([[-1, 1]], "stencil 'mean'")
    ((-1, 1),)
    """
    if not isinstance(shape, (list, tuple, np.ndarray)):
        raise wrong(what, "a shape, one pair (first, last) per axis,", shape, "write [(-1, 1)]")
    ends = tuple(_pair(pair, what) for pair in shape)
    check_offsets(ends, what)
    return ends


def _ends_around_middle(pattern: Pattern, what: str) -> Offsets:
    """The offsets of a nested pattern whose middle is the cell itself."""
    extent, level = [], pattern
    while isinstance(level, (list, tuple)) and level:
        extent.append(len(level))
        level = level[0]
    if not extent or any(count % 2 == 0 for count in extent):
        raise ValueError(
            f"{what}: without a shape, the pattern is nested with odd numbers of weights, its "
            f"middle the cell itself; got {' x '.join(map(str, extent)) or short(pattern)}; give "
            f"a shape"
        )
    ends = tuple((-(count // 2), count // 2) for count in extent)
    check_offsets(ends, what)
    return ends


def _pair(pair: Sequence[int], what: str) -> tuple[int, int]:
    try:
        low, high = (whole(end, what) for end in pair)
    except (TypeError, ValueError):
        raise ValueError(
            f"{what}: the shape is one pair (first, last) of whole numbers per axis, "
            f"got {short(pair)}"
        ) from None
    return low, high


def _flat(pattern: Sequence[Any], extent: tuple[int, ...], what: str) -> Sequence[Any]:
    """The numbers of a flat or nested pattern; ValueError where nesting and `extent` differ."""
    if not isinstance(pattern, (list, tuple)):
        raise ValueError(f"{what}: the pattern is a list or tuple of weights, got {short(pattern)}")
    if not any(isinstance(part, (list, tuple)) for part in pattern):
        return pattern
    level: list[Any] = [pattern]
    for axis, count in enumerate(extent):
        for row in level:
            if not isinstance(row, (list, tuple)) or len(row) != count:
                got = f"{len(row)}" if isinstance(row, (list, tuple)) else short(row)
                raise ValueError(
                    f"{what}: on axis {axis} the nested pattern needs {count} entries, got {got}; "
                    f"give as many as the shape says"
                )
        level = [part for row in level for part in row]
    return level


def _number(value: object, what: str) -> float:
    if isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool):
        try:
            rounded = float(value)
        except OverflowError:
            raise ValueError(
                f"{what}: weights and factor must be within the range of float64, got "
                f"{short(value)}; scale it"
            ) from None
        return int(value) if isinstance(value, (int, np.integer)) else rounded
    raise ValueError(
        f"{what}: weights and factor are numbers, got {short(value)}; "
        "see the nesting of the pattern"
    )
