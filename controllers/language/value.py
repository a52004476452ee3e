# SPDX-License-Identifier: MIT
"""Values: what fields and scalars are while a step is traced, and what is computed of them.

A value knows its expression and the axes that it lives on.  Operators and NumPy's functions build
larger ones; `u[i, j]` and `u.at("x", 1)` are neighbours, of expressions as of fields.  All that a
number or an array could do besides, and a value cannot, says so and what to write instead.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NoReturn, Union

import numpy as np
import numpy.typing as npt

from controllers.language.foldable import Foldable, folded, of_numpy
from controllers.language.half_points import Half, common, halves, moved, settled
from controllers.language.neighbour import MAX_NODES, check_count, shifted
from controllers.language.reduced import Reduced, folds_in, is_number
from controllers.language.refusals import Refusals
from controllers.program.coordinates import Coordinates
from controllers.program.expression import Application, Constant, Expression, Read, walk
from controllers.program.fold import CONDITIONS, FoldKind
from hitmap.argument import short, wrong

MAX_POWER = 16      # whole exponents up to it are products
_COMBINATIONS = (np.bitwise_and, np.bitwise_or, np.bitwise_xor)
_set = object.__setattr__   # values refuse theirs

Operand = Union["Value", float]


class Components(Refusals):
    """What values of structs are: an operand of theirs is not for `Value` to handle."""

    __slots__ = ()
    what = "a struct"


class Value(Foldable):
    """A number per cell, while a step is traced: a field, a scalar, or what is computed of them.

    half: along which axes it lies at half points; None where it lies nowhere yet.
    """

    __slots__ = ("depth", "half", "node", "places")
    __hash__: ClassVar[Any] = object.__hash__   # of `==`, which builds a comparison
    node: Expression
    places: Coordinates
    depth: int
    half: Half | None

    def __init__(
        self, node: Expression, places: Coordinates, depth: int = 0, half: Half | None = None
    ) -> None:
        _set(self, "node", node)
        _set(self, "places", places)
        _set(self, "depth", depth)
        _set(self, "half", half)

    def __array_ufunc__(
        self, ufunc: Callable[..., Any], method: str, *inputs: Any, **kwargs: Any
    ) -> Any:
        """What NumPy's functions and, by them, all operators do on values."""
        if any(isinstance(operand, Components) for operand in inputs):
            return NotImplemented
        if method != "__call__" or kwargs:
            used = ", ".join(kwargs) or method
            raise TypeError(
                f"np.{ufunc.__name__} on a field takes operands alone, got {used}; leave it out, "
                f"and write what you want by operands and np.where"
            )
        return applied(ufunc, inputs)

    def __array_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> Any:
        """The same for functions that NumPy does not call universal, as np.where."""
        if any(issubclass(kind, Components) for kind in types):
            return NotImplemented
        fold = of_numpy(func)
        if fold is not None:
            return folded(fold, func, args, kwargs)
        if kwargs:
            raise TypeError(
                f"np.{func.__name__} on a field takes operands alone, got {', '.join(kwargs)}; "
                f"give them by their places"
            )
        return applied(func, args)

    def __getitem__(self, offset: Any) -> Value:
        """The neighbour at so many cells along each axis, in their order."""
        steps = tuple(map(_step, offset if isinstance(offset, tuple) else (offset,)))
        axes = self.places.axes
        if len(steps) != len(axes):
            raise IndexError(
                f"a neighbour has one offset for each of the axes {', '.join(axes)}, got "
                f'{len(steps)}: {short(offset)}; along one axis it is f.at("{axes[-1]}", 1)'
            )
        return Value(shifted(self.node, steps), self.places, self.depth, self.half)

    def at(self, axis: str, step: float) -> Value:
        """The neighbour so many cells along an axis, by its name; half cells lie elsewhere.

        `p.at("x", 1/2)` of a value at cells lies at the half points of x: it is that of the cell
        above each; of a value at half points it lies at cells, and is that of the point above each.
        """
        twice = halves(step)
        if twice is None:
            return self[along(self.places.axes, axis, step)]
        node, half = moved(self.node, self.half, along(self.places.axes, axis, twice))
        return Value(node, self.places, self.depth, half)

    def astype(self, dtype: npt.DTypeLike) -> Value:
        """The same in another dtype: integers wrap, floats become integers by truncation."""
        return Value(self.node.astype(dtype), self.places, self.depth + 1, self.half)

    @property
    def what(self) -> str:  # type: ignore[override]
        """For people."""
        if not is_number(self.node):
            return "a field"
        return "a fold" if folds_in([self.node]) else "a scalar"

    def _folded(self, kind: FoldKind, where: Any) -> Value:
        node = self._reduced(kind, where).value
        return Value(node, self.places, 1 + node.is_condition)

    def _mean(self, where: Any) -> Value:
        total = self._reduced("sum", where)
        return Value(total / total.count, self.places, 2)

    def _reduced(self, kind: FoldKind, where: Any) -> Reduced:
        """A fold of this value; of a condition, where numbers are folded, of 1 and 0."""
        value = self
        if self.node.is_condition and kind not in CONDITIONS:
            value = applied(np.where, (self, 1, 0))
        elif kind in CONDITIONS and not self.node.is_condition:
            value = applied(np.not_equal, (self, 0))
        if not any(isinstance(node, Read) for node in walk(value.node)):
            raise ValueError(
                f"{kind} folds values of all cells, got {self.what}, {self.node}, which reads no "
                f"field; leave the fold out, or write it with NumPy of grid.coordinates(axis)"
            )
        over = [] if where is None else [where]
        for one in over:
            if not isinstance(one, Value) or not one.node.is_condition:
                raise wrong(f"{kind}: where", "a condition of cells", one, "compare, as in u > 0")
        half = common([one.half for one in (value, *over)], self.places.axes)
        assert half is not None, "it reads a field, which lies somewhere"
        condition = node_at(over[0], half) if over else None
        return Reduced(kind, node_at(value, half), condition, half)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):   # what Python and NumPy look for
            raise AttributeError(name)
        raise AttributeError(
            f"a field has no {name!r} while a step is traced, it has neighbours: u[0, 1] and "
            f'u.at("x", 1); the spacing is grid.dx, and functions are NumPy\'s, as np.abs(u)'
        )

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a field cannot get a {name!r}; use a variable of your own")

    def __repr__(self) -> str:
        if isinstance(self.node, Read) and not any(self.node.offset):
            return f"<field {self.node.field}>"
        return f"<{'a number' if is_number(self.node) else 'a value per cell'}: {self.node!r}>"


