# SPDX-License-Identifier: MIT
"""Programs: the fields, and the stages of one step, with no word on where they run.

Reach, offsets and cost are derived from the expressions.  Which cells are computed follows
from the *declared* shape of a stage, which may be larger than what it reads (EPSILOD's rule,
DESIGN.md "Boundaries").
"""
from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Literal, get_args

import numpy as np

from controllers.program.expression import (
    Constant,
    Expression,
    Operation,
    Read,
    Symbol,
    flops,
    walk,
)
from controllers.program.functions import FUNCTIONS, Function
from controllers.program.identifier import check_field_name, check_identifier, short
from hitmap.shape import Shape

FLOATS = ("float32", "float64")
INTEGERS = ("uint8", "int16", "int32", "int64")
DTYPES = FLOATS + INTEGERS
MAX_AXES = 4
MAX_OFFSET = 2**31 - 1  # times a pitch it must stay within 64 bits
Offsets = tuple[tuple[int, int], ...]
Math = Literal["strict", "fast"]


@dataclass(frozen=True)
class Field:
    """A named array over the domain; `dtype` is one of DTYPES."""

    name: str
    dtype: str

    def __post_init__(self) -> None:
        check_field_name(self.name)
        if self.dtype not in DTYPES:
            raise ValueError(
                f"field {self.name!r}: the dtype is one of {', '.join(DTYPES)}, got {self.dtype!r}"
            )


@dataclass(frozen=True, eq=False)
class Stage:
    """One parallel update: `writes` gets the value of `expression` in each cell that is computed.

    `shape` is declared: the inclusive first and last offset per axis; every read must lie in it.
    Two stages are equal when they share the very same expression object.
    """

    name: str
    writes: str
    expression: Expression
    shape: Offsets

    def __post_init__(self) -> None:
        check_identifier(self.name, "stage")
        check_shape(self.shape, f"stage {self.name!r}")
        for read in self.reads:
            inside = len(read.offset) == len(self.shape) and all(
                low <= step <= high for step, (low, high) in zip(read.offset, self.shape)
            )
            if not inside:
                raise ValueError(
                    f"stage {self.name!r} reads {read.field!r} at {read.offset}, outside its "
                    f"declared shape {self.shape}; declare a larger shape"
                )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stage) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    @property
    def _identity(self) -> tuple[str, str, Offsets, int]:
        return self.name, self.writes, self.shape, id(self.expression)

    @cached_property
    def nodes(self) -> tuple[Expression, ...]:
        """All nodes of its expression, each once; see `expression.walk`."""
        return tuple(walk(self.expression))

    @cached_property
    def reads(self) -> tuple[Read, ...]:
        """Its distinct reads, in order of first use."""
        return tuple(node for node in self.nodes if isinstance(node, Read))

    @cached_property
    def operations(self) -> Counter[Symbol]:
        """How many operations of each symbol one cell takes; what is shared counts once."""
        return Counter(node.symbol for node in self.nodes if isinstance(node, Operation))

    @cached_property    # asked for at each read of an expression
    def fields_read(self) -> tuple[str, ...]:
        """The fields it reads, in order of first use; each once."""
        return tuple(dict.fromkeys(read.field for read in self.reads))

    def updated(self, domain: Shape, periodic: tuple[bool, ...]) -> Shape:
        """The cells this stage computes; see `Program.updated`."""
        if not len(self.shape) == len(domain.extent) == len(periodic):
            raise ValueError(
                f"stage {self.name!r} has {len(self.shape)} axes, got a domain of "
                f"{len(domain.extent)} and {len(periodic)} boundaries; give one per axis"
            )
        axes = list(zip(domain.lower, domain.upper, self.shape, periodic))
        lower = tuple(a if p else a + max(0, -low) for a, _, (low, _), p in axes)
        upper = tuple(b if p else b - max(0, high) for _, b, (_, high), p in axes)
        return Shape(lower, tuple(max(a, b) for a, b in zip(lower, upper)))


