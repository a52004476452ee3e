# SPDX-License-Identifier: MIT
"""Random programs of one to three fields and stages, and what they give.

A case follows from its number alone.  Its expressions are drawn as plain data (`Formula`), of which
`expression_of` makes those of the program; `cell_by_cell` computes with the data themselves.  Of
floats no value grows beyond 1, so that there is neither infinity nor NaN.
"""
from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from controllers.program.expression import Constant, Expression, Node, Read, count
from controllers.program.program import DTYPES, INTEGERS, Field, Program, Stage
from controllers.program.reference import reference_run, reference_steps
from hitmap.shape import Shape

NAMES = ("u", "v", "old")
MAX_CELLS = {1: 60, 2: 300, 3: 500}     # about
MAX_REACH = {1: 3, 2: 2, 3: 1}
MAX_STEPS = 7

Offset = tuple[int, ...]
Ends = tuple[tuple[int, int], ...]
Formula = Any
"""A number, a read (field, offset), or (function, operands ...), where a dtype converts to it."""
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "//": np.floor_divide,
    "%": np.remainder, "&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor,
    "~": np.invert, "<<": np.left_shift, ">>": np.right_shift, "<": np.less, ">": np.greater,
    "==": np.equal, "where": np.where, "abs": np.abs, "negative": np.negative, "sign": np.sign,
    "maximum": np.maximum, "minimum": np.minimum, "clip": np.clip, "power": np.power,
    "sqrt": np.sqrt, "rint": np.rint, "floor": np.floor, "trunc": np.trunc,
    "copysign": np.copysign,
}  # fmt: skip


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
    def results(self) -> dict[str, Any]:
        """What the last step has folded, by the reference."""
        (*_, last) = reference_steps(
            self.program, self.arrays, self.periodic, n_steps=self.n_steps
        )
        return last.results

    @cached_property
    def kinds(self) -> frozenset[str]:
        """What the case is an example of, in words."""
        return frozenset((*_kinds_of_program(self.program), *_kinds_of_run(self)))


@cache
def random_program(number: int) -> ProgramCase:
    """Case `number`, the same every time; its arrays are to be read only."""
    rng = random.Random(number)
    n_axes, dtype = rng.randint(1, 3), rng.choice(["float32", "float64", *DTYPES])
    names = rng.sample(NAMES, rng.randint(1, 3))
    renames = _random_renames(rng, names)
    dtypes = dict.fromkeys(names, dtype)
    if rng.random() < 0.5:
        dtypes |= {name: rng.choice(DTYPES) for name in names if not _renamed(name, renames)}
    writable = [name for name in names if name not in renames]
    if len(writable) > 1 and rng.random() < 0.4:
        writable.pop()      # which is only read
    drawn = Drawn(rng, n_axes, dtypes, {name for name in names if rng.random() < 0.7})
    stages, formulas = [], []
    for position in range(rng.randint(1, 3)):
        formulas.append(drawn.updates(writable))
        made = {name: expression_of(formula) for name, formula in formulas[-1].items()}
        updates: dict[str, Any] = {
            name: value if isinstance(value, Node) else Constant(value)
            for name, value in made.items()
        }
        stages.append(Stage(f"stage_{position}", updates, drawn.offsets(formulas[-1])))
    renames = {new: old for new, old in renames.items() if _changes(old, stages, renames)}
    fields = tuple(Field(name, dtypes[name]) for name in names)
    program = Program(f"random_{number}", fields, tuple(stages), renames=renames)
    periodic = tuple(rng.random() < 0.5 for _ in range(n_axes))
    extent = _random_extent(rng, program, periodic)
    values = np.random.default_rng(number)
    arrays = {name: random_array(values, dtypes[name], extent) for name in names}
    for array in arrays.values():
        array.flags.writeable = False
    return ProgramCase(program, tuple(formulas), arrays, periodic, rng.randint(0, MAX_STEPS))


def expression_of(formula: Formula) -> Any:
    """The expression that a program evaluates; a plain number stays one."""
    if not isinstance(formula, tuple):
        return formula
    if is_read(formula):
        return Read(*formula)
    operands = [expression_of(part) for part in formula[1:]]
    if formula[0] in DTYPES:
        return operands[0].astype(formula[0])
    return FUNCTIONS[formula[0]](*operands)


def is_read(formula: Formula) -> bool:
    """Whether it is a field and an offset."""
    return isinstance(formula, tuple) and isinstance(formula[1], tuple) and (
        isinstance(formula[1][0], int)
    )


