# SPDX-License-Identifier: MIT
"""Extensions: the cells outside a domain, as expressions of cells inside.

Each cell outside, one axis at a time, is what its rule says of cells on its line; one that a rule
finds beyond the other end is a cell outside itself, less far out, as in a mirror of a mirror.
"""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from typing import NamedTuple

from controllers.program.boundary import Boundary, Mirror, Rule, Side
from controllers.program.expression import Constant, Expression, Node, Read, walk
from controllers.program.scalars import scalars_in
from controllers.program.stage import Stage
from hitmap.argument import number, whole, wrong
from hitmap.region import Region
from hitmap.shape import Shape
from hitmap.strided import Geometry

MOST_CHECKED = 4    # distances at which a rule is tried as a program is made


@lru_cache(maxsize=1024)
def outside(rule: Rule, field: str, axis: int, n_axes: int, upper: bool, distance: int) -> Stage:
    """What gives the cells of `field` that lie `distance` cells beyond one end, as a stage.

    It reads along the axis alone, at the offsets from such a cell to those that its rule names.
    """

    def inside(k: int) -> Expression:
        step = distance + whole(k, "a boundary reads the cell before the end number", 0)
        along = -step if upper else step
        return Read(field, (0,) * axis + (along,) + (0,) * (n_axes - axis - 1))

    value = rule.outside(inside, distance)
    if not isinstance(value, Node):
        value = number(value, f"the boundary {rule} of {field!r}")
        is_whole = float(value).is_integer() and str(value) != "-0.0"
        value = Constant(int(value) if is_whole else value)     # which integer fields hold too
    if value.is_condition:
        raise wrong(f"the boundary {rule} of {field!r}", "a number", value, "use where(.., 1, 0)")
    reads = [node.offset[axis] for node in walk(value) if isinstance(node, Read)]
    ends = (min([0, *reads]), max([0, *reads]))
    offsets = [(0, 0)] * n_axes
    offsets[axis] = ends
    return Stage("outside", {field: value}, tuple(offsets))


def check_boundary(boundary: Boundary, field: str, n_axes: int, dtype: str) -> list[Stage]:
    """ValueError where rules do not suit a field; else what they compute near the ends."""
    for rule in (rule for side in boundary.axes for rule in side):
        if not isinstance(rule, Mirror):
            continue
        if rule.components:
            names = ", ".join(name for name, _ in rule.components)
            raise ValueError(f"field {field!r} has no components, and {rule} names {names}")
        if rule.sign < 0 and dtype.startswith("u"):
            raise ValueError(
                f"field {field!r} of {dtype} has no negative numbers, which {rule} makes; use "
                f"mirror(), or a signed dtype"
            )
    return _near(boundary, field, n_axes)


def scalars_of(boundary: Boundary, field: str, n_axes: int) -> set[str]:
    """The names of the scalars that rules use."""
    stages = _near(boundary, field, n_axes)
    return {name for stage in stages for name in scalars_in(*stage.updates.values())}


def _near(boundary: Boundary, field: str, n_axes: int) -> list[Stage]:
    """What rules compute near the ends; ValueError unless there are rules for all axes."""
    if boundary.axes and len(boundary.axes) != n_axes:
        raise ValueError(
            f"field {field!r} has a boundary of {len(boundary.axes)} axes, the program has "
            f"{n_axes}; give a pair of rules for each"
        )
    if boundary.half and len(boundary.half) != n_axes:
        raise ValueError(
            f"field {field!r}: half says True or False for each of the {n_axes} axes, got "
            f"{boundary.half}"
        )
    return [
        outside(rule, field, axis, n_axes, bool(upper), distance)
        for axis, side in enumerate(boundary.axes)
        for upper, rule in enumerate(side)
        if rule.extends
        for distance in range(1, MOST_CHECKED + 1)
    ]


@dataclass(frozen=True)
class Line:
    """A field along one axis of the domain: cells 0 to `length`, and what its rules say beyond.

    >>> from controllers.program.boundary import Mirror
    >>> line = Line("u", 0, 1, 2, (Mirror(), Mirror()))
    >>> [sorted(line.sources(at)) for at in range(-3, 5)]
    [[1], [1], [0], [0], [1], [1], [0], [0]]
    """

    field: str
    axis: int
    n_axes: int
    length: int
    rules: Side

    @property
    def extends(self) -> bool:
        """Whether it has any cell outside."""
        return any(rule.extends for rule in self.rules)

    def has(self, at: int) -> bool:
        """Whether there is such a cell, inside or outside."""
        return self.is_inside(at) or self.rules[at >= self.length].extends

    def is_inside(self, at: int) -> bool:
        """Whether it is a cell of the domain."""
        return 0 <= at < self.length

    def stage(self, at: int) -> Stage:
        """What gives a cell outside; ValueError where the domain is too short for its rule."""
        rule, distance = self.rules[at >= self.length], self._distance(at)
        stage = outside(rule, self.field, self.axis, self.n_axes, at >= self.length, distance)
        for read in stage.reads:
            seen = at + read.offset[self.axis]
            if self.is_inside(seen) or (self.has(seen) and self._distance(seen) < distance):
                continue
            raise ValueError(
                f"field {self.field!r}: {rule} needs cells on axis {self.axis} that lie beyond "
                f"its other end, which is {self.length} cells away; use a larger domain, or "
                f"another rule"
            )
        return stage

    def sources(self, at: int) -> frozenset[int]:
        """The cells inside that a cell is made of."""
        if self.is_inside(at):
            return frozenset([at])
        seen = (at + read.offset[self.axis] for read in self.stage(at).reads)
        return frozenset().union(*map(self.sources, seen))

    def _distance(self, at: int) -> int:
        return at - self.length + 1 if at >= self.length else -at


