# SPDX-License-Identifier: MIT
"""Several time steps at once: how far they read, and which programs can do them."""
from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from controllers.program.boundary import Mirror
from controllers.program.expression import Coordinate, Index
from controllers.program.following import leader, leading, why_not_followed
from controllers.program.mirrors import NO_MIRRORS, Mirrors
from controllers.program.offsets import Offsets
from controllers.program.program import Program
from controllers.program.stage import Boundaries, Stage
from hitmap.shape import Shape


def can_combine(program: Program, domain: Shape) -> bool:
    """Whether several steps can be one sweep."""
    return not why_single(program, domain)


def why_single(program: Program, domain: Shape) -> str:
    """Why several steps of a program cannot be one sweep; "" where they can.

    A single stage of a field that it reads, too, can; with the field that a step renames to what
    that was, which it reads at the cell alone.  What lies outside the field must never
    change, or be its mirror image: no step in between could fill it.  No scalar that is used may
    change from step to step, nor may the stage use indices, coordinates or OpenCL C.  What it
    folds is known of the last step of a run alone.

    >>> from controllers.language.weights import Stencil
    >>> from controllers.program.boundary import Boundary
    >>> program = Stencil.of("s", [(-2, 1)], [1, 0, 0, 1], 2).program("float32")
    >>> why_single(program, Shape((0,), (9,)))
    ''
    >>> program = program.with_boundaries({"u": Boundary.of("mirror", 1)})
    >>> why_single(program, Shape((0,), (9,)))
    'its stage reads 2 cells below and 1 above, where a mirror is on axis 0'
    """
    (stage, *more) = program.stages
    if program.rules.time_is_folded:
        return f"its time step is made of what it folds, {', '.join(program.folds)}"
    if program.repeats:
        return f"it repeats {program.repeats[0].name!r}"
    if more:
        return "the program has several stages"
    if program.renames and (reason := why_not_followed(program)):
        return reason
    stage = leading(stage)
    if len(stage.updates) != 1:
        several = f"several fields, {', '.join(stage.updates)}" if stage.updates else "no field"
        return f"its stage updates {several}"
    computed = stage.updated(domain, program.periodic, program.boundaries)
    stage = without_folds(stage)
    if stage.writes not in stage.fields_read:
        return f"its stage does not read the field that it writes, {stage.writes}"
    if program.changing:
        return f"scalars change from step to step, {', '.join(program.changing)}"
    if any(field.half for field in program.fields):
        return "fields lie at half points"
    if any(isinstance(node, (Index, Coordinate)) for node in stage.given):
        return "its stage uses indices or coordinates"
    if stage.elements:
        return "its stage is written in OpenCL C"
    boundary = program.field(stage.writes).boundary
    for axis in range(program.n_axes):
        for rule in boundary.side(axis):
            if rule.extends and not rule.is_steady and not isinstance(rule, Mirror):
                return f"what lies outside of {stage.writes} is {rule}"
    return _why_no_mirrors(stage, Mirrors.of(boundary, program.n_axes), domain, computed)


def _why_no_mirrors(stage: Stage, mirrors: Mirrors, domain: Shape, computed: Shape) -> str:
    """Why a launch cannot copy what lies behind mirrors from cells that it computes itself."""
    for axis, ((low, high), signs) in enumerate(zip(own_reach(stage), mirrors.signs)):
        keeps = (
            computed.lower[axis] > domain.lower[axis], computed.upper[axis] < domain.upper[axis]
        )  # fmt: skip
        if any(sign and kept for sign, kept in zip(signs, keeps)):
            return f"cells beside a mirror on axis {axis} keep their value"
        if any(signs) and low != high:
            return (
                f"its stage reads {low} cells below and {high} above, where a mirror is on axis "
                f"{axis}"
            )
        if any(signs) and domain.extent[axis] < low:
            return f"a mirror on axis {axis} shows more cells than there are"
    return ""


def without_folds(stage: Stage) -> Stage:
    """The same stage as it is computed where nobody asks for its folds; it updates fields."""
    return _without_folds(stage) if stage.folds else stage


@lru_cache(maxsize=64)      # stages are compared as objects by those who keep kernels
def _without_folds(stage: Stage) -> Stage:
    return replace(stage, folds={})


def own_offsets(stage: Stage, field: str) -> tuple[tuple[int, ...], ...]:
    """The distinct offsets at which `stage` reads `field`, by first use."""
    return tuple(read.offset for read in stage.reads if read.field == field)


def own_ends(stage: Stage, field: str) -> Offsets:
    """Per axis, the first and the last offset at which `stage` reads `field`."""
    return tuple((min(axis), max(axis)) for axis in zip(*own_offsets(stage, field)))


def offsets_read(stage: Stage, field: str, count: int) -> Shape:
    """A box of offsets: all that `count` steps, over 1, may read of `field` around a cell."""
    cell = Shape.of_extent((1,) * len(stage.offsets))
    if field == leader(stage):
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
    offsets = own_offsets(stage, leader(stage))
    if not offsets:
        raise ValueError(
            f"stage {stage.name!r} does not read the field {leader(stage)!r} that it writes: "
            f"several steps give what one gives; use 1 step per launch"
        )
    return tuple((max(0, -min(axis)), max(0, *axis)) for axis in zip(*offsets))


def grown(stage: Stage, box: Shape, count: int) -> Shape:
    """`box` with all that `count` steps reach in the field that the stage writes."""
    reach = own_reach(stage)
    low, high = tuple(count * low for low, _ in reach), tuple(count * high for _, high in reach)
    return box.grow(low, high)


def cells_of(stage: Stage, updated: Shape, periodic: tuple[bool, ...], count: int = 1) -> Shape:
    """The cells that `count` time steps of `stage` compute, of which one computes `updated`."""
    if count == 1:
        return updated
    beyond = grown(stage, updated, count)
    lower = (b if p else a for a, b, p in zip(updated.lower, beyond.lower, periodic))
    upper = (b if p else a for a, b, p in zip(updated.upper, beyond.upper, periodic))
    return Shape(tuple(lower), tuple(upper))


def mirrors_of(stage: Stage, boundaries: Boundaries, count: int) -> Mirrors:
    """Those of the field that `count` steps of a stage write; none for a single step."""
    if count == 1 or leader(stage) not in boundaries:
        return NO_MIRRORS
    return Mirrors.of(boundaries[leader(stage)], len(stage.offsets))
