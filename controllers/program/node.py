# SPDX-License-Identifier: MIT
"""The nodes of expressions: reads, constants, operations; equal ones are one object.

`controllers.program.given` has the other leaves: scalars, indices and coordinates.
A node is known by a key: field and offset, number and its type, symbol and the very operands.  Who
builds it again gets the one that is there, for as long as somebody holds it.  So structure is
compared by `is`, and `==` builds a comparison, as all operators and NumPy's functions build nodes.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NoReturn, TypeVar, Union

import numpy as np
import numpy.typing as npt
from numpy.lib.mixins import NDArrayOperatorsMixin

from controllers.program.composed import composed
from controllers.program.functions import DTYPES, FUNCTIONS, Function, function_of
from controllers.program.interning import Known
from controllers.program.number import plain_number

N = TypeVar("N", bound="Node")
Symbol = str    # the name of a function: + or sqrt
_set = object.__setattr__   # nodes refuse theirs
# the mixin of NumPy 1.24 has no slots, so that it may be referred to weakly itself
_SLOTS = () if hasattr(NDArrayOperatorsMixin, "__weakref__") else ("__weakref__",)


def _build(self: Node, other: Any) -> Any:
    return NotImplemented   # so that `total += term` is total + term


class Node(NDArrayOperatorsMixin):
    """What all kinds of node share: operators and NumPy's functions build larger graphs."""

    __slots__ = _SLOTS
    __hash__ = object.__hash__
    is_condition = False    # what comparisons give; no value
    operands: tuple[Expression, ...] = ()
    __iadd__ = __isub__ = __imul__ = __itruediv__ = __iand__ = __ior__ = __ixor__ = _build
    __imatmul__ = __ifloordiv__ = __imod__ = __ipow__ = __ilshift__ = __irshift__ = _build

    def __array_ufunc__(
        self, ufunc: Callable[..., Any], method: str, *inputs: Any, **kwargs: Any
    ) -> Any:
        """What NumPy's functions and, by them, all operators do on nodes."""
        if any(_is_foreign(operand) for operand in inputs):
            return NotImplemented
        if method != "__call__" or kwargs:
            raise TypeError(
                f"np.{ufunc.__name__} on expressions takes operands alone, got "
                f"{', '.join(kwargs) or method}; leave it out"
            )
        return _applied(ufunc, inputs)

    def __array_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> Any:
        """The same for functions that NumPy does not call universal, as np.where."""
        if kwargs:
            raise TypeError(
                f"np.{func.__name__} on expressions takes operands alone, got "
                f"{', '.join(kwargs)}; leave it out"
            )
        return _applied(func, args)

    def astype(self, dtype: npt.DTypeLike) -> Application:
        """The same value in another dtype: integers wrap, floats become integers by truncation.

        Beyond the least and the largest integer they are these, and NaN is 0.
        """
        name = np.dtype(dtype).name
        if name not in DTYPES:
            raise ValueError(f"a value is converted to one of {', '.join(DTYPES)}, got {name!r}")
        return Application(name, self)    # type: ignore[arg-type]

    def __bool__(self) -> NoReturn:
        raise TypeError(
            "an expression has no truth value while a program is described, so `if`, `while`, "
            "`and`, `or`, `not`, `in` and a < b < c cannot ask for one; choose by "
            "where(condition, a, b), combine conditions by & | ~, compare structure by `is`"
        )

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"expressions cannot be changed, got a new {name!r}; build another")

    def __copy__(self: N) -> N:
        return self

    def __deepcopy__(self: N, memo: object) -> N:
        return self

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """A flat list of nodes, as graphs are deep; what is loaded is interned again."""
        numbers: dict[Node, int] = {}
        listed: list[tuple[Any, ...]] = []
        for node in ordered(self):  # type: ignore[arg-type]
            numbers[node] = len(listed)
            if isinstance(node, Application):
                operands = (numbers[operand] for operand in node.operands)
                listed.append((Application, node.symbol, *operands))
            else:
                listed.append((type(node), *(getattr(node, name) for name in node.__slots__)))
        return _loaded, (listed,)

    def __repr__(self) -> str:
        parts = (f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({', '.join(parts)})"


class Read(Node):
    """The value of `field` at the cell that is computed plus `offset` (cells per axis)."""

    __slots__ = ("field", "offset")
    _known: ClassVar[Known[Read]] = Known()

    field: str
    offset: tuple[int, ...]

    def __new__(cls, field: str, offset: tuple[int, ...]) -> Read:
        key = field, offset
        known = cls._known.get(key)
        found = None if known is None else known()
        if found is not None:
            return found
        new = object.__new__(cls)
        _set(new, "field", field)
        _set(new, "offset", offset)
        return cls._known.keep(key, new)


class Constant(Node):
    """A finite number; it is rounded once, to the dtype of what it meets.

    Whole numbers are kept exactly, for integers.  1 and 1.0 differ, and 0.0 and -0.0 do.
    """

    __slots__ = ("value",)
    _known: ClassVar[Known[Constant]] = Known()

    value: float

    def __new__(cls, value: float) -> Constant:
        value = plain_number(value)
        key = type(value), value or str(value)
        known = cls._known.get(key)
        found = None if known is None else known()
        if found is not None:
            return found
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"a constant must be a finite number, got {value}; replace it")
        new = object.__new__(cls)
        _set(new, "value", value)
        return cls._known.keep(key, new)


