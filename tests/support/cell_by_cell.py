# SPDX-License-Identifier: MIT
"""What a random program means, computed one cell after another.

Of the package it uses the description alone: names, declared offsets, renames; neither expressions
nor boxes.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
from random_programs import Ends, Formula, Offset, ProgramCase

from controllers.program.program import INTEGERS


def cell_by_cell(case: ProgramCase) -> dict[str, npt.NDArray[Any]]:
    """The fields after all steps: cell after cell, by Python's integers or NumPy's scalars."""
    program, dtype = case.program, case.program.dtype
    fields = {name: dict(np.ndenumerate(array)) for name, array in case.arrays.items()}
    for _ in range(case.n_steps):
        begin = {name: dict(values) for name, values in fields.items()}
        for stage, formulas in zip(program.stages, case.formulas):
            new = {
                (name, cell): _stored(_value(formula, fields, cell, case), dtype)
                for name, formula in formulas.items()
                for cell in _computed(case, stage.offsets)
            }
            for (name, cell), value in new.items():
                fields[name][cell] = value
        fields.update({new: begin[old] for new, old in program.renames.items()})
    result = {name: np.empty(case.extent, dtype) for name in fields}
    for name, array in result.items():
        for cell, value in fields[name].items():
            array[cell] = value
    return result


def _computed(case: ProgramCase, offsets: Ends) -> Iterator[Offset]:
    """The cells where no offset leaves the array on an axis that is not periodic."""
    for cell in product(*map(range, case.extent)):
        axes = zip(cell, case.extent, offsets, case.periodic)
        if all(wraps or all(0 <= i + end < n for end in ends) for i, n, ends, wraps in axes):
            yield cell


def _value(
    formula: Formula, fields: Mapping[str, Mapping[Offset, Any]], cell: Offset, case: ProgramCase
) -> Any:
    """Integers are Python's, wrapped to 64 bits; floats are scalars of the dtype."""
    whole = case.program.dtype in INTEGERS
    number = int if whole else np.dtype(case.program.dtype).type
    if not isinstance(formula, tuple):
        return number(formula)
    if len(formula) == 2:
        name, offset = formula
        at = (i + step for i, step in zip(cell, offset))
        wrapped = (i % n if wraps else i for i, n, wraps in zip(at, case.extent, case.periodic))
        return number(fields[name][tuple(wrapped)])
    a, b = (_value(part, fields, cell, case) for part in formula[1:])
    symbol = formula[0]
    if symbol in "+-*":
        result = a + b if symbol == "+" else a - b if symbol == "-" else a * b
    elif not whole:
        result = a / b
    else:
        result = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) if b else 0
    return (result + 2**63) % 2**64 - 2**63 if whole else result


def _stored(value: Any, dtype: str) -> Any:
    if dtype not in INTEGERS:
        return value
    bits = np.iinfo(dtype).bits
    return (value + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)
