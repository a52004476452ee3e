# SPDX-License-Identifier: MIT
"""Several time steps at once: what a launch of them reads, and which cells they compute.

A launch of T steps computes its cells from what lies T times the reach around them, so that halos
are exchanged once in T steps.  Cells that no step computes keep their value all the way.
"""
from __future__ import annotations

from dataclasses import dataclass

from controllers.program.expression import reads
from controllers.program.offsets import Offsets
from controllers.program.program import Program, Stage
from hitmap.shape import Shape


@dataclass(frozen=True)
class Steps:
    """What a launch advances: `count` time steps of those of its cells that lie in `computed`.

    `computed` is in the coordinates of the launched boxes; on a periodic axis it holds all that
    they need.
    """

    count: int
    computed: Shape

    @classmethod
    def of(cls, stage: Stage, count: int, domain: Shape, periodic: tuple[bool, ...]) -> Steps:
        """Those of `stage`, for boxes in `domain`."""
        if count == 1:
            return cls(1, stage.updated(domain, periodic))
        low, high = _reach(stage, count)
        beyond = [tuple(n * wraps for n, wraps in zip(end, periodic)) for end in (low, high)]
        return cls(count, stage.updated(domain, periodic).grow(*beyond))

    def needed(self, stage: Stage, over: Shape, n_left: int) -> Shape:
        """The cells to compute in a step, if `n_left` steps after it are to compute `over`."""
        return over.grow(*_reach(stage, n_left)) & self.computed

    def read(self, stage: Stage, field: str, over: Shape) -> Shape:
        """A box that holds all cells of `field` that may be read to compute `over`."""
        if self.count == 1:
            return _around(stage, field, over)
        if field != stage.writes:
            return _around(stage, field, self.needed(stage, over, self.count - 1))
        near = self.computed.grow(*_reach(stage, 1))
        return over.grow(*_reach(stage, self.count)) & near


def can_combine(program: Program) -> bool:
    """Whether several steps can be one launch: a single stage, which reads what it writes."""
    (stage, *more) = program.stages
    return not more and stage.writes in stage.fields_read


def offsets_read(stage: Stage, field: str, count: int) -> Shape:
    """A box of offsets: all that `count` steps, over 1, may read of `field` around a cell."""
    cell = Shape.of_extent((1,) * len(stage.offsets))
    if field == stage.writes:
        return cell.grow(*_reach(stage, count))
    return _around(stage, field, cell.grow(*_reach(stage, count - 1)))


def own_reach(stage: Stage) -> Offsets:
    """Per axis, the cells that `stage` reads of its own field below and above a computed cell.

    ValueError where it reads none.

    >>> from controllers.language.weights import Stencil
    >>> own_reach(Stencil.of("s", [(-2, 1)], [1, 0, 0, 1], 2).program("float32").stages[0])
    ((2, 1),)
    """
    offsets = [read.offset for read in reads(stage.expression) if read.field == stage.writes]
    if not offsets:
        raise ValueError(
            f"stage {stage.name!r} does not read the field {stage.writes!r} that it writes: "
            f"several steps give what one gives; use 1 step per launch"
        )
    return tuple((max(0, -min(axis)), max(0, *axis)) for axis in zip(*offsets))


def _reach(stage: Stage, count: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """How far `count` steps reach in the field that the stage writes: low and high, per axis."""
    reach = own_reach(stage)
    return tuple(count * low for low, _ in reach), tuple(count * high for _, high in reach)


def _around(stage: Stage, field: str, over: Shape) -> Shape:
    """A box that holds all cells of `field` that one step reads to compute `over`."""
    offsets = zip(*(read.offset for read in reads(stage.expression) if read.field == field))
    low, high = zip(*((min(axis), max(axis)) for axis in offsets))
    return over.shift(low).hull(over.shift(high))
