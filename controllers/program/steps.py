# SPDX-License-Identifier: MIT
"""Several time steps at once: how far they read, and which programs can do them."""
from __future__ import annotations

from controllers.program.expression import Coordinate, Index
from controllers.program.offsets import Offsets
from controllers.program.program import Program
from controllers.program.stage import Stage
from hitmap.shape import Shape


def can_combine(program: Program) -> bool:
    """Whether several steps can be one sweep: a single stage of a field that it reads, too.

    What lies outside that field must never change: no step in between could fill it.  No scalar
    that it uses may change from step to step, nor may it use indices or coordinates.
    """
    (stage, *more) = program.stages
    if more or program.renames or len(stage.updates) > 1 or program.changing:
        return False
    if any(field.half for field in program.fields):
        return False
    if any(isinstance(node, (Index, Coordinate)) for node in stage.given):
        return False
    return stage.writes in stage.fields_read and program.field(stage.writes).boundary.is_steady


def own_offsets(stage: Stage, field: str) -> tuple[tuple[int, ...], ...]:
    """The distinct offsets at which `stage` reads `field`, by first use."""
    return tuple(read.offset for read in stage.reads if read.field == field)


def own_ends(stage: Stage, field: str) -> Offsets:
    """Per axis, the first and the last offset at which `stage` reads `field`."""
    return tuple((min(axis), max(axis)) for axis in zip(*own_offsets(stage, field)))


def offsets_read(stage: Stage, field: str, count: int) -> Shape:
    """A box of offsets: all that `count` steps, over 1, may read of `field` around a cell."""
    cell = Shape.of_extent((1,) * len(stage.offsets))
    if field == stage.writes:
        return grown(stage, cell, count)
    around = grown(stage, cell, count - 1)
    low, high = zip(*own_ends(stage, field))
    return around.shift(low).hull(around.shift(high))


def own_reach(stage: Stage) -> Offsets:
    """Per axis, the cells that `stage` reads of its own field below and above a computed cell.

    ValueError where it reads none.

    >>> from controllers.language.weights import Stencil
    >>> own_reach(Stencil.of("s", [(-2, 1)], [1, 0, 0, 1], 2).program("float32").stages[0])
    ((2, 1),)
    """
    offsets = own_offsets(stage, stage.writes)
    if not offsets:
        raise ValueError(
            f"stage {stage.name!r} does not read the field {stage.writes!r} that it writes: "
            f"several steps give what one gives; use 1 step per launch"
        )
    return tuple((max(0, -min(axis)), max(0, *axis)) for axis in zip(*offsets))


def grown(stage: Stage, box: Shape, count: int) -> Shape:
    """`box` with all that `count` steps reach in the field that the stage writes."""
    reach = own_reach(stage)
    low, high = tuple(count * low for low, _ in reach), tuple(count * high for _, high in reach)
    return box.grow(low, high)
