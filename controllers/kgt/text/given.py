# SPDX-License-Identifier: MIT
"""What kernels are given next to fields: scalars by value, coordinates and indices by tables.

A table holds what the cells of a box, and those around it that are seen, have along one axis.  It
is made on the host, so that all devices have the same bits.  The index of the cell itself needs no
table: it is where the box begins plus where in the box the cell is, `item_AXIS` in "cell".
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, Union

from controllers.kgt.parameter import Parameter
from controllers.kgt.text.c_text import plus
from controllers.kgt.text.report import REPORT
from controllers.program.expression import Coordinate, Given, Index, Scalar
from controllers.program.program import Stage

PREFIX = "s_"   # of the parameters that scalars are
Placed: TypeAlias = Union[Index, Coordinate]


@dataclass(frozen=True)
class Table:
    """The parameter that a table is, of what, and how many cells before and behind a box it has."""

    name: str
    of: Placed
    low: int
    high: int


def scalars_of(stage: Stage) -> dict[str, str]:
    """The names of the scalars that a stage uses, by their parameters, in order of first use."""
    return {PREFIX + node.name: node.name for node in stage.given if isinstance(node, Scalar)}


def tables_of(stage: Stage) -> tuple[Table, ...]:
    """The tables that a kernel of a stage reads, in order of first use.

    >>> near, own = Index(0, -2), Index(1)
    >>> from controllers.program.expression import Read, where
    >>> stage = Stage("s", {"u": where(near == own, Read("u", (0, 0)), 0)}, ((0, 0), (0, 0)))
    >>> tables_of(stage)
    (Table(name='kgt_index_0', of=Index(axis=0, offset=0), low=2, high=0),)
    """
    offsets: dict[Placed, list[int]] = {}
    for node in placed(stage):
        if not _is_own_index(node, stage):
            offsets.setdefault(_at_cell(node), []).append(node.offset)
    return tuple(
        Table(_name(node), node, max(0, -min(steps)), max(0, *steps))
        for node, steps in offsets.items()
    )


def tables_nbytes(stage: Stage, extent: tuple[int, ...], itemsize: int) -> int:
    """Bytes of the tables of a launch over a box, whose cells have so many each."""
    return sum(
        (extent[one.of.axis] + one.low + one.high) * (8 if isinstance(one.of, Index) else itemsize)
        for one in tables_of(stage)
    )


def placed(stage: Stage) -> list[Placed]:
    """The indices and coordinates that a stage uses, in order of first use."""
    return [node for node in stage.given if isinstance(node, (Index, Coordinate))]


def axes_of(stage: Stage) -> list[int]:
    """The axes along which a kernel must know where in the box its cell is."""
    if any(element.looks for element in stage.elements):
        return [*range(len(stage.offsets))]
    return sorted({node.axis for node in placed(stage)})


def parameters(stage: Stage, cell: str) -> tuple[Parameter, ...]:
    """The parameters of a kernel for what it is given; `cell` is the type of a cell."""
    tables = (
        Parameter(table.name, f"{'long' if isinstance(table.of, Index) else cell}*", "in")
        for table in tables_of(stage)
    )
    scalars = (Parameter(name, cell, "scalar") for name in scalars_of(stage))
    own = dict.fromkeys(node.axis for node in placed(stage) if _is_own_index(node, stage))
    looking = (one for one in stage.elements if one.looks)
    seen = dict.fromkeys(one.field_of[name] for one in looking for name in one.offsets)
    reports = (Parameter(f"{REPORT}{field}", "long*", "in") for field in seen)
    lowers = (Parameter(f"lower_{axis}", "long", "scalar") for axis in own)
    return (*tables, *reports, *scalars, *lowers)


def declarations(stage: Stage, cell: str) -> list[str]:
    """The same as C lines, each with its comma."""
    return [
        f"__global const {p.type_name.replace('*', ' *restrict ')}{p.name},"
        if p.role == "in"
        else f"const {p.type_name} {p.name},"
        for p in parameters(stage, cell)
    ]


def given_text(node: Given, stage: Stage, place: str = "item") -> str:
    """C text of what a cell is given, as tight as a name.

    Where in the box the cell is stands in variables called `place`, an underscore and the axis.
    """
    if isinstance(node, Scalar):
        return PREFIX + node.name
    assert isinstance(node, (Index, Coordinate)), node
    if _is_own_index(node, stage):
        return f"(lower_{node.axis} + {place}_{node.axis})"
    table = next(one for one in tables_of(stage) if one.of is _at_cell(node))
    step = table.low + node.offset
    return f"{table.name}[{place}_{node.axis}{plus(step)}]"


def _at_cell(node: Placed) -> Placed:
    return Index(node.axis) if isinstance(node, Index) else Coordinate(node.axis, node.half)


def _is_own_index(node: Placed, stage: Stage) -> bool:
    """Whether it is where the cell is; beyond a periodic end, cells may be seen again."""
    again = stage.rim or node.axis in stage.rings
    return isinstance(node, Index) and not node.offset and not again


def _name(node: Placed) -> str:
    if isinstance(node, Index):
        return f"kgt_index_{node.axis}"
    return f"kgt_{'face' if node.half else 'center'}_{node.axis}"