class Drawn:
    """Draws the updates of stages: those fields that are in `near` are read at neighbours."""

    def __init__(
        self, rng: random.Random, n_axes: int, dtypes: Mapping[str, str], near: set[str]
    ) -> None:
        self._rng, self._n_axes, self._dtypes, self._near = rng, n_axes, dtypes, near

    def updates(self, writable: Sequence[str]) -> dict[str, Formula]:
        """What the fields that a stage writes, one or several of `writable`, get."""
        several = len(writable) > 1 and self._rng.random() < 0.7
        count = (len(writable) if self._rng.random() < 0.7 else 2) if several else 1
        targets = self._rng.sample(writable, count)
        only_here = self._rng.random() < 0.25
        if self._rng.random() < 0.04:
            return dict.fromkeys(targets, self._rng.choice([1, 2, 3]))
        shared = {whole: self._product(only_here, whole) for whole in (False, True)}
        updates = {}
        for target in targets:
            whole = self._dtypes[target] in INTEGERS
            terms = [self.term(only_here, whole) for _ in range(self._rng.randint(1, 4))]
            if several and self._rng.random() < 0.7:
                terms.insert(self._rng.randint(0, 1), shared[whole])
            mean = self._mean(terms, whole)
            wraps = self._dtypes[target] == "uint8" and isinstance(mean, tuple)
            updates[target] = ("uint8", mean) if wraps else mean
        return updates

    def offsets(self, updates: Mapping[str, Formula]) -> Ends:
        """What the stage declares: all that it reads, and now and then more."""
        reads = [offset for formula in updates.values() for _, offset in reads_of(formula)]
        ends = []
        for axis in zip(*reads or [(0,) * self._n_axes]):
            more, below = self._rng.random() < 0.25, self._rng.randint(0, 1)
            ends.append((min(axis) - (more and below), max(axis) + (more and 1 - below)))
        return tuple(ends)

    def _read(self, only_here: bool, whole: bool) -> Formula:
        """A value of a field: an integer, or a float that is 1 at most."""
        name, most = self._rng.choice([*self._dtypes]), MAX_REACH[self._n_axes]
        read: Formula = name, (0,) * self._n_axes
        if not only_here and name in self._near:
            read = name, tuple(self._rng.randint(-most, most) for _ in range(self._n_axes))
        if whole and self._dtypes[name] not in INTEGERS:
            return self._rng.choice(["int16", "int32", "int64"]), ("*", read, 1000)
        if not whole and self._dtypes[name] in INTEGERS:
            return "/", ("%", read, 8), 8
        return read

    def _number(self, whole: bool) -> float:
        return self._rng.choice([1, 2, 3, 7] if whole else [0.5, 1, -1 / 3, -0.7])

    def _product(self, only_here: bool, whole: bool) -> Formula:
        return "*", self._read(only_here, whole), self._read(only_here, whole)

    def term(self, only_here: bool, whole: bool) -> Formula:
        """Of floats at most 1, where all that is read is."""
        kind, value = self._rng.randrange(12), self._read(only_here, whole)
        if kind < 3:
            return value
        if kind < 5:
            return "*", self._number(whole), value
        if kind == 5:
            return self._product(only_here, whole)
        if kind == 6:
            return ("+", value, self._number(whole)) if whole else self._number(whole)
        other = self._read(only_here, whole)
        return self._rng.choice(_of_integers(value, other) if whole else _of_floats(value, other))

    def _mean(self, terms: Sequence[Formula], whole: bool) -> Formula:
        total = terms[0]
        for term in terms[1:]:
            pair = (total, term) if self._rng.random() < 0.8 else (term, total)
            total = (self._rng.choice("+-"), *pair)
        if whole and self._rng.random() < 0.5:
            return total
        return ("//" if whole else "/", total, len(terms)) if len(terms) > 1 else total


def _of_integers(a: Formula, b: Formula) -> list[Formula]:
    return [
        ("//", a, b), ("//", a, 3), ("%", a, b), ("%", a, 7), ("&", a, b), ("|", a, b),
        ("^", a, b), ("~", a), ("<<", a, 3), (">>", a, b), ("<<", a, b), ("abs", a), ("sign", a),
        ("maximum", a, b), ("minimum", a, 5), ("where", ("<", a, b), b, a), ("power", a, 3),
        ("clip", a, 2, 100), ("negative", a), ("where", ("==", a, 0), 1, b), ("floor", a),
    ]  # fmt: skip


def _of_floats(a: Formula, b: Formula) -> list[Formula]:
    return [
        ("/", a, ("+", 2, ("*", a, b))), ("where", (">", a, b), b, a), ("maximum", a, b),
        ("minimum", a, 0), ("abs", a), ("sqrt", ("abs", a)), ("power", a, 3), ("sign", a),
        ("clip", a, -0.5, 0.25), ("rint", a), ("%", a, 0.25), ("*", 0.5, ("//", a, 0.5)),
        ("*", 0.5, ("floor", ("*", 2, a))), ("copysign", a, b), ("trunc", a), ("float32", a),
        ("float64", a), ("negative", a),
    ]  # fmt: skip


def reads_of(formula: Formula) -> Iterator[tuple[str, Offset]]:
    """All reads of a formula."""
    if is_read(formula):
        yield formula
    elif isinstance(formula, tuple):
        for part in formula[1:]:
            yield from reads_of(part)


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


def _renamed(name: str, renames: Mapping[str, str]) -> bool:
    """Whether it has another name too: both are of one dtype."""
    return name in renames or name in renames.values()


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


def random_array(
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
    yield from program.dtypes.values()
    if len({*program.dtypes.values()}) > 1:
        yield "unlike dtypes"
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
