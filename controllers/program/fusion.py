# SPDX-License-Identifier: MIT
"""Fusion: stages in a row that one sweep computes, where that keeps the bits and moves less.

What a stage writes and the next one reads in the same cell need not come from memory: its
expression takes the place of the read, converted as if it had been stored.  Together they must
compute the cells that they compute alone, and nothing that is exchanged or filled may lie between
them; so no read may be of another cell.  As with stored values, a program is turned into one of
the same meaning.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from typing import Literal

import numpy as np

from controllers.program.dtypes import Kind, applied, given_dtype
from controllers.program.expression import (
    Application,
    Constant,
    Coordinate,
    Expression,
    Read,
    Scalar,
    flops,
)
from controllers.program.hoisting import hoisted
from controllers.program.identifier import MAX_LENGTH
from controllers.program.location import by_location
from controllers.program.pieces import nbytes
from controllers.program.program import Program
from controllers.program.repeat import moved
from controllers.program.stage import Stage, sample
from controllers.program.stored_values import replaced
from hitmap.shape import Shape

Fusing = Literal["auto", "never"]
MOST_FLOPS = 512    # per cell of what is fused: twice what kernels of several steps may have


def fused(program: Program, fusing: Fusing = "auto") -> Program:
    """The same program, in which stages in a row are one where that moves fewer bytes.

    >>> u, v, after = Read("u", (0,)), Read("v", (0,)), Read("u", (1,))
    >>> push = Stage("push", {"v": v + after}, ((0, 1),))
    >>> move = Stage("move", {"u": u + v}, ((0, 1),))
    >>> from controllers.program.program import Field
    >>> wave = Program("wave", (Field("u", "float64"), Field("v", "float64")), (push, move))
    >>> fused(wave)
    <Program wave: u float64, v float64; push_move sets v, u; 1 axes, math strict>
    """
    if fusing == "never" or len(program.stages) == 1:
        return program
    fusion, ends = _Fusion(program), {n for one in program.repeats for n in (one.first, one.end)}
    stages, reasons, n_parts = [program.stages[0]], [""], [1]
    for number, second in enumerate(program.stages[1:], 1):
        made = "since one of them is repeated" if number in ends else fusion.of(stages[-1], second)
        if isinstance(made, str):
            stages.append(second)
            reasons.append(made)
        else:
            stages[-1] = made
        n_parts.append(int(isinstance(made, str)))
    names = fusion.names(stages)
    told = [fusion.text(stage, names) for stage in names]
    told += [
        f"{names[second]}: not in one sweep with {names[first]}, {reason}"
        for first, second, reason in zip(stages, stages[1:], reasons[1:])
    ]
    return replace(
        program, stages=tuple(replace(stage, name=names[stage]) for stage in stages),
        choices=(*program.choices, *filter(None, dict.fromkeys(told))),
        repeats=tuple(moved(program.repeats, n_parts)),
    )  # fmt: skip


class _Fusion:
    """What is known of pairs of stages: each is asked for once, as repeated ones are many."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._known: dict[tuple[Stage, Stage], Stage | str] = {}
        self._sources: dict[Stage, tuple[Stage, ...]] = {one: (one,) for one in program.stages}

    def of(self, first: Stage, second: Stage) -> Stage | str:
        """Both as one stage, or why they are not."""
        pair = first, second
        if pair not in self._known:
            self._known[pair] = self._made(first, second)
        return self._known[pair]

    def names(self, stages: list[Stage]) -> dict[Stage, str]:
        """Those of all stages; of what is fused, such as nothing else has."""
        found = {stage: stage.name for stage in stages if len(self._sources[stage]) == 1}
        for stage in dict.fromkeys(stages):
            if stage not in found:
                parts = dict.fromkeys(part.name for part in self._sources[stage])
                whole = "_".join(parts)[: MAX_LENGTH - 4].rstrip("_")
                every = (f"{whole}_{n}" if n > 1 else whole for n in count(1))
                found[stage] = next(name for name in every if name not in found.values())
        return found

    def text(self, stage: Stage, names: Mapping[Stage, str]) -> str:
        """For people: what a stage is made of, and why; "" where it is fused of none."""
        parts = self._sources[stage]
        if len(parts) == 1:
            return ""
        counts = Counter(part.name for part in parts).items()
        what = ", ".join(f"{name} {n} times" if n > 1 else name for name, n in counts)
        return (
            f"{names[stage]}: one sweep for {what}, which moves {self._nbytes(stage)} instead of "
            f"{sum(map(self._nbytes, parts))} bytes per cell"
        )

    def _made(self, first: Stage, second: Stage) -> Stage | str:
        reason = self._why_apart(first, second)
        if reason:
            return reason
        seen = {name: value for name, value in self._kept(first) if name in second.fields_read}
        here = (0,) * len(first.offsets)
        found: dict[Expression, Expression] = {
            Read(name, here): value for name, value in seen.items()
        }
        ends = zip(first.offsets, second.offsets)
        hull = tuple((min(a, b), max(last, end)) for (a, last), (b, end) in ends)
        later = replace(second, offsets=hull).with_expressions(replaced(second.expressions, found))
        updates, folds = {**first.updates, **seen, **later.updates}, {**first.folds, **later.folds}
        like = "" if updates else first.home
        made = Stage(first.name, updates, hull, folds, like)
        reason = self._why_not(made, first, second)
        if reason:
            return reason
        self._sources[made] = (*self._sources[first], *self._sources[second])
        return made

    def _why_apart(self, first: Stage, second: Stage) -> str:
        """What in the two of them forbids it."""
        written = first.updates
        for read in second.reads:
            if read.field in written and any(read.offset):
                return f"since it reads {read.field} at {read.offset}"
        for element in second.elements:
            if {*written} & {*element.field_of.values()}:
                return f"since {element.name} in OpenCL C takes what is in memory"
        for node in second.given:
            if isinstance(node, Scalar) and self._program.rules.needs([node.name]) & {*first.folds}:
                return f"since it uses {node.name}, which is made of what that one folds"
        return ""

    def _why_not(self, made: Stage, first: Stage, second: Stage) -> str:
        """What forbids it of the stage that they would be, or makes it useless."""
        program = self._program
        if not self._are_alike(made, first, second):
            return "since they compute unlike cells"
        floats = {given_dtype(part, program.dtypes) for part in self._parts(made)}
        rounded = (
            one for one in (*self._parts(first), *self._parts(second))
            if any(isinstance(node, (Scalar, Coordinate)) for node in one.given)
        )
        if any({given_dtype(one, program.dtypes)} != floats for one in rounded):
            return "since they round scalars or coordinates to unlike dtypes"
        if not self._dtypes(made) <= self._dtypes(first) | self._dtypes(second):
            return "since numbers alone would need another dtype"
        if hoisted((made,), program.scalars)[0] != (made,):
            return "since the host computes what is the same in all cells"
        n_flops = flops(made.operations)
        if n_flops > MOST_FLOPS:
            return f"since {n_flops} operations per cell are more than {MOST_FLOPS}"
        if self._nbytes(made) == self._nbytes(first) + self._nbytes(second):
            return "since that moves as many bytes"
        return ""

    def _kept(self, stage: Stage) -> list[tuple[str, Expression]]:
        """By field, the values of a stage as a read of them gives."""
        dtypes = self._program.dtypes
        kept: list[tuple[str, Expression]] = []
        values = applied([*stage.updates.values()], dtypes, given_dtype(stage, dtypes))[1]
        for (field, expression), value in zip(stage.updates.items(), values):
            if value.number is not None:
                expression = Constant(np.dtype(dtypes[field]).type(value.number).item())
            if value.kind != Kind(dtypes[field]):
                expression = Application(dtypes[field], expression)
            kept.append((field, expression))
        return kept

    def _dtypes(self, stage: Stage) -> set[str]:
        """In which a stage computes, and those of what it reads and writes."""
        dtypes = self._program.dtypes
        operations, _ = applied(stage.expressions, dtypes, given_dtype(stage, dtypes))
        found = {dtypes[name] for name in (*stage.fields_read, *stage.updates)}
        return found | {name for one in operations for name in (one.dtype, one.result.dtype)}

    def _parts(self, stage: Stage) -> tuple[Stage, ...]:
        """By location, what a stage computes."""
        return by_location(stage, self._program.boundaries)

    def _are_alike(self, made: Stage, first: Stage, second: Stage) -> bool:
        """Whether both of two stages compute of each field what the stage made of them does.

        And what the second one reads the first one has computed, where it does: elsewhere a read
        gives the value of before.  Folds are of the cells of all fields.
        """
        domain = sample([made])
        written, kept, cells = (self._cells(one, domain) for one in (first, second, made))
        if made.folds or not (first.updates and second.updates):
            homes = {self._points(one, domain) for one in (made, first, second) if one.folds}
            return len({*written.values(), *kept.values(), *cells.values()}) == 1 == len(homes)
        return all(cells[field] == box for field, box in (*written.items(), *kept.items())) and all(
            kept[part.home] in written[field]
            for part in self._parts(second) for field in part.fields_read if field in written
        )  # fmt: skip

    def _cells(self, stage: Stage, domain: Shape) -> dict[str, Shape]:
        """By field, which cells a stage computes; of folds alone, by the field at home there."""
        program, found = self._program, dict[str, Shape]()
        for part in self._parts(stage):
            box = part.updated(domain, program.periodic, program.boundaries)
            found |= dict.fromkeys(part.updates or (part.home,), box)
        return found

    def _points(self, stage: Stage, domain: Shape) -> Shape:
        boundary = self._program.boundaries[stage.home]
        return boundary.points(domain, self._program.periodic)

    def _nbytes(self, stage: Stage) -> int:
        return nbytes(self._program, stage)