class Application(Node):
    """A function of the table on its operands, the left one evaluated first."""

    __slots__ = ("symbol", "operands")
    _known: ClassVar[Known[Application]] = Known()

    symbol: Symbol
    operands: tuple[Expression, ...]

    def __new__(cls, symbol: Symbol, *operands: Expression) -> Application:
        key = symbol, *map(id, operands)    # the node keeps its operands, so their ids stay theirs
        known = cls._known.get(key)
        found = None if known is None else known()
        if found is not None:
            return found
        if symbol not in FUNCTIONS:
            raise ValueError(f"a function is one of {' '.join(FUNCTIONS)}, got {symbol!r}")
        function = FUNCTIONS[symbol]
        if _kinds(operands) != function.takes:
            _refuse(function, operands)
        new = object.__new__(Condition if function.gives_condition else Application)
        _set(new, "symbol", symbol)
        _set(new, "operands", operands)
        return cls._known.keep(key, new)

    @property
    def left(self) -> Expression:
        """The first operand."""
        return self.operands[0]

    @property
    def right(self) -> Expression:
        """The last operand."""
        return self.operands[-1]

    def __repr__(self) -> str:  # shallow: a graph may be deep
        kinds = (type(operand).__name__ for operand in self.operands)
        return f"<{FUNCTIONS[self.symbol].for_people.format(*kinds)}>"


class Condition(Application):
    """An operation that gives a condition; `Application` makes them."""

    __slots__ = ()
    is_condition = True


class Given(Node):
    """A value that no field holds and no text says; see `controllers.program.given`."""

    __slots__ = ()
    _known: ClassVar[Known[Given]]      # of each kind


Expression = Union[Read, Constant, Application, Given]
Operand = Union[Node, float]


def where(condition: Expression, if_true: Operand, if_false: Operand) -> Application:
    """One value or the other; both are computed, the one not chosen has no effect.

    >>> u = Read("u", (0,))
    >>> where(u < 0, -u, u)
    <where(Condition, Application, Read)>
    """
    made: Application = _applied(np.where, (condition, if_true, if_false))
    return made


def ordered(*expressions: Expression) -> list[Expression]:
    """All nodes, each once, operands before their operation, the left one first."""
    found: dict[Expression, None] = {}
    todo = [*reversed(expressions)]
    while todo:
        node, n_todo = todo[-1], len(todo)
        if node not in found:
            for operand in reversed(node.operands):
                if operand not in found:
                    todo.append(operand)
        if len(todo) == n_todo:     # all operands are found
            found[todo.pop()] = None
    return [*found]


def _applied(numpy: Callable[..., Any], operands: Sequence[Any]) -> Any:
    made = composed(numpy, tuple(operands))
    if made is not None:
        return made
    nodes = [*map(_node, operands)]
    function = function_of(numpy, [node.is_condition for node in nodes])
    if function is None:
        raise TypeError(
            f"np.{numpy.__name__} is no function of expressions, these are: "
            f"{' '.join(FUNCTIONS)}; write it with them"
        )
    return Application(function.name, *nodes)


def _node(operand: Operand) -> Expression:
    if isinstance(operand, Node):
        return operand  # type: ignore[return-value]
    return Constant(operand)


def _is_foreign(operand: object) -> bool:
    """Whether it is of another kind that has NumPy's functions: it may know what to do."""
    if isinstance(operand, (Node, np.ndarray, np.generic)):
        return False
    return getattr(type(operand), "__array_ufunc__", None) is not None


def _kinds(operands: Sequence[Expression]) -> tuple[bool, ...]:
    """Of each operand, whether it is a condition; TypeError where one is no node."""
    try:
        return tuple([operand.is_condition for operand in operands])
    except AttributeError:
        raise TypeError(f"an operand of a function is a node, got one of {operands}") from None


def _refuse(function: Function, operands: Sequence[Expression]) -> NoReturn:
    what = f"{function.name!r} takes"
    for operand, condition in zip(operands, function.takes):
        if condition and not operand.is_condition:
            raise TypeError(f"{what} a condition, got the value {operand}; compare it, as u != 0")
        if operand.is_condition and not condition:
            raise TypeError(
                f"{what} values, got the condition {operand}; use where(condition, 1, 0)"
            )
    raise TypeError(f"{what} {len(function.takes)} operands, got {len(operands)}")


def _loaded(listed: Sequence[tuple[Any, ...]]) -> Expression:
    nodes: list[Expression] = []
    for kind, *parts in listed:
        if kind is Application:
            symbol, *operands = parts
            nodes.append(Application(symbol, *(nodes[number] for number in operands)))
        else:
            nodes.append(kind(*parts))
    return nodes[-1]
