# SPDX-License-Identifier: MIT
"""Boundaries: what lies outside the domain, per field, axis and side.

Axis 0 is extended first, then axis 1 over that, and so on: the last axis decides corners.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from controllers.program.expression import Expression, Node
from controllers.program.rule import (
    KEEP,
    PERIODIC,
    Custom,
    Extrapolate,
    Fixed,
    Inside,
    Keep,
    Mirror,
    Periodic,
    Rule,
    Value,
    custom,
    extrapolate,
    fixed,
    keep,
    mirror,
    rule_of,
)
from hitmap.argument import short
from hitmap.shape import Shape

__all__ = [
    "KEEP", "KEPT", "PERIODIC", "Boundary", "Custom", "Extrapolate", "Fixed", "Inside", "Keep",
    "Mirror", "Periodic", "Rule", "Side", "Spelling", "Value", "closed", "custom", "extrapolate",
    "fixed", "keep", "mirror", "rule_of",
]  # fmt: skip

Side: TypeAlias = tuple[Rule, Rule]
Spelling: TypeAlias = "Rule | str | Sequence[Any] | Mapping[Any, Any]"


@dataclass(frozen=True)
class Boundary:
    """The rules of a field: per axis that of the lower and that of the upper side.

    Without axes it is keep on all of them.
    half: along which axes the field lies at half points, so that it has a point on either end;
        without any it lies at cells.
    extent: of a field that has so many elements whatever the domain is, as fields of items have.
    """

    axes: tuple[Side, ...] = ()
    half: tuple[bool, ...] = ()
    extent: tuple[int, ...] = ()

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
        return replace(
            self, axes=tuple((_of(low, name), _of(high, name)) for low, high in self.axes)
        )

    def placed(self, half: tuple[bool, ...]) -> Boundary:
        """The same for a field that lies at half points along these axes."""
        if not any(half):
            half = (False,) * len(self.axes)
        along = ((*side, at) for side, at in zip(self.axes, half))
        axes = tuple((low.placed(at), high.placed(at)) for low, high, at in along)
        return Boundary(axes or self.axes, half if any(half) else (), self.extent)

    def is_half(self, axis: int) -> bool:
        """Whether the field lies at half points along an axis."""
        return bool(self.half) and self.half[axis]

    def points(self, cells: Shape, periodic: Sequence[bool]) -> Shape:
        """The indices of the field over a domain: one more at half points, but on a ring.

        >>> str(Boundary(half=(False, True)).points(Shape((0, 0), (4, 8)), (False, False)))
        '[0:4, 0:9]'
        """
        if self.extent:
            return Shape.of_extent(self.extent)
        more = (self.is_half(axis) and not ring for axis, ring in enumerate(periodic))
        return cells.grow((0,) * cells.n_axes, tuple(map(int, more)))

    @property
    def walls(self) -> tuple[tuple[int, int], ...]:
        """The ends, as (axis, 0 or 1), on which the field is 0."""
        return tuple(
            (axis, upper)
            for axis, side in enumerate(self.axes)
            for upper, rule in enumerate(side)
            if rule.is_wall
        )

    def with_values(self, values: Mapping[Expression, Expression]) -> Boundary:
        """The same with other expressions for those of fixed values."""

        def of(rule: Rule) -> Rule:
            if isinstance(rule, Fixed) and isinstance(rule.value, Node):
                return Fixed(values[rule.value])
            return rule

        return replace(self, axes=tuple((of(low), of(high)) for low, high in self.axes))

    @property
    def values(self) -> tuple[Expression, ...]:
        """The expressions of fixed values."""
        rules = (rule for side in self.axes for rule in side)
        found = (rule.value for rule in rules if isinstance(rule, Fixed))
        return tuple(value for value in found if isinstance(value, Node))

    @property
    def extends(self) -> bool:
        """Whether any side has cells outside."""
        return any(rule.extends for side in self.axes for rule in side)

    @property
    def is_steady(self) -> bool:
        """Whether no cell outside ever changes."""
        return all(rule.is_steady for side in self.axes for rule in side if rule.extends)

    def _checked(self, n_axes: int) -> Boundary:
        if self.axes and len(self.axes) != n_axes:
            raise ValueError(f"a boundary of {len(self.axes)} axes, but there are {n_axes}")
        return self

    def __str__(self) -> str:
        def text(low: Rule, high: Rule) -> str:
            return str(low) if low == high else f"({low}, {high})"

        return ", ".join(text(*side) for side in self.axes) or "keep"


KEPT = Boundary()


def check_rings(boundaries: Mapping[str, Boundary], n_axes: int, program: str) -> None:
    """ValueError where an axis is periodic for one field and not for another."""
    for axis in range(n_axes):
        rings = [field for field, boundary in boundaries.items() if boundary.periodic(axis)]
        if rings and len(rings) < len(boundaries):
            raise ValueError(
                f"program {program!r}: axis {axis} is periodic for {', '.join(rings)} alone, but "
                f"an axis is a ring for all fields or for none; give all of them the same"
            )


def closed(
    given: Sequence[bool] | None, boundaries: Mapping[str, Boundary], n_axes: int
) -> tuple[bool, ...]:
    """Which axes are rings: those that the boundaries of fields say, and those that are `given`.

    ValueError where a field has other rules there.
    """
    own = tuple(any(one.periodic(axis) for one in boundaries.values()) for axis in range(n_axes))
    if given is None or len(given) != n_axes:
        return own if given is None else tuple(given)
    for axis, wraps in enumerate(given):
        for field, boundary in boundaries.items():
            rules = boundary.side(axis)
            if wraps and any(rule.extends for rule in rules):
                raise ValueError(
                    f"axis {axis} is to be periodic, but the field {field!r} has the boundary "
                    f"{' and '.join(map(str, rules))} there; leave out one of the two"
                )
    return tuple(bool(one or other) for one, other in zip(given, own))


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
