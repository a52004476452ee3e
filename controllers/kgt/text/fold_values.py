# SPDX-License-Identifier: MIT
"""Folds as strategies see them: values of a cell, computed as updates are, that are not stored.

A `FoldingStage` has one more update for each fold, of a field that has no memory: its operand.
Where a condition says which cells take part, and of argmin and argmax, it has others: whether the
cell does, and its place.  A strategy computes all of them and hands the folds' ones on.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from controllers.program.accumulator import NUMBERED
from controllers.program.dtypes import applied, given_dtype
from controllers.program.expression import Application, Constant, Expression, Index, where
from controllers.program.field import Field
from controllers.program.fold import PLACE_BITS, Fold
from controllers.program.program import Program, Stage

CONDITION = "bool"


@dataclass(frozen=True)
class FoldValue:
    """A fold, and the fields that stand for what it takes of a cell; "" where it takes none.

    dtype: of the operand; of conditions, "bool".  bits: of the place, by axis.
    """

    name: str
    kind: str
    dtype: str
    value: str
    over: str = ""
    place: str = ""
    bits: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class FoldingStage(Stage):
    """A stage whose last updates are what it folds."""

    values: tuple[FoldValue, ...]

    @property
    def stored(self) -> tuple[str, ...]:
        made = {name for one in self.values for name in (one.value, one.over, one.place)}
        return tuple(field for field in self.updates if field not in made)

    @property
    def _identity(self) -> tuple[object, ...]:
        return *super()._identity, self.values


def values_of(stage: Stage) -> tuple[FoldValue, ...]:
    """What a stage folds, as its kernels see it."""
    return stage.values if isinstance(stage, FoldingStage) else ()


def is_folding(stage: Stage) -> bool:
    """Whether a stage folds, as a program has it or as its kernels see it."""
    return bool(stage.folds or values_of(stage))


def operand_dtype(program: Program, stage: Stage, fold: Fold) -> str:
    """The dtype of what a fold of a stage takes; "bool" where that is a condition.

    Numbers alone are of the dtype in which the stage is given them.
    """
    floats = given_dtype(stage, program.dtypes)
    return applied((fold.operand,), program.dtypes, floats)[1][0].kind.dtype


def with_values(program: Program, stage: Stage) -> tuple[Program, Stage]:
    """A stage that folds as a `FoldingStage`, and the program with its fields; others as they are.
    """
    if not stage.folds:
        return program, stage
    return _with_values(_Known(stage, program.fields, program.temporaries, program.math, program))


@dataclass(frozen=True)
class _Known:
    """What the values depend on, and a program that has it."""

    stage: Stage
    fields: tuple[Field, ...]
    temporaries: tuple[Field, ...]
    math: str
    program: Program

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Known) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    @property
    def _identity(self) -> tuple[object, ...]:
        return self.stage, self.fields, self.temporaries, self.math


@lru_cache(maxsize=64)      # expressions are compared as objects: the same ones each time
def _with_values(known: _Known) -> tuple[Program, Stage]:
    program, stage = known.program, known.stage
    free = _names(program)
    found, fields = [], []
    updates: dict[str, Expression] = dict(stage.updates)
    truth = given_dtype(stage, program.dtypes)      # of 0 and 1, which change no other dtype
    for name, fold in stage.folds.items():
        dtype = operand_dtype(program, stage, fold)
        bits = fold.bits or (PLACE_BITS[program.n_axes],) * program.n_axes
        one = FoldValue(
            name, fold.kind, dtype, next(free), "" if fold.over is None else next(free),
            next(free) if fold.kind in NUMBERED else "", bits,
        )
        updates[one.value] = _number(fold.operand) if dtype == CONDITION else fold.operand
        fields.append(Field(one.value, truth if dtype == CONDITION else dtype))
        if fold.over is not None:
            updates[one.over] = _number(fold.over)
            fields.append(Field(one.over, truth))
        if one.place:
            updates[one.place] = _place(bits)
            fields.append(Field(one.place, "int64"))
        found.append(one)
    made = FoldingStage(
        stage.name, updates, stage.offsets, overwrites=stage.overwrites, values=tuple(found)
    )
    return replace(program, temporaries=(*program.temporaries, *fields)), made


def _names(program: Program) -> Iterator[str]:
    number = 0
    while True:
        name, number = f"fold_{number}", number + 1
        if name not in program.dtypes:
            yield name


def _number(condition: Expression) -> Expression:
    return where(condition, Constant(1), Constant(0))


def _place(bits: Sequence[int]) -> Expression:
    """The place of a cell in C order, axis 0 in the highest bits."""
    number: Expression = Index(0)
    for axis in range(1, len(bits)):
        scaled = Application("*", number, Constant(1 << bits[axis]))
        number = Application("+", scaled, Index(axis))
    return number
