# SPDX-License-Identifier: MIT
"""Boundaries: what lies outside the domain, per field, axis and side.

A rule is a class with one method, `Rule.outside`: of which cells along its axis, inside the domain,
the cell so far beyond the end is made.  All else follows from the expression that it gives: what is
exchanged, what the reference computes and what devices do.  Axis 0 is extended first, then axis 1
over that, and so on: the last axis decides corners.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar, TypeAlias, Union

from controllers.program.node import Constant, Expression
from hitmap.argument import function as check_function
from hitmap.argument import number, short, whole, wrong

Inside: TypeAlias = Callable[[int], Expression]
Value: TypeAlias = Union[Expression, float]


@dataclass(frozen=True)
class Rule:
    """What one side of an axis does for a field; rules are its subclasses."""

    extends: ClassVar[bool] = True      # whether cells outside exist, which `outside` gives
    is_steady: ClassVar[bool] = False   # whether they never change

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


@dataclass(frozen=True)
class Fixed(Rule):
    """All cells outside have this value, at all times."""

    value: float
    is_steady: ClassVar[bool] = True

    def __post_init__(self) -> None:
        Constant(number(self.value, "fixed"))   # which is finite

    def outside(self, inside: Inside, distance: int) -> Value:
        return self.value

    def __str__(self) -> str:
        return f"fixed({self.value})"


@dataclass(frozen=True)
class Mirror(Rule):
    """The cells inside, seen in a mirror at the face of the last one, times `sign`, 1 or -1.

    components: the signs of some components of a field of structs, where they are others.
    """

    sign: int = 1
    components: tuple[tuple[str, int], ...] = ()

    def __post_init__(self) -> None:
        for name, sign in (("sign", self.sign), *self.components):
            if whole(sign, f"mirror: {name}") not in (1, -1):
                raise ValueError(f"mirror: {name} is 1 or -1, got {sign}; scale by custom(...)")

    def outside(self, inside: Inside, distance: int) -> Value:
        return inside(distance - 1) if self.sign == 1 else -inside(distance - 1)

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
        """A sum with whole weights, the last cell first.

        >>> line = Extrapolate(1).outside(lambda k: Read("u", (k,)), 1)
        >>> line.left.left, line.right.left
        (Constant(value=2), Constant(value=-1))
        """
        terms = [_weight(self.order, distance, k) * inside(k) for k in range(self.order + 1)]
        total, *more = [inside(0)] if self.order == 0 else terms
        for term in more:
            total = total + term
        return total

    def __str__(self) -> str:
        return f"extrapolate({self.order})"


@dataclass(frozen=True)
class Custom(Rule):
    """What a function of the cells inside and the distance says; see `Rule.outside`."""

    function: Callable[[Inside, int], Value]

    def __post_init__(self) -> None:
        check_function(self.function, "custom")

    def outside(self, inside: Inside, distance: int) -> Value:
        return self.function(inside, distance)

    def __str__(self) -> str:
        return f"custom({getattr(self.function, '__name__', 'a function')})"


Side: TypeAlias = tuple[Rule, Rule]
Spelling: TypeAlias = "Rule | str | Sequence[Any] | Mapping[Any, Any]"

KEEP, PERIODIC = Keep(), Periodic()
WORDS: dict[str, Callable[..., Rule]] = {     # with what may follow a colon
    "keep": lambda: KEEP,
    "periodic": lambda: PERIODIC,
    "fixed": lambda value=None: KEEP if value is None else Fixed(float(value)),
    "mirror": lambda sign=1: Mirror(int(sign)),
    "extrapolate": lambda order=0: Extrapolate(int(order)),
}


@dataclass(frozen=True)
class Boundary:
    """The rules of a field: per axis that of the lower and that of the upper side.

    Without axes it is keep on all of them.
    """

    axes: tuple[Side, ...] = ()

    def __post_init__(self) -> None:
        for axis, (lower, upper) in enumerate(self.axes):
            if (lower == PERIODIC) != (upper == PERIODIC):
                raise ValueError(
                    f"axis {axis} is {lower} below and {upper} above, but a ring has no ends; make "
                    f"both sides periodic, or none"
                )

    @classmethod
    def of(cls, spelling: Spelling, axes: int | Sequence[str]) -> Boundary:
        """The rules as users write them, for so many axes, or axes of these names.

        One rule for all axes; a mapping of axes, by number or name, to one rule or a pair (lower,
        upper), the axes left out being keep; or a sequence of one of these per axis.  A rule may be
        a word: "keep", "fixed" (which means keep), "periodic", "mirror", "fixed:0".

        >>> print(Boundary.of({"x": (Fixed(0), Mirror())}, ["y", "x"]))
        keep, (fixed(0), mirror())
        >>> print(Boundary.of("periodic", 2))
        periodic, periodic
        >>> Boundary.of({"z": "keep"}, ["y", "x"])
        Traceback (most recent call last):
        ValueError: boundary: there is no axis 'z'; the axes are 'y', 'x'
        """
        names = [*range(axes)] if isinstance(axes, int) else [*axes]
        if isinstance(spelling, Boundary):
            return spelling._checked(len(names))
        if isinstance(spelling, Mapping):
            return cls(tuple(_of_mapping(spelling, names)))
        if isinstance(spelling, Sequence) and not isinstance(spelling, str):
            entries = [*spelling]
            if len(names) == 1 and len(entries) == 2:   # the pair of the only axis
                entries = [tuple(entries)]
            if len(entries) == 1:
                entries *= len(names)
            if len(entries) != len(names):
                raise ValueError(
                    f"{len(names)} axes need one boundary, or one each, got {len(entries)}: "
                    f"{', '.join(map(str, entries))}"
                )
            return cls(tuple(map(_side, entries)))
        return cls((_side(spelling),) * len(names))

    def side(self, axis: int) -> Side:
        """The rules of both ends of an axis."""
        return self.axes[axis] if self.axes else (KEEP, KEEP)

    def periodic(self, axis: int) -> bool:
        """Whether an axis is a ring."""
        return self.side(axis)[0] == PERIODIC

    def component(self, name: str) -> Boundary:
        """The rules of one component of a field of structs."""
        return Boundary(tuple((_of(low, name), _of(high, name)) for low, high in self.axes))

    @property
    def extends(self) -> bool:
        """Whether any side has cells outside."""
        return any(rule.extends for side in self.axes for rule in side)

    def _checked(self, n_axes: int) -> Boundary:
        if self.axes and len(self.axes) != n_axes:
            raise ValueError(f"a boundary of {len(self.axes)} axes, but there are {n_axes}")
        return self

    def __str__(self) -> str:
        def text(low: Rule, high: Rule) -> str:
            return str(low) if low == high else f"({low}, {high})"

        return ", ".join(text(*side) for side in self.axes) or "keep"


KEPT = Boundary()


def keep() -> Rule:
    """Cells whose declared offsets leave the domain there keep their value (EPSILOD's rule)."""
    return KEEP


def fixed(value: float) -> Rule:
    """The value of all cells outside."""
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
        raise wrong("boundary", "a rule", spelling, "write fixed, periodic, or ct.mirror()")
    word, *values = spelling.split(":")
    try:
        return WORDS[word](*values)
    except (KeyError, TypeError, ValueError):
        raise ValueError(
            f"a boundary is one of {', '.join(WORDS)}, perhaps with a number as fixed:0, got "
            f"{short(spelling)}"
        ) from None


def _of_mapping(spelling: Mapping[Any, Any], names: Sequence[Any]) -> Iterator[Side]:
    known = [*names, *range(len(names))]
    for axis in spelling:
        if axis not in known:
            axes = ", ".join(map(repr, names))
            raise ValueError(f"boundary: there is no axis {axis!r}; the axes are {axes}")
    for number_, name in enumerate(names):
        given = [spelling[key] for key in dict.fromkeys((name, number_)) if key in spelling]
        if len(given) > 1:
            raise ValueError(
                f"boundary: axis {name!r} is given by name and by number; leave out one"
            )
        yield _side(given[0]) if given else (KEEP, KEEP)


def _side(spelling: object) -> Side:
    if isinstance(spelling, Sequence) and not isinstance(spelling, str):
        if len(spelling) != 2:
            raise ValueError(
                f"boundary: the sides of an axis are a pair (lower, upper), got {short(spelling)}"
            )
        return rule_of(spelling[0]), rule_of(spelling[1])
    return rule_of(spelling), rule_of(spelling)


def _of(rule: Rule, component: str) -> Rule:
    if isinstance(rule, Mirror):
        return Mirror(dict(rule.components).get(component, rule.sign))
    return rule


def _weight(order: int, distance: int, k: int) -> int:
    """Lagrange's weight of the cell k before the end; whole, as the cells are equally spaced."""
    others = [j for j in range(order + 1) if j != k]
    return prod(distance + j for j in others) // prod(j - k for j in others)
