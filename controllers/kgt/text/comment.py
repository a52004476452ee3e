# SPDX-License-Identifier: MIT
"""The comment at the head of a generated kernel: the pattern drawn, and the cost of a cell.

It holds names that are identifiers and numbers printed anew, nothing else that came from outside.
"""
from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import product

from controllers.kgt.text.analysis import (
    arithmetic_type,
    loose_functions,
    used_dtypes,
    widened,
)
from controllers.kgt.text.emitter import MAX_LINE, OPENCL_TYPES, decimal, used_fields
from controllers.kgt.text.fold_values import values_of
from controllers.program.expression import (
    Application,
    Constant,
    Expression,
    Read,
    count,
    flops,
)
from controllers.program.functions import FUNCTIONS, INTEGERS, QUOTIENT, WIDENED
from controllers.program.items import ItemUse, Near, items_of
from controllers.program.program import Program, Stage

MAX_ROWS, MAX_DRAWN = 64, 1024  # lines, and offsets, of a drawing


def head_comment(
    program: Program, stage: Stage, strategy: str, n_steps: int = 1
) -> list[str]:
    """The head comment of the kernel of `stage`, as lines without the comment signs.

    `strategy` says in a few words how the kernel goes about it, which computes `n_steps` steps.
    """
    steps = "one step" if n_steps == 1 else f"{n_steps} steps"
    lines = [
        f"{stage.name}: {steps}, {_dtypes(program, stage)}, {strategy}.",
        "",
        *_pattern(program, stage),
        "",
        cost(program, stage),
        *_arithmetic(program, stage),
    ]
    loose = loose_functions(stage, program.dtypes)
    if "float32" in used_dtypes(stage, program.dtypes) and program.math == "strict" and loose:
        nouns = " or ".join(f"{function.noun}s" for function in loose)
        lines += [
            f"Where a device rounds float {nouns} loosely, strict bits need the build option",
            "-cl-fp32-correctly-rounded-divide-sqrt.",
        ]
    return lines


def _arithmetic(program: Program, stage: Stage) -> list[str]:
    if program.math == "fast":
        return ["Fast arithmetic: constants divided beforehand, operations may be contracted."]
    found = used_dtypes(stage, program.dtypes)
    if len(found) == 1 and found[0] not in INTEGERS:
        kind = "operations as written, in the type of the field, without contraction"
        return [f"Strict arithmetic: {kind}."]
    if len(stage.updates) > 1 or not widened(stage, program.dtypes):
        return [
            "Strict arithmetic: operations as written, without contraction, each in the type that",
            "NumPy gives it; the results of integers wrap.",
        ]
    narrow, used = OPENCL_TYPES[program.dtype_of(stage)], arithmetic_type(stage, program.dtypes)
    why = "which wraps as long does" if used == "ulong" else "where nothing overflows"
    return [
        f"Integers: as if in long, the quotient truncated, the result wrapped to {narrow};",
        f"computed in {used}, {why}.",
    ]


def _dtypes(program: Program, stage: Stage) -> str:
    """The dtype of all fields of a stage, or that of each."""
    found = {field: program.dtypes[field] for field in used_fields(stage)}
    if len({*found.values()}) == 1:
        return program.dtypes[next(iter(found))]
    return ", ".join(f"{field} {dtype}" for field, dtype in found.items())


def cost(program: Program, stage: Stage) -> str:
    items = items_of(stage)
    if items is not None:
        rows = [f for f in used_fields(stage) if items.use_of.get(f, "row") == "row"]
        n_bytes = sum(program.itemsize(f) * items.kind_of[f].extent[1] for f in rows)
        return f"Per item: {n_bytes} bytes of rows, each read once or written once."
    operations, nouns = stage.operations, Counter[str]()
    in_c = ", ".join(element.name for element in stage.elements)
    for function in FUNCTIONS.values():
        if function.flops:
            nouns[function.noun] += operations[function.name]
    each = ", ".join(f"{n} {noun}{'s' * (n > 1)}" for noun, n in nouns.items() if n)
    n_bytes = sum(program.itemsize(field) for field in (*stage.fields_read, *stage.stored))
    unit = "operations" if {*used_dtypes(stage, program.dtypes)} <= {*INTEGERS} else "flops"
    total = f"{flops(operations)} {unit} ({each})" if each else f"no {unit}"
    if in_c:
        total = f"{unit} as {in_c} does them" + (f" and {total}" if each else "")
    return f"Per cell: {total}; {n_bytes} bytes, each field read once or written once."


def _read(field: str, use: ItemUse) -> str:
    """What an item is given of a field."""
    if isinstance(use, Near):
        return f"rows {use.first} to {use.last} around its own of {field}"
    return f"all of {field}" if use == "all" else f"its {use} of {field}"


