# SPDX-License-Identifier: MIT
"""Schedules: what a program is lowered to, a tree of sequences and repeats whose leaves are sweeps.

Which buffer holds which version is no part of it: that is `liveness`, and, while steps run, state
of the execution.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, Union

import numpy.typing as npt

from controllers.program.following import as_launched
from controllers.program.pieces import pieces
from controllers.program.program import Program
from controllers.program.stage import sample
from controllers.program.steps import cells_of, mirrors_of, why_single
from controllers.program.sweep import Sweep
from hitmap.shape import Shape

Arrays: TypeAlias = Mapping[str, "npt.NDArray[Any]"]


@dataclass(frozen=True)
class Sequence:
    """One part after another."""

    parts: tuple[Schedule, ...]


@dataclass(frozen=True)
class Repeat:
    """`body` again and again: `at_most` times, or until `until` holds of the fields after it.

    `until` makes a repeat depend on data; it is asked after each time.
    """

    body: Schedule
    at_most: int
    until: Callable[[Arrays], bool] | None = None

    def __post_init__(self) -> None:
        if self.at_most < 0:
            raise ValueError(f"a body is repeated 0 times or more, got {self.at_most}")


Schedule: TypeAlias = Union[Sweep, Sequence, Repeat]


def lowered(
    program: Program,
    domain: Shape,
    periodic: tuple[bool, ...],
    steps_per_launch: int = 1,
    launch_nbytes: float = 0,
) -> Sequence:
    """The sweeps of one step of `program`, in order; of so many time steps where that is over 1.

    One per stage, and what completes it (`pieces`); each reads the newest versions of before it.
    ValueError where several steps cannot be one sweep.
    """
    reason = why_single(program, domain) if steps_per_launch > 1 else ""
    if reason:
        raise ValueError(
            f"launches of {steps_per_launch} steps are for programs of one stage that reads the "
            f"field it writes, whose boundary is keep, periodic, mirror or a number, and uses "
            f"neither coordinates, indices, half points, OpenCL C nor scalars that change from "
            f"step to step; {program.name!r} needs 1 step per launch: {reason}"
        )
    program = as_launched(program, steps_per_launch)
    newest: dict[str, int] = {}
    parts = []
    for stage in program.stages:
        for group in pieces(program, stage, domain, periodic, launch_nbytes):
            for number, (piece, updated) in enumerate(group):
                own = updated & program.field(piece.home).boundary.points(domain, periodic)
                shorter = {
                    field for field in piece.fields_read
                    if own not in program.field(field).boundary.points(domain, periodic)
                }
                cells = cells_of(piece, updated, periodic, steps_per_launch)
                mirrors = mirrors_of(piece, program.boundaries, steps_per_launch)
                sweep = Sweep.of(piece, cells, steps_per_launch, newest, mirrors, shorter)
                parts.append(replace(sweep, completes=number > 0))
        newest |= {field: newest.get(field, 0) + 1 for field in stage.updates}
    return Sequence(tuple(parts))


def sweeps_of(program: Program) -> tuple[Sweep, ...]:
    """Those of one step on a small domain, for what depends on no cells, as kernels do."""
    return tuple(sweeps(lowered(program, sample(program.stages), program.periodic)))


def sweeps(schedule: Schedule) -> Iterator[Sweep]:
    """The leaves, in order, each once."""
    if isinstance(schedule, Sweep):
        yield schedule
    elif isinstance(schedule, Repeat):
        yield from sweeps(schedule.body)
    else:
        for part in schedule.parts:
            yield from sweeps(part)
