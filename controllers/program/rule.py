# SPDX-License-Identifier: MIT
"""Rules: what lies beyond one end of an axis, for one field.

A rule is a class with one method, `Rule.outside`: of which cells along its axis, inside the domain,
the cell so far beyond the end is made.  All else follows from the expression that it gives: what is
exchanged, what the reference computes and what devices do.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import prod
from typing import ClassVar, TypeAlias, Union

from controllers.program.expression import Constant, Expression, Node, Read, Scalar, walk
from hitmap.argument import function as check_function
from hitmap.argument import number, short, whole, wrong

Inside: TypeAlias = Callable[[int], Expression]
Value: TypeAlias = Union[Expression, float]


@dataclass(frozen=True)
class Rule:
    """What one side of an axis does for a field; rules are its subclasses."""

    extends: ClassVar[bool] = True      # whether cells outside exist, which `outside` gives

    @property
    def is_steady(self) -> bool:
        """Whether these never change."""
        return False

    @property
    def is_wall(self) -> bool:
        """Whether the field is 0 on the end itself, where it has a point."""
        return False

    def placed(self, half: bool) -> Rule:
        """The same for a field that has a point on the end itself, or a last cell before it."""
        return self

    def outside(self, inside: Inside, distance: int) -> Value:
        """The value of the cell `distance` cells beyond the end; 1 is the first one.

        `inside(k)` is the cell k cells before the end, on the same line; 0 is the last one.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class Keep(Rule):
    """Nothing lies outside: cells whose declared offsets leave the domain keep their value."""

    extends: ClassVar[bool] = False

    def __str__(self) -> str:
        return "keep"


@dataclass(frozen=True)
class Periodic(Rule):
    """The axis is a ring, for all fields; both sides have this rule."""

    extends: ClassVar[bool] = False     # what is beyond are cells of the domain

    def __str__(self) -> str:
        return "periodic"


@dataclass(frozen=True, eq=False)
class Fixed(Rule):
    """All cells outside have this value: a number, or an expression of coordinates and scalars."""

    value: Value

    def __post_init__(self) -> None:
        if not isinstance(self.value, Node):
            Constant(number(self.value, "fixed"))   # which is finite
        elif any(isinstance(node, Read) for node in walk(self.value)):
            raise ValueError(
                f"fixed: a value of coordinates and scalars, got one that reads cells, "
                f"{self.value}; use custom(...)"
            )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fixed) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    @property
    def _identity(self) -> tuple[object, ...]:
        """Equal expressions are one object; 0 is not -0."""
        value = self.value
        return (id(value),) if isinstance(value, Node) else (type(value), repr(value))

    @property
    def is_steady(self) -> bool:
        """Whether it has no scalars, which change."""
        value = self.value
        return not isinstance(value, Node) or not any(isinstance(n, Scalar) for n in walk(value))

    def outside(self, inside: Inside, distance: int) -> Value:
        return self.value

    def __str__(self) -> str:
        return f"fixed({self.value})"


@dataclass(frozen=True)
class Mirror(Rule):
    """The cells inside, seen in a mirror at the face of the last one, times `sign`, 1 or -1.

    components: the signs of some components of a field of structs, where they are others.
    half: whether the field has a point on that face: the mirror is there, and -1 makes it 0.
    """

    sign: int = 1
    components: tuple[tuple[str, int], ...] = ()
    half: bool = False

    def __post_init__(self) -> None:
        for name, sign in (("sign", self.sign), *self.components):
            if whole(sign, f"mirror: {name}") not in (1, -1):
                raise ValueError(f"mirror: {name} is 1 or -1, got {sign}; scale by custom(...)")

    @property
    def is_wall(self) -> bool:
        """Whether it is odd about a point of the field."""
        return self.half and self.sign < 0

    def placed(self, half: bool) -> Rule:
        return replace(self, half=half)

    def outside(self, inside: Inside, distance: int) -> Value:
        seen = inside(distance if self.half else distance - 1)
        return seen if self.sign == 1 else -seen

    def __str__(self) -> str:
        given = [*(["-1"] if self.sign < 0 else []), *(f"{n}={s}" for n, s in self.components)]
        return f"mirror({', '.join(given)})"