def places_of(*values: object) -> Coordinates | None:
    """Where the values live, if any of them is one; ValueError where they differ."""
    places: Coordinates | None = None
    for value in values:
        if isinstance(value, Value):
            if places is not None and value.places != places:
                raise ValueError(
                    f"the operands live on different grids, {places} and {value.places}; use the "
                    f"grid of the computation throughout"
                )
            places = value.places
    return places


def applied(function: Callable[..., Any], operands: Sequence[Any]) -> Any:
    """A function of NumPy's on operands some of which are values."""
    if function is np.positive:
        return operands[0]
    if function is np.power and _exponent(operands[1]) is not None:
        return _product(operands[0], int(operands[1]))
    if function is np.where and isinstance(operands[0], (bool, np.bool_)):
        return operands[1] if operands[0] else operands[2]
    places = places_of(*operands)
    if places is None:
        raise TypeError(
            f"np.{function.__name__} gets fields in a list or an array, and a step knows them one "
            f"by one; write what happens to each, and choose by np.where"
        )
    depth = 1 + max(operand.depth for operand in operands if isinstance(operand, Value))
    if depth > MAX_NODES:
        check_count(depth)
    of_truths = any(one.node.is_condition for one in operands if isinstance(one, Value))
    number = _truth if of_truths and function in _COMBINATIONS else plain
    half = common([one.half for one in operands if isinstance(one, Value)], places.axes)
    nodes = [node_at(one, half) if isinstance(one, Value) else number(one) for one in operands]
    return Value(function(*nodes), places, depth, half)


def node_at(value: Value, half: Half | None) -> Expression:
    """The expression of a value at a location: its own, or the one that what lies nowhere gets."""
    return value.node if half is None or value.half is not None else settled(value.node, half)


def along(axes: Sequence[str], axis: str, step: Any) -> tuple[Any, ...]:
    """The offset of so many cells along one of the axes."""
    if axis not in axes:
        raise ValueError(f"there is no axis {axis!r}; there are {', '.join(axes)}")
    return tuple(step if name == axis else 0 for name in axes)


def _step(value: Any) -> int:
    if isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_)):
        return int(value)
    if isinstance(value, Value):
        raise IndexError(
            "an offset is a constant whole number, got a value of the step, which differs from "
            "cell to cell; write out the neighbours, and choose by np.where"
        )
    got = "a slice" if isinstance(value, slice) else f"{type(value).__name__} {short(value)}"
    remedy = (
        'half cells are for staggered fields, and lie elsewhere: u.at("x", 1/2)'
        if isinstance(value, (float, np.floating)) else
        "u[0, 1] is the next cell along the last axis, and u.at(\"x\", 1) the one along x"
    )  # fmt: skip
    raise IndexError(f"an offset is a constant whole number, got {got}; {remedy}")


def plain(operand: Any) -> Any:
    """Truth values are 0 and 1 here, as in NumPy's arithmetic; all else is as it is."""
    if isinstance(operand, np.ndarray) and operand.ndim == 0:
        operand = operand[()]
    return int(operand) if isinstance(operand, (bool, np.bool_)) else operand


def _truth(operand: Any) -> Any:
    """A truth value as a condition, which conditions are combined with."""
    if isinstance(operand, (bool, np.bool_)):
        return Application("!=", Constant(int(operand)), Constant(0))
    return operand


def _exponent(value: Any) -> int | None:
    """A whole exponent that is small enough for products."""
    if isinstance(value, (int, float, np.integer, np.floating)) and value == value // 1:
        return int(value) if abs(value) <= MAX_POWER else None
    return None


def _product(value: Value, exponent: int) -> Any:
    """Products, whatever computes them: x^n is (x^(n/2))^2, times x where n is odd."""
    if exponent <= 0:
        one = Value(Constant(1), value.places, half=value.half)
        return one if exponent == 0 else one / _product(value, -exponent)
    result = value
    for bit in bin(exponent)[3:]:
        result = result * result
        if bit == "1":
            result = result * value
    return result


def is_value(value: object) -> bool:
    """Whether it is a value or a number, not a struct or anything else."""
    return isinstance(value, (Value, bool, int, float, np.generic))