@dataclass(frozen=True)
class Program:
    """The stages of one step and the fields they use; all of one dtype and number of axes.

    math: "strict", which is evaluated as written, or "fast", for floats: generated kernels may
    divide constants beforehand and contract a product and a sum.  The reference is always strict.
    """

    name: str
    fields: tuple[Field, ...]
    stages: tuple[Stage, ...]
    math: Math = "strict"

    def __post_init__(self) -> None:
        check_identifier(self.name, "program")
        names = [field.name for field in self.fields]
        if not names or not self.stages:
            raise ValueError(f"program {self.name!r} needs at least one field and one stage")
        if len(set(names)) < len(names):
            raise ValueError(
                f"program {self.name!r} has two fields of one name: {', '.join(names)}"
            )
        if len({field.dtype for field in self.fields}) > 1:
            raise ValueError(
                f"program {self.name!r} mixes dtypes; give all its fields the same one"
            )
        if len({len(stage.shape) for stage in self.stages}) > 1:
            raise ValueError(f"program {self.name!r} mixes stages of unlike numbers of axes")
        if self.math not in get_args(Math):
            raise ValueError(f"math is one of {', '.join(get_args(Math))}, got {self.math!r}")
        if self.math == "fast" and self.dtype in INTEGERS:
            raise ValueError(
                f"math='fast' is for {' and '.join(FLOATS)}, program {self.name!r} computes in "
                f"{self.dtype}; leave it out"
            )
        for stage in self.stages:
            _check_nodes(stage, self.dtype, self.math)
            for used in {stage.writes, *stage.fields_read}:
                if used not in names:
                    raise ValueError(
                        f"stage {stage.name!r} uses the field {used!r}, the program has "
                        f"{', '.join(names)}"
                    )

    def with_math(self, math: Math) -> Program:
        """The same in another arithmetic; ValueError for "fast" on integers."""
        return replace(self, math=math)

    @property
    def n_axes(self) -> int:
        """Axes of the domain, 1 to 4."""
        return len(self.stages[0].shape)

    @property
    def dtype(self) -> str:
        """The dtype of all fields."""
        return self.fields[0].dtype

    def field(self, name: str) -> Field:
        """The field called `name`; KeyError where there is none."""
        for field in self.fields:
            if field.name == name:
                return field
        raise KeyError(f"program {self.name!r} has no field {name!r}")

    def offsets(self, field: str) -> tuple[tuple[int, ...], ...]:
        """The distinct offsets at which stages read `field`, the zero one too, by first use."""
        every = (read for stage in self.stages for read in stage.reads)
        return tuple(dict.fromkeys(read.offset for read in every if read.field == field))

    @property
    def reach(self) -> Offsets:
        """Per axis, the cells read below and above a computed cell (>= 0), from the reads alone."""
        every = [offset for field in self.fields for offset in self.offsets(field.name)]
        return tuple(
            (max([0, *(-step for step in steps)]), max([0, *steps]))
            for steps in ([offset[axis] for offset in every] for axis in range(self.n_axes))
        )

    @property
    def flops_per_cell(self) -> int:
        """Arithmetic operations that one step does for one cell."""
        return sum(flops(stage.operations) for stage in self.stages)

    @property
    def bytes_per_cell(self) -> int:
        """Bytes one step must move for one cell: every field is read once and written once."""
        read = {name for stage in self.stages for name in stage.fields_read}
        written = {stage.writes for stage in self.stages}
        return (len(read) + len(written)) * np.dtype(self.dtype).itemsize

    def updated(self, domain: Shape, periodic: tuple[bool, ...]) -> Shape:
        """The cells of `domain` that a step computes; the others keep their values.

        On a periodic axis all of them, on a fixed one those whose declared shape stays in the
        domain. Empty where the domain is smaller than the shape.  With several stages, the hull of
        theirs.
        """
        return reduce(Shape.hull, (stage.updated(domain, periodic) for stage in self.stages))


def _check_nodes(stage: Stage, dtype: str, math: Math) -> None:
    """Refuse what cannot be stored, or is not for `dtype`, or not in this arithmetic."""
    if stage.expression.is_condition:
        raise ValueError(
            f"stage {stage.name!r} gives {stage.writes!r} a condition, {stage.expression}, and a "
            f"field holds numbers; choose them by where(condition, 1, 0)"
        )
    for node in stage.nodes:
        if isinstance(node, Constant):
            _check_constant(node.value, dtype, stage)
    for symbol in stage.operations:
        _check_function(FUNCTIONS[symbol], dtype, math, stage)


def _check_constant(value: float, dtype: str, stage: Stage) -> None:
    if dtype in INTEGERS:
        whole_number(value, dtype, f"stage {stage.name!r}: the constant")
    elif abs(value) > float(np.finfo(dtype).max):
        raise ValueError(
            f"stage {stage.name!r}: the constant {value} is beyond the range of "
            f"{dtype}, {np.finfo(dtype).max:.7g}; use a wider dtype or scale it"
        )


def _check_function(function: Function, dtype: str, math: Math, stage: Stage) -> None:
    if dtype in INTEGERS and function.integers is None:
        raise ValueError(
            f"stage {stage.name!r}: {function.name!r} is for {' and '.join(FLOATS)}, and the "
            f"program computes in {dtype}; use one of these"
        )
    if math == "strict" and not function.strict:
        raise ValueError(
            f"stage {stage.name!r}: devices round {function.name!r} differently, so strict "
            f"arithmetic refuses it; take the device's own by math='fast'"
        )


def whole_number(value: float, dtype: str, what: str) -> int:
    """`value` as an int that arithmetic on integer fields, done in 64 bits, can use.

    >>> whole_number(4.0, "uint8", "the factor")
    4
    >>> whole_number(0.5, "uint8", "the factor")
    Traceback (most recent call last):
        ...
    ValueError: the factor 0.5 is no whole number, which uint8 fields need; scale it, or use float64
    """
    if value != int(value):
        raise ValueError(
            f"{what} {short(value)} is no whole number, which {dtype} fields need; "
            f"scale it, or use float64"
        )
    if not -(2**63) <= value < 2**63:
        raise ValueError(
            f"{what} {short(value)} is beyond the 64 bits in which {dtype} fields are computed; "
            f"scale it, or use float64"
        )
    return int(value)


def check_shape(shape: Offsets, what: str) -> None:
    """Raise ValueError unless `shape` has 1 to 4 axes, with ordered ends within 2^31 - 1 cells."""
    if not 1 <= len(shape) <= MAX_AXES:
        raise ValueError(f"{what}: a shape has 1 to {MAX_AXES} axes, got {len(shape)}")
    for axis, (low, high) in enumerate(shape):
        if low > high:
            raise ValueError(
                f"{what}: the shape's first offset must not exceed its last, got "
                f"({short(low)}, {short(high)}) "
                f"on axis {axis}; swap them"
            )
        if max(-low, high) > MAX_OFFSET:
            raise ValueError(
                f"{what}: an offset is at most {MAX_OFFSET} cells, got ({short(low)}, "
                f"{short(high)}) on axis {axis}; use a smaller shape"
            )