@dataclass(frozen=True)
class Extrapolate(Rule):
    """The polynomial of degree `order` through the last `order` + 1 cells goes on outside."""

    order: int

    def __post_init__(self) -> None:
        if whole(self.order, "extrapolate: order", 0) > 8:
            raise ValueError(f"extrapolate: the order is at most 8, got {self.order}")

    def outside(self, inside: Inside, distance: int) -> Value:
        """A sum with whole weights, the last cell first; for unsigned integers, too.

        >>> from controllers.program.node import Read
        >>> line = Extrapolate(1).outside(lambda k: Read("u", (k,)), 1)
        >>> line.left.left, line.right.left
        (Constant(value=2), Constant(value=1))
        """
        if self.order == 0:
            return inside(0)
        total: Value = _weight(self.order, distance, 0) * inside(0)
        for k in range(1, self.order + 1):
            weight = _weight(self.order, distance, k)
            total = total + weight * inside(k) if weight > 0 else total - -weight * inside(k)
        return total

    def __str__(self) -> str:
        return f"extrapolate({self.order})"


@dataclass(frozen=True)
class Custom(Rule):
    """What a function of the cells inside and the distance says; see `Rule.outside`."""

    function: Callable[[Inside, int], Value] = field(repr=False)     # its address is no text

    def __post_init__(self) -> None:
        check_function(self.function, "custom")

    def outside(self, inside: Inside, distance: int) -> Value:
        return self.function(inside, distance)

    def __str__(self) -> str:
        return f"custom({getattr(self.function, '__name__', 'a function')})"


KEEP, PERIODIC = Keep(), Periodic()
WORDS: dict[str, Callable[..., Rule]] = {     # with what may follow a colon
    "fixed": lambda value=None: KEEP if value is None else Fixed(float(value)),
    "periodic": lambda: PERIODIC,
    "keep": lambda: KEEP,
    "mirror": lambda sign=1: Mirror(int(sign)),
    "extrapolate": lambda order=0: Extrapolate(int(order)),
}


def keep() -> Rule:
    """Cells whose declared offsets leave the domain there keep their value (EPSILOD's rule)."""
    return KEEP


def fixed(value: Value) -> Rule:
    """The value of all cells outside: a number, or an expression of coordinates and scalars.

    An expression is that of each cell outside, at its own coordinates; `t` and all other scalars
    are those of the step that reads it.
    """
    return Fixed(value)


def mirror(sign: int = 1, **components: int) -> Rule:
    """The cells inside in a mirror at the face of the last one, times `sign`; 1 is Neumann's.

    components: other signs of some components of a field of structs, as `mirror(my=-1)`.
    """
    return Mirror(sign, tuple(components.items()))


def extrapolate(order: int = 0) -> Rule:
    """The polynomial through the last `order` + 1 cells goes on outside: 0 repeats the last one."""
    return Extrapolate(order)


def custom(function: Callable[[Inside, int], Value]) -> Rule:
    """What `function(inside, distance)` says of the cell so far outside; see `Rule.outside`.

    >>> wall = custom(lambda inside, distance: 2 * 0.5 - inside(distance - 1))  # 0.5 at the face
    """
    return Custom(function)


def rule_of(spelling: object) -> Rule:
    """A rule, or the word for one.

    >>> print(rule_of("mirror"), rule_of("fixed:0.5"), rule_of("fixed"))
    mirror() fixed(0.5) keep
    """
    if isinstance(spelling, Rule):
        return spelling
    if not isinstance(spelling, str):
        raise wrong("boundary", "a rule", spelling, "write fixed or periodic, or mirror()")
    word, *values = spelling.split(":")
    try:
        return WORDS[word](*values)
    except (KeyError, TypeError, ValueError):
        raise ValueError(
            f"a boundary is one of {', '.join(WORDS)}, perhaps with a number as mirror:-1, got "
            f"{short(spelling)}"
        ) from None


def _weight(order: int, distance: int, k: int) -> int:
    """Lagrange's weight of the cell k before the end; whole, as the cells are equally spaced."""
    others = [j for j in range(order + 1) if j != k]
    return prod(distance + j for j in others) // prod(j - k for j in others)
