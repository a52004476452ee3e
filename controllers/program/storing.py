# SPDX-License-Identifier: MIT
"""Stored values: which are written to memory before the stage that reads them, which computed anew.

What `stored` marks in an expression is the value itself, wherever it is kept; so both give the same
bits, and a program may be turned from one into the other.  Where storing pays, the value becomes a
temporary field and a stage of its own, a `Part` of the one that reads it.  Each place computes it
for all cells at which its own ones read it: nothing of it is exchanged, and beyond the domain it is
the expression of its inputs there, as if it were computed where it is read.
"""
from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Literal, TypeAlias

import numpy as np

from controllers.program.dtypes import applied, given_dtype
from controllers.program.expression import Expression, Read, reads
from controllers.program.functions import STORED
from controllers.program.identifier import MAX_LENGTH
from controllers.program.location import by_location
from controllers.program.neighbour import shifted
from controllers.program.offsets import Offsets
from controllers.program.pieces import computes_alike
from controllers.program.program import Field, Program
from controllers.program.repeat import moved
from controllers.program.stage import Part, Stage
from controllers.program.stored_values import (
    Worth,
    centred,
    cost_of,
    depths_of,
    hull_of,
    inside,
    is_of_element,
    replaced,
)

Storing = Literal["auto", "always", "never"]
Offset: TypeAlias = tuple[int, ...]
Seen: TypeAlias = dict[int, dict[Offset, None]]     # by reader, the offsets of its reads

# What devices of a kind compute while they move a byte; how many cells along the last axis, and
# along the last but two, an item of theirs computes together (docs/decisions/0038-..., 0052-...).
FLOPS_PER_BYTE = {"gpu": 2.0, "cpu": 0.5, "reference": 0.5}
TOGETHER = {"gpu": 2}


def with_temporaries(
    program: Program, storing: Storing = "auto", flops_per_byte: float = FLOPS_PER_BYTE["gpu"],
    together: int = 1,
) -> Program:  # fmt: skip
    """The same program, whose stored values are temporary fields where that pays.

    storing: "always" for all that are read at several offsets, "never" for none.
    flops_per_byte: operations that are as long as moving a byte.
    together: cells that share what they compute, along the last axis and the last but two.

    >>> from controllers.program.expression import Application
    >>> flux = Application(STORED, Read("u", (1,)) - Read("u", (0,)))
    >>> flow = Stage("flow", {"u": Read("u", (0,)) + flux - shifted(flux, (-1,))}, ((-1, 1),))
    >>> program = Program("flow", (Field("u", "float64"),), (flow,))
    >>> with_temporaries(program, "always")
    <Program flow: u float64; flow_stored_1 sets stored_1, flow sets u; 1 axes, math strict>
    >>> with_temporaries(program)
    <Program flow: u float64; flow sets u; 1 axes, math strict>
    """
    if not any(STORED in stage.operations for stage in program.stages):
        return program
    names = _Names(program)
    least = {"always": 0.0, "never": math.inf}.get(storing, flops_per_byte)
    worth = Worth(least, together if storing == "auto" else 1)
    divided: dict[Stage, tuple[Stage, ...]] = {}
    choices: list[str] = []
    for stage in program.stages:
        if stage not in divided:
            divided[stage] = _parts(program, stage, worth, names, choices)
    stages = tuple(part for stage in program.stages for part in divided[stage])
    repeats = moved(program.repeats, [len(divided[stage]) for stage in program.stages])
    return replace(
        program, stages=stages, temporaries=tuple(names.fields),
        choices=(*program.choices, *choices), repeats=tuple(repeats),
    )  # fmt: skip