def _pattern(program: Program, stage: Stage) -> list[str]:
    """What each drawing shows, and the drawings: one for a weighted sum of one field."""
    items, offsets = items_of(stage), _shape_text(stage)
    if items is not None:
        given = [_read(field, use) for field, use in items.use_of.items()]
        return [f"Written for one item, which is given {', '.join(given)}."]
    if stage.elements:
        return [f"Written in OpenCL C, which declares to read over the offsets {offsets}."]
    if len(stage.updates) > 1 or values_of(stage):
        does = [f"Updates {' and '.join(stage.stored)}{' at once' * (len(stage.stored) > 1)}"]
        does += [f"folds {one.value} to its {one.kind}" for one in values_of(stage)]
        first, *others = does if stage.stored else does[1:]
        told = ", ".join([first[0].upper() + first[1:], *others])
        return [f"{told}; reads over the offsets {offsets}."]
    sum_and_factor = weighted_sum(stage.expression)
    found = {program.dtypes[field] for field in used_fields(stage)}
    if sum_and_factor is None or len(found) > 1:
        return [f"Reads over the offsets {offsets}; see the expression at the end."]
    (weights, factor), (dtype,) = sum_and_factor, found
    title = f"Weights over the offsets {offsets}, [] marks the cell itself"
    title += f"; divided by {_number(factor, dtype)}:" if factor != 1 else ":"
    if math.prod(high - low + 1 for low, high in stage.offsets) <= MAX_DRAWN:
        rows = list(_drawing(stage, {at: _number(w, dtype) for at, w in weights.items()}))
        if len(rows) <= MAX_ROWS and max(map(len, rows)) <= MAX_LINE:
            return [title, "", *rows]
    return [title, f"    ({len(weights)} of them, over too many offsets to draw)"]


def _shape_text(stage: Stage) -> str:
    return " x ".join(f"{low}..{high}" for low, high in stage.offsets)


def _number(value: float, dtype: str) -> str:
    return decimal(value, dtype).removesuffix(".0")


def _drawing(stage: Stage, weights: Mapping[tuple[int, ...], str]) -> Iterator[str]:
    """One row of text per row of the pattern's last axis; planes and blocks under their offsets."""
    ranges = [range(low, high + 1) for low, high in stage.offsets]
    *outer, row_range = ranges[-2:]
    width = max(map(len, weights.values()))
    for plane in product(*ranges[:-2]):
        if plane:
            yield (
                f"at offset {plane[0]} on axis 0:"
                if len(plane) == 1
                else f"at offsets {plane} on axes 0, 1:"
            )
        for row in product(*outer):
            cells = []
            for column in row_range:
                at = (*plane, *row, column)
                text = weights.get(at, ".").rjust(width)
                cells.append(f"[{text}]" if not any(at) else f" {text} ")
            yield "    " + " ".join(cells).rstrip()


def weighted_sum(expression: Expression) -> tuple[dict[tuple[int, ...], float], float] | None:
    """Weights by offset and the factor, where `expression` is such a sum over one field; else None.

    >>> u = Read("u", (0,))
    >>> weighted_sum((u + 3 * Read("u", (1,))) / 4)
    ({(0,): 1, (1,): 3}, 4)
    >>> weighted_sum(u * u)
    """
    factor: float = 1
    if isinstance(expression, Application) and expression.symbol in INTEGERS:
        expression = expression.left    # wrapped at the end
    whole = False
    if isinstance(expression, Application) and expression.symbol in ("/", QUOTIENT):
        whole, divisor = expression.symbol == QUOTIENT, expression.right
        if not isinstance(divisor, Constant):
            return None
        expression, factor = expression.left, divisor.value
    if factor != 1 and (count(expression)[WIDENED] > 0) != whole:
        return None
    terms: list[tuple[Read, float]] = []
    while isinstance(expression, Application) and expression.symbol == "+":
        terms.append(_term(expression.right) or (Read("", ()), 0.0))
        expression = expression.left
    terms.append(_term(expression) or (Read("", ()), 0.0))
    terms.reverse()
    weights = {read.offset: weight for read, weight in terms}
    one_field = len({read.field for read, _ in terms}) == 1 and terms[0][0].field
    return (weights, factor) if one_field and len(weights) == len(terms) else None


def _term(expression: Expression) -> tuple[Read, float] | None:
    """The read and its weight, where `expression` is a read or a constant times a read."""
    weight: float = 1
    if isinstance(expression, Application) and expression.symbol == "*":
        factor = expression.left
        if not isinstance(factor, Constant):
            return None
        expression, weight = expression.right, factor.value
    if isinstance(expression, Application) and expression.symbol == WIDENED:
        expression = expression.left
    return (expression, weight) if isinstance(expression, Read) else None
