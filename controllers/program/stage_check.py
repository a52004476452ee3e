# SPDX-License-Identifier: MIT
"""What a program refuses of a stage: what its fields cannot hold, or its arithmetic not compute."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from controllers.program.dtypes import Applied, Value, applied, check_number, given_dtype, stores
from controllers.program.expression import Outcome
from controllers.program.stage import Stage

Math = Literal["strict", "fast"]


def check_stage(stage: Stage, dtypes: Mapping[str, str], math: Math) -> None:
    """ValueError where what a stage computes cannot be computed, or its updates not be stored."""
    for field, expression in stage.updates.items():
        if expression.is_condition:
            raise ValueError(
                f"stage {stage.name!r} gives {field!r} a condition, {expression}, and a field "
                f"holds numbers; choose them by where(condition, 1, 0)"
            )
    used = {field: dtypes[field] for field in (*stage.fields_read, *stage.updates)}
    for node in stage.given:
        if not isinstance(node, Outcome) or node.name in node.element.folded:
            continue
        if node.field not in used:
            raise ValueError(
                f"stage {stage.name!r} takes {node.name!r} of {node.element.name!r}, in OpenCL C, "
                f"on the field {node.field!r}, which it neither reads nor updates; let it do one"
            )
    try:
        floats = given_dtype(stage, dtypes)
        operations, values = applied(stage.expressions, used, floats)
        _check_functions(operations, math)
    except ValueError as error:
        raise ValueError(f"stage {stage.name!r}: {error}") from None
    for field, value in zip(stage.updates, values):
        _check_stored(stage, field, dtypes[field], value)


def check_outside(stages: Sequence[Stage], field: str, dtype: str) -> None:
    """ValueError where one kernel cannot give all rules of a field their scalars."""
    dtypes = {given_dtype(stage, dtype) for stage in stages}
    if len(dtypes) > 1 and any(stage.given for stage in stages):
        raise ValueError(
            f"boundaries of the field {field!r} of {dtype} use scalars or coordinates, and some "
            f"of them convert to another dtype; let none or all convert"
        )


def _check_functions(operations: Iterable[Applied], math: Math) -> None:
    for function in (operation.function for operation in operations):
        if math == "strict" and not function.strict:
            remedy = f"{function.remedy}, or " if function.remedy else ""
            raise ValueError(
                f"devices round {function.name!r} differently, so strict arithmetic refuses it; "
                f"{remedy}take the device's own by math='fast'"
            )


def _check_stored(stage: Stage, field: str, dtype: str, value: Value) -> None:
    if not stores(value.kind, dtype):
        raise ValueError(
            f"stage {stage.name!r} gives the field {field!r}, which holds {dtype}, values of "
            f"{value.kind.dtype}, which are of another kind; convert them, as x.astype({dtype!r})"
        )
    if value.number is not None:
        try:
            check_number(value.number, dtype)
        except ValueError as error:
            raise ValueError(f"stage {stage.name!r} gives the field {field!r} {error}") from None