def _parts(
    program: Program, stage: Stage, worth: Worth, names: _Names, choices: list[str]
) -> tuple[Stage, ...]:
    """What a stage becomes: stages that write temporary fields, and the rest of it."""
    if STORED not in stage.operations:
        return (stage,)
    names.free = [*names.fields]
    alike = computes_alike(program, stage)
    apart = (stage,) if alike else by_location(stage, program.boundaries)
    made = [_divided(program, one, worth, names, choices) for one in apart]
    stored = tuple(part for parts in made for part in parts[:-1])
    found = {name: value for *_, rest in made for name, value in rest.updates.items()}
    updates, folds = {name: found[name] for name in stage.updates}, made[0][-1].folds
    rest = replace(stage, updates=updates, folds=folds)
    if not stored:
        return (rest,)
    hull = hull_of(rest.expressions, len(stage.offsets))
    return *stored, Part(stage.name, updates, hull, folds, whole=stage)


def _divided(
    program: Program, stage: Stage, worth: Worth, names: _Names, choices: list[str]
) -> tuple[Stage, ...]:
    """The same of a stage that computes the same cells of all its fields."""
    n_before = len(names.fields)
    made = _Division(program, stage, worth, names)
    dtypes, floats = {**program.dtypes, **names.dtypes}, given_dtype(stage, program.dtypes)
    if any(part.given and given_dtype(part, dtypes) != floats for part in made.parts):
        del names.fields[n_before:]
        made = _Division(program, stage, Worth(math.inf), names)
        made.choices = [
            f"{stage.name}: stored values are computed where they are read, since alone they "
            f"would round what they are given to another dtype"
        ]
    choices += made.choices
    return made.parts


class _Names:
    """The temporary fields; those of one stage are dead before the next one, which reuses them."""

    def __init__(self, program: Program) -> None:
        self._taken = {*program.dtypes, *program.scalars, *(f"s_{one}" for one in program.scalars)}
        self.fields: list[Field] = []
        self.free: list[Field] = []

    @property
    def dtypes(self) -> dict[str, str]:
        """Their dtypes, by name."""
        return {one.name: one.dtype for one in self.fields}

    def of(self, dtype: str) -> str:
        """One that is free."""
        for found in self.free:
            if found.dtype == dtype:
                self.free.remove(found)
                return found.name
        names = (f"stored_{n}" for n in count(len(self.fields) + 1))
        made = Field(next(name for name in names if name not in self._taken), dtype)
        self.fields.append(made)
        return made.name


@dataclass
class _Reader:
    """What one sweep computes: the rest of the stage, or stored values for cells in a rim.

    updates: the values, by temporary field; those of the rest by number, as in `expressions`.
    """

    updates: dict[str, Expression]
    rim: Offsets


@dataclass
class _Group:
    """Stored values at one depth that are read within the same rim: one sweep, if they are stored.

    seen: where each value is read.
    """

    rim: Offsets
    seen: dict[Expression, Seen] = field(default_factory=dict)

    @property
    def n_offsets(self) -> int:
        """At how many offsets of all readers they are read."""
        return len({
            (reader, at) for seen in self.seen.values() for reader in seen for at in seen[reader]
        })  # fmt: skip

    def expanded(self, cells: Sequence[Offset]) -> Iterator[list[Expression]]:
        """By reader, what these cells compute if nothing is stored."""
        for reader in {reader: None for seen in self.seen.values() for reader in seen}:
            yield [
                shifted(value, tuple(map(sum, zip(at, cell))))
                for value, seen in self.seen.items() for at in seen.get(reader, ())
                for cell in cells
            ]  # fmt: skip


