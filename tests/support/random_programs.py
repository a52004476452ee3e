# SPDX-License-Identifier: MIT
"""Random programs of one to three fields and stages, and what they give.

A case follows from its number alone.  Its expressions are drawn as plain data (`Formula`), of which
`expression_of` makes those of the program; `cell_by_cell` computes with the data themselves.  Of
floats no value grows beyond 1, so that there is neither infinity nor NaN.
"""
from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from controllers.program.expression import Constant, Expression, Read, count
from controllers.program.program import INTEGERS, Field, Program, Stage
from controllers.program.reference import reference_run
from hitmap.shape import Shape

NAMES = ("u", "v", "old")
DTYPES = ("float32", "float64", "int16")
MAX_CELLS = {1: 60, 2: 300, 3: 500}     # about
MAX_REACH = {1: 3, 2: 2, 3: 1}
MAX_STEPS = 7

Offset = tuple[int, ...]
Ends = tuple[tuple[int, int], ...]
Formula = Union[float, tuple[str, Offset], tuple[str, "Formula", "Formula"]]
"""A number, a read (field, offset), or (symbol, left, right)."""


@dataclass(frozen=True)
class ProgramCase:
    """A program, the fields it starts with, and how many steps it makes."""

    program: Program
    formulas: tuple[Mapping[str, Formula], ...]     # of each stage: what its fields get
    arrays: dict[str, npt.NDArray[Any]]
    periodic: tuple[bool, ...]
    n_steps: int

    @property
    def extent(self) -> tuple[int, ...]:
        return self.arrays[self.program.fields[0].name].shape

    @cached_property
    def expected(self) -> dict[str, npt.NDArray[Any]]:
        """The fields after all steps, by the reference."""
        return reference_run(self.program, self.arrays, self.n_steps, self.periodic)

    @cached_property
    def kinds(self) -> frozenset[str]:
        """What the case is an example of, in words."""
        return frozenset((*_kinds_of_program(self.program), *_kinds_of_run(self)))


def random_program(number: int) -> ProgramCase:
    """Case `number`, the same every time."""
    rng = random.Random(number)
    n_axes, dtype = rng.randint(1, 3), rng.choice(DTYPES)
    names = rng.sample(NAMES, rng.randint(1, 3))
    renames = _random_renames(rng, names)
    writable = [name for name in names if name not in renames]
    if len(writable) > 1 and rng.random() < 0.4:
        writable.pop()      # which is only read
    drawn = _Drawn(rng, n_axes, dtype, names, {name for name in names if rng.random() < 0.7})
    stages, formulas = [], []
    for position in range(rng.randint(1, 3)):
        formulas.append(drawn.updates(writable))
        updates = {name: expression_of(formula) for name, formula in formulas[-1].items()}
        stages.append(Stage(f"stage_{position}", updates, drawn.offsets(formulas[-1])))
    renames = {new: old for new, old in renames.items() if _changes(old, stages, renames)}
    fields = tuple(Field(name, dtype) for name in names)
    program = Program(f"random_{number}", fields, tuple(stages), renames=renames)
    periodic = tuple(rng.random() < 0.5 for _ in range(n_axes))
    extent = _random_extent(rng, program, periodic)
    values = np.random.default_rng(number)
    arrays = {name: _random_array(values, dtype, extent) for name in names}
    return ProgramCase(program, tuple(formulas), arrays, periodic, rng.randint(0, MAX_STEPS))


def expression_of(formula: Formula) -> Expression:
    """The expression that a program evaluates."""
    if not isinstance(formula, tuple):
        return Constant(formula)
    if len(formula) == 2:
        return Read(*formula)
    symbol, left, right = formula[0], expression_of(formula[1]), expression_of(formula[2])
    return {
        "+": lambda: left + right,
        "-": lambda: left - right,
        "*": lambda: left * right,
        "/": lambda: left / right,
    }[symbol]()


class _Drawn:
    """Draws the updates of stages: of `names`, those in `near` are read at neighbours."""

    def __init__(
        self, rng: random.Random, n_axes: int, dtype: str, names: Sequence[str], near: set[str]
    ) -> None:
        self._rng, self._n_axes, self._names, self._near = rng, n_axes, names, near
        self._whole = dtype in INTEGERS

    def updates(self, writable: Sequence[str]) -> dict[str, Formula]:
        """What the fields that a stage writes, one or several of `writable`, get."""
        several = len(writable) > 1 and self._rng.random() < 0.7
        count = self._rng.randint(2, len(writable)) if several else 1
        targets = self._rng.sample(writable, count)
        only_here = self._rng.random() < 0.25
        if self._rng.random() < 0.04:
            return dict.fromkeys(targets, self._number())
        shared = self._product(only_here)
        updates = {}
        for target in targets:
            terms = [self._term(only_here) for _ in range(self._rng.randint(1, 4))]
            if several and self._rng.random() < 0.7:
                terms.insert(self._rng.randint(0, 1), shared)
            updates[target] = self._mean(terms)
        return updates

    def offsets(self, updates: Mapping[str, Formula]) -> Ends:
        """What the stage declares: all that it reads, and now and then more."""
        reads = [offset for formula in updates.values() for _, offset in reads_of(formula)]
        ends = []
        for axis in zip(*reads or [(0,) * self._n_axes]):
            more, below = self._rng.random() < 0.25, self._rng.randint(0, 1)
            ends.append((min(axis) - (more and below), max(axis) + (more and 1 - below)))
        return tuple(ends)

    def _read(self, only_here: bool) -> Formula:
        name, most = self._rng.choice(self._names), MAX_REACH[self._n_axes]
        if only_here or name not in self._near:
            return name, (0,) * self._n_axes
        return name, tuple(self._rng.randint(-most, most) for _ in range(self._n_axes))

    def _number(self) -> float:
        return self._rng.choice([1, 2, 3, -4, 7] if self._whole else [0.5, 1, -1 / 3, -0.7])

    def _product(self, only_here: bool) -> Formula:
        return "*", self._read(only_here), self._read(only_here)

    def _term(self, only_here: bool) -> Formula:
        """Of floats at most 1, where all that is read is."""
        kind = self._rng.randrange(8)
        if kind < 3:
            return self._read(only_here)
        if kind < 5:
            return "*", self._number(), self._read(only_here)
        if kind == 5:
            return self._product(only_here)
        if kind == 6:
            return self._number()
        divisor = self._product(only_here)
        return "/", self._read(only_here), divisor if self._whole else ("+", 2, divisor)

    def _mean(self, terms: Sequence[Formula]) -> Formula:
        total = terms[0]
        for term in terms[1:]:
            pair = (total, term) if self._rng.random() < 0.8 else (term, total)
            total = (self._rng.choice("+-"), *pair)
        if self._whole and self._rng.random() < 0.5:
            return total
        return ("/", total, len(terms)) if len(terms) > 1 else total


