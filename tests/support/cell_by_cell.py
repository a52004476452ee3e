# SPDX-License-Identifier: MIT
"""What a random program means, computed one cell after another.

Of the package it uses the description alone: names, declared offsets, renames; neither expressions
nor boxes.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
from random_programs import FUNCTIONS, Ends, Formula, Offset, ProgramCase, is_read

from controllers.program.program import DTYPES


def cell_by_cell(case: ProgramCase) -> dict[str, npt.NDArray[Any]]:
    """The fields after all steps: cell after cell, by NumPy on arrays of one value."""
    program, dtypes = case.program, case.program.dtypes
    fields = {name: dict(np.ndenumerate(array)) for name, array in case.arrays.items()}
    for _ in range(case.n_steps):
        begin = {name: dict(values) for name, values in fields.items()}
        for stage, formulas in zip(program.stages, case.formulas):
            new = {
                (name, cell): np.asarray(_value(formula, fields, cell, case)).astype(dtypes[name])
                for name, formula in formulas.items()
                for cell in _computed(case, stage.offsets)
            }
            for (name, cell), value in new.items():
                fields[name][cell] = value.item()
        fields.update({new: begin[old] for new, old in program.renames.items()})
    result = {name: np.empty(case.extent, dtypes[name]) for name in fields}
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
    """An array of one value, so that NumPy promotes by dtypes alone; a number stays Python's."""
    if not isinstance(formula, tuple):
        return formula
    if is_read(formula):
        name, offset = formula
        at = (i + step for i, step in zip(cell, offset))
        wrapped = (i % n if wraps else i for i, n, wraps in zip(at, case.extent, case.periodic))
        return np.array([fields[name][tuple(wrapped)]], case.program.dtypes[name])
    symbol, *parts = formula
    values = [_value(part, fields, cell, case) for part in parts]
    if symbol in DTYPES:
        return values[0].astype(symbol)
    if symbol == "power":
        return values[0] * values[0] * values[0]
    condition, operands = (values[:1], values[1:]) if symbol == "where" else ([], values)
    with np.errstate(all="ignore"):
        return _FUNCTIONS.get(symbol, FUNCTIONS[symbol])(*condition, *_met(operands))


def _met(operands: list[Any]) -> list[Any]:
    """Numbers in the dtype of what they meet, or float64 if that is an integer and they are not."""
    arrays = [one.dtype for one in operands if isinstance(one, np.ndarray)]
    if not arrays:
        return operands
    dtype = np.result_type(*arrays)
    if dtype.kind != "f" and any(isinstance(one, float) for one in operands):
        dtype = np.dtype("float64")
    return [one if isinstance(one, np.ndarray) else np.array([one], dtype) for one in operands]


def _larger(a: Any, b: Any) -> Any:
    """0 is above -0."""
    return np.where((a > b) | ((a == b) & ~np.signbit(a)), a, b)


def _smaller(a: Any, b: Any) -> Any:
    return np.where((a < b) | ((a == b) & np.signbit(a)), a, b)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "floor": lambda x: np.floor(x).astype(x.dtype),     # of integers NumPy < 2.1 makes floats
    "maximum": _larger,
    "minimum": _smaller,
    "clip": lambda x, least, most: _smaller(_larger(x, least), most),
}