@dataclass(frozen=True)
class Extension:
    """The cells of `field` outside `domain`: which there are, and which cells they are made of.

    Only those in `within` are asked for.  A periodic axis goes on by cells of the domain.

    >>> from controllers.program.boundary import Boundary
    >>> both = Extension("u", Boundary.of("mirror", 2), Shape((0, 0), (3, 3)))
    >>> [str(box) for box in both.outside(Shape((-2, 1), (2, 2)))]
    ['[-2:0, 1:2]']
    >>> [str(box) for box in both.sources(Shape((-2, 1), (2, 2)))]
    ['[0:2, 1:2]']
    """

    field: str
    boundary: Boundary
    domain: Shape
    within: Shape | None = None
    periodic: tuple[bool, ...] = ()

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """The axes, in order."""
        n_axes, extent = self.domain.n_axes, self.domain.extent
        return tuple(
            Line(self.field, axis, n_axes, extent[axis], self.boundary.side(axis))
            for axis in range(n_axes)
        )

    @cached_property
    def is_timed(self) -> bool:
        """Whether they depend on scalars, so that each step has its own."""
        return bool(scalars_of(self.boundary, self.field, self.domain.n_axes))

    def distant(self, axis: int) -> tuple[int, ...]:
        """Where on an axis there are cells outside; 0 is the first one inside."""
        box, first = self.existing(self.within or self.domain), self.domain.lower[axis]
        line, every = self.lines[axis], range(box.lower[axis] - first, box.upper[axis] - first)
        return tuple(at for at in every if line.has(at) and not line.is_inside(at))

    def outside(self, box: Shape) -> tuple[Shape, ...]:
        """The cells of `box` outside the domain, as disjoint boxes."""
        box = self.existing(box)
        inside = box
        for axis, line in enumerate(self.lines):
            if line.extends:
                lower, upper = self.domain.lower[axis], self.domain.upper[axis]
                inside &= box.slab(axis, lower, upper)
        return (Region.of([box]) - inside).boxes

    def sources(self, box: Shape) -> tuple[Shape, ...]:
        """The cells inside, or beyond a periodic end, that the cells of `box` are made of."""
        box = self.existing(box)
        if box.empty:
            return ()
        axes = []
        for line, first, lower, upper in zip(
            self.lines, self.domain.lower, box.lower, box.upper
        ):
            lower, upper = lower - first, upper - first
            cells: set[int] = set()
            runs = [(max(lower, 0), min(upper, line.length))]
            if not line.extends:
                runs = [(lower, upper)]
            else:
                outer = (at for at in range(lower, upper) if not line.is_inside(at))
                cells = set().union(*map(line.sources, outer))
            axes.append([(a + first, b + first) for a, b in _joined(cells, runs)])
        return tuple(Shape(*map(tuple, zip(*runs))) for runs in product(*axes))

    def existing(self, box: Shape) -> Shape:
        """The cells of `box` that there are, inside or outside."""
        if self.within is not None:
            box &= self.within
        for axis, line in enumerate(self.lines):
            if self.periodic and self.periodic[axis]:
                continue
            low, high = line.rules
            first, last = self.domain.lower[axis], self.domain.upper[axis]
            lower = box.lower[axis] if low.extends else max(first, box.lower[axis])
            upper = box.upper[axis] if high.extends else min(last, box.upper[axis])
            box = box.slab(axis, lower, upper)
        return box


class Fill(NamedTuple):
    """Cells of a field outside its domain, which are made: those of `boxes`, in a tile.

    geometry: of the tile.  dtype: of its cells.
    """

    extension: Extension
    dtype: str
    geometry: Geometry
    boxes: tuple[Shape, ...]


def _joined(cells: Iterable[int], runs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Cells and runs of cells as disjoint runs."""
    found: list[tuple[int, int]] = []
    for first, last in sorted([*runs, *((cell, cell + 1) for cell in cells)]):
        if first >= last:
            continue
        if found and first <= found[-1][1]:
            found[-1] = found[-1][0], max(last, found[-1][1])
        else:
            found.append((first, last))
    return found
