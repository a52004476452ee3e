# SPDX-License-Identifier: MIT
"""What the kernel of a stage needs: types, functions, build options; and whether vectors do."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache

import numpy as np

from controllers.kgt.text.given import placed
from controllers.kgt.text.integer import wide_type
from controllers.kgt.text.literals import OPENCL_TYPES, has_exact_reciprocal
from controllers.program.dtypes import Applied, Dtypes, applied, dtype_of, given_dtype
from controllers.program.expression import Application, Coordinate, Scalar
from controllers.program.functions import DTYPES, FLOATS, FUNCTIONS, INTEGERS, Function
from controllers.program.helpers import WHOLE_NUMBER
from controllers.program.items import items_of
from controllers.program.program import Stage

MANY_FIELDS = 8     # read by a sweep of volumes: more streams than a core follows by itself
SEVERAL_FIELDS = 3  # ... of which the steps of a launch share most


def reads_many(stage: Stage, least: int = MANY_FIELDS) -> bool:
    """Whether a stage computes volumes of so many fields at the least."""
    return len(stage.offsets) > 2 and len(stage.fields_read) >= least


class _Known:
    """What is known of a stage on fields of some dtypes, each computed once."""

    def __init__(self, stage: Stage, dtypes: Mapping[str, str]) -> None:
        self._stage, self._dtypes = stage, dtypes

    @cached_property
    def applied(self) -> Sequence[Applied]:
        """All its operations."""
        floats = given_dtype(self._stage, self._dtypes)
        found = applied([*self._stage.updates.values()], self._dtypes, floats)[0]
        items = items_of(self._stage)
        return found if items is None else (*found, *items.operations)

    @cached_property
    def in_vectors(self) -> bool:
        """See the function of this name."""
        return _in_vectors(self._stage, self._dtypes)

    @cached_property
    def wide_type(self) -> str:
        """The type of its values of int64."""
        if {*used_dtypes(self._stage, self._dtypes)} <= {*FLOATS}:
            return "int"
        if items_of(self._stage) is not None:
            return "ulong"
        return wide_type([*self._stage.updates.values()], self._dtypes)


def known(stage: Stage, dtypes: Dtypes) -> _Known:
    """What is known of a stage; asked again it is not computed again."""
    fields = dict.fromkeys((*stage.fields_read, *stage.updates))
    return _known(stage, tuple((field, dtype_of(dtypes, field)) for field in fields))


@lru_cache(maxsize=64)
def _known(stage: Stage, dtypes: tuple[tuple[str, str], ...]) -> _Known:
    return _Known(stage, dict(dtypes))


def arithmetic_type(stage: Stage, dtypes: Dtypes) -> str:
    """The OpenCL C type in which a stage of fields of one dtype is computed, integers as int64."""
    dtype = dtype_of(dtypes, next(iter(stage.updates)))
    if dtype in INTEGERS:
        return known(stage, dtypes).wide_type
    return OPENCL_TYPES[dtype]


def used_dtypes(stage: Stage, dtypes: Dtypes) -> tuple[str, ...]:
    """All dtypes of fields, operations and what it is given, each once."""
    found = {dtype_of(dtypes, field) for field in (*stage.fields_read, *stage.updates)}
    if any(isinstance(node, (Scalar, Coordinate)) for node in stage.given):
        found.add(given_dtype(stage, dtypes))
    for operation in known(stage, dtypes).applied:
        found |= {operation.dtype, operation.result.dtype}
    return tuple(dtype for dtype in DTYPES if dtype in found)


def divides(stage: Stage, dtypes: Dtypes) -> bool:
    """Whether a division is left in the generated code, or what else `loose` drivers round so."""
    return bool(loose_functions(stage, dtypes) or stage.elements)


def loose_functions(stage: Stage, dtypes: Dtypes) -> tuple[Function, ...]:
    """What the generated code has of functions that are `loose` in the table, in its order.

    In float32 alone, if it computes in that at all.
    """
    found: dict[str, set[str]] = {}
    computed = {operation.dtype for operation in known(stage, dtypes).applied}
    for operation in known(stage, dtypes).applied:
        if operation.function.loose and operation.dtype in FLOATS and not _is_product(operation):
            found.setdefault(operation.dtype, set()).add(operation.function.name)
    names = found.get("float32" if "float32" in computed else "float64", set())
    return tuple(row for row in FUNCTIONS.values() if row.name in names)


def in_vectors(stage: Stage, dtypes: Dtypes) -> bool:
    """Whether all that the stage computes can be written for vectors of cells.

    All its fields are of one dtype, in which all is computed, or of integers in int64.  What C has
    functions of its own for, of integers, is for one at a time.
    """
    return known(stage, dtypes).in_vectors


def _in_vectors(stage: Stage, dtypes: Dtypes) -> bool:
    fields = {dtype_of(dtypes, field) for field in (*stage.fields_read, *stage.updates)}
    if len(fields) > 1 or placed(stage) or stage.elements:
        return False
    (dtype,) = fields
    last = [*stage.updates.values()]
    if dtype in INTEGERS:   # the result alone may be narrowed
        last = [one.left if isinstance(one, Application) and one.symbol == dtype else one
                for one in last]  # fmt: skip
    operations, values = applied(last, dtypes, given_dtype(stage, dtypes))
    wanted = {dtype, "int64"} if dtype in INTEGERS else {dtype}
    return all(value.kind.dtype in wanted or value.kind.weak for value in values) and all(
        one.function.vectors and {one.dtype, one.result.dtype} <= wanted
        and not (dtype in INTEGERS and one.function.integers and one.function.integers.text)
        for one in operations
    )


def widened(stage: Stage, dtypes: Dtypes) -> bool:
    """Whether a stage computes integers in int64 alone, as patterns do."""
    return {*used_dtypes(stage, dtypes)} <= {*INTEGERS} and all(
        one.dtype == "int64" or one.function.converts for one in known(stage, dtypes).applied
    )


def helpers(stage: Stage, dtypes: Dtypes) -> list[str]:
    """C lines: the functions that the stage's expressions call, in the order of the table."""
    wide = known(stage, dtypes).wide_type
    signed = "int" if wide == "int" else "long"
    found: dict[tuple[str, str], str] = {}
    for one in known(stage, dtypes).applied:
        if one.function.converts in INTEGERS and one.dtype in FLOATS:
            text = _whole_number(one.function.converts, OPENCL_TYPES[one.dtype])
        elif one.dtype in FLOATS:
            text = one.function.helper.replace("VALUE", OPENCL_TYPES[one.dtype])
        else:
            helper = one.function.integers.helper if one.function.integers else ""
            name = signed if one.dtype == "int64" else "int"
            text = helper.replace("UVALUE", f"u{name}").replace("VALUE", name)
        if text:
            found[one.function.name, text] = text
    ordered = [text for row in FUNCTIONS for (name, text) in found if name == row]
    return "\n".join([*ordered, ""]).splitlines()


def _is_product(operation: Applied) -> bool:
    """Whether it is a division that becomes a multiplication."""
    divisor = operation.operands[-1].number if operation.function.name == "/" else None
    return divisor is not None and has_exact_reciprocal(divisor, operation.dtype)


def _whole_number(dtype: str, from_type: str) -> str:
    info, suffix = np.iinfo(dtype), "L" if dtype == "int64" else ""
    least = f"(-{info.max}{suffix} - 1)" if info.min else "0"
    text = WHOLE_NUMBER.replace("DTYPE", dtype).replace("FLOAT", from_type)
    text = text.replace("LEAST", least).replace("MOST", f"{info.max}{suffix}")
    return text.replace("VALUE", OPENCL_TYPES[dtype])