class _Division:
    """A stage divided: it is decided of each stored value, from the outermost ones inwards.

    parts: those that write temporary fields, the innermost ones first, and the rest.
    """

    def __init__(self, program: Program, stage: Stage, worth: Worth, names: _Names) -> None:
        self._stage, self._least = stage, worth.least
        self._cells = worth.cells(program.n_axes)
        self._dtypes, self._floats = program.dtypes, given_dtype(stage, program.dtypes)
        self._fields = names
        whole = dict(zip(map(str, range(len(stage.expressions))), stage.expressions))
        self._readers = [_Reader(whole, ((0, 0),) * len(stage.offsets))]
        self.choices: list[str] = []
        for depth in range(max([0, *depths_of(stage.expressions).values()]), 0, -1):
            self._decide(depth)
        self.parts = tuple(self._parts())

    def _parts(self) -> Iterator[Stage]:
        whole, n_stored = self._stage, len(self._readers) - 1
        for number in range(n_stored, 0, -1):
            reader = self._readers[number]
            name = _numbered(whole.name, n_stored + 1 - number)
            hull = hull_of(reader.updates.values(), len(whole.offsets))
            yield Part(name, reader.updates, hull, whole=whole, rim=reader.rim)
        yield whole.with_expressions([*self._readers[0].updates.values()])

    def _decide(self, depth: int) -> None:
        """Store the values so deep, or compute them where they are read."""
        known: dict[Expression, tuple[Expression, Offset]] = {}
        seen: dict[Expression, Seen] = {}
        for number, reader in enumerate(self._readers):
            for node, at in depths_of(reader.updates.values()).items():
                if at == depth:
                    known[node] = value, offset = centred(node)
                    seen.setdefault(value, {}).setdefault(number, {})[offset] = None
        groups: dict[Offsets, _Group] = {}
        for value, where in seen.items():
            rim = self._rim(where)
            groups.setdefault(rim, _Group(rim)).seen[value] = where
        names: dict[Expression, str] = {}
        for group in groups.values():
            names |= self._chosen(group)
        found = {
            node: Read(names[value], offset) if value in names else inside(node)
            for node, (value, offset) in known.items()
        }
        for reader in self._readers:
            reader.updates = dict(zip(reader.updates, replaced(reader.updates.values(), found)))
        for group in groups.values():
            updates = {names[value]: inside(value) for value in group.seen if value in names}
            if updates:
                self._readers.append(_Reader(updates, group.rim))

    def _rim(self, where: Seen) -> Offsets:
        """Per axis, the first and the last offset at which the cells of the whole read a value."""
        ends: list[Offsets] = []
        for reader, offsets in where.items():
            rim = self._readers[reader].rim
            ends += [
                tuple((low + step, high + step) for (low, high), step in zip(rim, at))
                for at in offsets
            ]
        return tuple((min(a for a, _ in axis), max(b for _, b in axis)) for axis in zip(*ends))

    def _chosen(self, group: _Group) -> dict[Expression, str]:
        """The names of those values of a group that are stored."""
        found = applied([*group.seen], self._dtypes, self._floats)[1]
        kind_of = {
            value: one.kind
            for value, one in zip(group.seen, found)
            if not one.kind.weak and not is_of_element(value)   # what no field says the dtype of
        }
        values, kinds = [*kind_of], [*kind_of.values()]
        group.seen = {value: group.seen[value] for value in values}
        if not values:
            return {}
        apart = sum(map(cost_of, group.expanded(self._cells))) // len(self._cells)
        saved = apart - cost_of(values)
        sizes = [np.dtype(kind.dtype).itemsize for kind in kinds]
        used = {read.field for read in reads(*values)}
        nbytes = 2 * sum(sizes) + sum(np.dtype(self._dtypes[name]).itemsize for name in used)
        pays = saved >= self._least * nbytes
        names = [self._fields.of(kind.dtype) for kind in kinds if pays and group.n_offsets > 1]
        self._tell(group, names, saved, nbytes)
        return dict(zip(values, names))

    def _tell(self, group: _Group, names: list[str], saved: int, nbytes: int) -> None:
        """Write down for people what becomes of a group."""
        several = len(group.seen) > 1
        what = f"{len(group.seen)} stored values are" if several else "a stored value is"
        they = "they are" if several else "it is"
        figures = f"{saved} operations, and {nbytes} bytes more to move, per cell"
        if names:
            text = f"{what} kept in {', '.join(names)}: that saves {figures}"
        elif group.n_offsets == 1:
            text = f"{what} computed where {they} read, at one offset alone"
        else:
            text = f"{what} computed again where {they} read: storing would save {figures}"
        self.choices.append(f"{self._stage.name}: {text}")


def _numbered(name: str, number: int) -> str:
    return f"{name[: MAX_LENGTH - 12].rstrip('_')}_stored_{number}"