def reads_of(formula: Formula) -> Iterator[tuple[str, Offset]]:
    """All reads of a formula."""
    if isinstance(formula, tuple) and len(formula) == 2:
        yield formula
    elif isinstance(formula, tuple):
        yield from (*reads_of(formula[1]), *reads_of(formula[2]))


def _n_operations(expression: Expression) -> int:
    return sum(count(expression).values())


def _random_renames(rng: random.Random, names: Sequence[str]) -> dict[str, str]:
    """Nothing mostly, else an earlier level, two of them, or a swap; the first name is written."""
    if len(names) == 1 or rng.random() < 0.5:
        return {}
    u, *others = names
    if len(others) == 1 or rng.random() < 0.3:
        return {others[0]: u}
    v, w = others
    return rng.choice([{v: u, w: v}, {v: w, w: v}])


def _changes(old: str, stages: Sequence[Stage], renames: Mapping[str, str]) -> bool:
    """Whether its version is another one after the step: a rename would else give it two names."""
    return old in renames or any(old in stage.updates for stage in stages)


def _random_extent(
    rng: random.Random, program: Program, periodic: tuple[bool, ...]
) -> tuple[int, ...]:
    """Odd, mostly; sometimes so few cells that some of 5 places get none; some are computed."""
    mean = MAX_CELLS[program.n_axes] ** (1 / program.n_axes)
    extent = []
    for _ in range(program.n_axes):
        thin = rng.random() < 0.2
        extent.append(
            rng.randint(1, 4) if thin else 2 * rng.randint(int(mean / 4), int(mean / 2)) + 1
        )
    while program.updated(Shape.of_extent(tuple(extent)), periodic).empty:
        extent = [length + 1 for length in extent]
    return tuple(extent)


def _random_array(
    rng: np.random.Generator, dtype: str, extent: tuple[int, ...]
) -> npt.NDArray[Any]:
    if dtype in INTEGERS:
        ends = np.iinfo(dtype)
        return rng.integers(ends.min, ends.max, extent, dtype, endpoint=True)
    return rng.uniform(-1, 1, extent).astype(dtype)


def _kinds_of_program(program: Program) -> Iterator[str]:
    zero = (0,) * program.n_axes
    yield f"{len(program.fields)} fields"
    yield f"{len(program.stages)} stages"
    yield f"{program.n_axes} axes"
    yield program.dtype
    for field in (field.name for field in program.fields):
        writers = [n for n, stage in enumerate(program.stages) if field in stage.updates]
        readers = [n for n, stage in enumerate(program.stages) if field in stage.fields_read]
        near = any(any(offset) for offset in program.offsets(field))
        if readers and not near:
            yield "a field that is never read at neighbours"
        if near and not writers and field not in program.renames:
            yield "a field that is only read, at neighbours"
        if any(r <= w < later for w in writers for r in readers for later in readers):
            yield "old and new readers"
        if any(r < w < later for w in writers for r in readers for later in readers):
            yield "old readers, a writer that follows, and new readers"
        if len(writers) > 1:
            yield "two writes in a step"
            if len({program.stages[n].offsets for n in writers}) > 1:
                yield "two writes over unlike offsets"
        if program.renames.get(field) in program.written:
            yield "a renamed field"
        if program.renames.get(program.renames.get(field, ""), "") == field:
            yield "swapped fields"
        elif program.renames.get(field) in program.renames:
            yield "two earlier levels"
    for stage in program.stages:
        if len(stage.updates) > 1:
            yield f"a stage of {len(stage.updates)} updates"
            if sum(stage.operations.values()) < sum(map(_n_operations, stage.updates.values())):
                yield "updates that share a subexpression"
        if not stage.reads:
            yield "a stage that reads nothing"
        elif {read.offset for read in stage.reads} == {zero}:
            yield "a stage that reads only here"


def _kinds_of_run(case: ProgramCase) -> Iterator[str]:
    yield f"{case.n_steps} steps"
    yield from {f"periodic: {wraps}" for wraps in case.periodic}
    if len(set(case.periodic)) > 1:
        yield "unlike boundaries"
    if case.extent[0] < 5:
        yield "too few rows for 5 places"
    domain = Shape.of_extent(case.extent)
    if any(stage.updated(domain, case.periodic).empty for stage in case.program.stages):
        yield "a stage without cells"
    if any(max(ends) >= length for ends, length in zip(case.program.reach, case.extent)):
        yield "a reach beyond the field"
