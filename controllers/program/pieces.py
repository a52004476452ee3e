# SPDX-License-Identifier: MIT
"""Stages in pieces: which updates of fields at unlike locations are computed together, and where.

All fields share most of their cells: there one sweep computes all of them, and reads once what they
share.  What single fields have beyond that, a row of points on an end, is computed by sweeps of its
own, which complete the first one.  On rings nothing is left for these.
"""
# docs/decisions/0050-fields-of-unlike-locations-are-one-sweep.md
from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from operator import and_
from typing import TypeAlias

from controllers.program.dtypes import given_dtype
from controllers.program.expression import Coordinate, Scalar
from controllers.program.location import by_location, name_of, only
from controllers.program.program import Program
from controllers.program.stage import Stage, sample
from hitmap.region import Region
from hitmap.shape import Shape

Piece: TypeAlias = tuple[Stage, Shape]      # what is computed, and in which cells


def pieces(
    program: Program,
    stage: Stage,
    domain: Shape,
    periodic: tuple[bool, ...],
    launch_nbytes: float = 0,
) -> tuple[tuple[Piece, ...], ...]:
    """What is computed of a stage: each group is one sweep, and what completes it.

    launch_nbytes: a launch of a few cells takes as long as moving so many bytes of the domain.

    >>> from controllers.program.boundary import Boundary
    >>> from controllers.program.expression import Read
    >>> from controllers.program.program import Field
    >>> p, v, rule = Read("p", (0,)), Read("v", (0,)), Boundary.of("mirror", 1)
    >>> flow = Stage("flow", {"p": p + v, "v": v * p}, ((0, 0),))
    >>> fields = Field("p", "float64", rule), Field("v", "float64", rule, (True,))
    >>> program, domain = Program("flow", fields, (flow,)), Shape.of_extent((9,))
    >>> for group in pieces(program, flow, domain, (False,)):
    ...     print([(one.summary, str(box)) for one, box in group])
    [('flow sets p, v', '[0:9]'), ('flow_of_v sets v', '[9:10]')]
    """
    parts = _parts(program, stage, domain, periodic)
    together = (*_together(stage, parts),)
    if len(parts) == 1 or _why_apart(program, stage, parts, together, launch_nbytes):
        return tuple((part,) for part in parts)
    return (together,)


def division(
    program: Program,
    stage: Stage,
    domain: Shape,
    periodic: tuple[bool, ...],
    launch_nbytes: float = 0,
) -> str:
    """For people: what `pieces` made of a stage, and why; "" where there was nothing to decide."""
    parts = _parts(program, stage, domain, periodic)
    if len(parts) == 1:
        return ""
    reason = _why_apart(program, stage, parts, (*_together(stage, parts),), launch_nbytes)
    where = " and ".join(", ".join(part.updates) for part, _ in parts)
    if reason:
        return f"{stage.name}: a sweep for each of {where}, which lie at unlike points, {reason}"
    return (
        f"{stage.name}: one sweep for {where}, which lie at unlike points: it moves "
        f"{nbytes(program, stage)} instead of {_sum_apart(program, parts)} bytes per cell"
    )


def _parts(
    program: Program, stage: Stage, domain: Shape, periodic: tuple[bool, ...]
) -> tuple[Piece, ...]:
    """By location, what is computed and where."""
    boundaries = program.boundaries
    return tuple(
        (part, part.updated(domain, periodic, boundaries))
        for part in by_location(stage, boundaries)
    )


def _why_apart(
    program: Program,
    stage: Stage,
    parts: Sequence[Piece],
    together: Sequence[Piece],
    launch_nbytes: float,
) -> str:
    """Why each location is a sweep of its own; "" where they are one."""
    boxes = [box for _, box in parts]
    if stage.folds and len({*boxes}) > 1:
        return f"since {', '.join(stage.folds)} is folded of the cells of {stage.home} alone"
    common = reduce(and_, boxes)
    if common.empty:
        return "since they have no cells in common"
    if any(isinstance(node, (Scalar, Coordinate)) for node in stage.given):
        if len({given_dtype(part, program.dtypes) for part, _ in parts}) > 1:
            return "since they round scalars or coordinates to unlike dtypes"
    saved = _sum_apart(program, parts) - nbytes(program, stage)
    if not saved:
        return "since that moves as many bytes"
    n_more = len(together) - len(parts)
    if n_more > 0 and saved * common.n_cells < n_more * launch_nbytes:
        return f"since {n_more} launches more take longer than {saved} bytes less per cell"
    return ""


def _sum_apart(program: Program, parts: Sequence[Piece]) -> int:
    return sum(nbytes(program, part) for part, _ in parts)


def computes_alike(program: Program, stage: Stage) -> bool:
    """Whether a stage computes the same cells of all its fields, and rounds what it is given alike.

    So it is on rings, wherever fields lie, and for any domain that is not too small.
    """
    domain = sample([stage])
    parts = _parts(program, stage, domain, program.periodic)
    whole = stage.updated(domain, program.periodic, program.boundaries)
    dtypes = {given_dtype(part, program.dtypes) for part, _ in parts}
    return {whole} == {box for _, box in parts} and len(dtypes) == 1


def nbytes(program: Program, stage: Stage) -> int:
    """Bytes to move for one cell: each field that a stage reads, and each that it writes."""
    return sum(map(program.itemsize, (*stage.fields_read, *stage.updates)))


def _together(stage: Stage, parts: Sequence[Piece]) -> Iterator[Piece]:
    """The cells of all parts, each once, with the updates of those that have it."""
    common = reduce(and_, (box for _, box in parts))
    yield stage, common
    every = Region.of(box for _, box in parts)
    left: dict[tuple[str, ...], Region] = {(): every - common}  # by the fields that have the cells
    for part, box in parts:
        both = {(*fields, *part.updates): cells & box for fields, cells in left.items()}
        left = {fields: cells - box for fields, cells in left.items()} | both
    for fields, cells in left.items():
        for box in cells.boxes:
            yield only(stage, fields, name_of(stage.name, fields)), box
