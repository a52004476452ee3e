# SPDX-License-Identifier: MIT
"""Tasks that add what parts of a task have computed, on cores of the host or on a device."""
from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from controllers.kernel.variant import Kernel
from controllers.kgt.parameter import SCALAR_TYPES
from controllers.kgt.text.fixed import fixed_source
from controllers.pool.task import Task

Array: TypeAlias = "npt.NDArray[Any]"
_TYPES = {dtype: word for word, dtype in SCALAR_TYPES.items()}


class Sums(NamedTuple):
    """Of arrays of one dtype.

    cells: (total, value).  rows: (total, value, at), `at` numbers of rows of `total`.
    zero: (total).
    """

    cells: Task
    rows: Task
    zero: Task

    @classmethod
    def of(cls, dtype: np.dtype[Any]) -> Sums:
        """Made once."""
        return _sums(dtype.name)

    @staticmethod
    def on_devices(total: Array, at: object) -> bool:
        """Whether devices can add to rows of an array."""
        by_numbers = isinstance(at, np.ndarray)
        return total.dtype.name in _TYPES and 0 < total.ndim <= (2 if by_numbers else 4)


@lru_cache
def _sums(dtype: str) -> Sums:
    added = {"total": "updating"}
    cells = Task("add cells", ("total", "value"), roles=added)
    rows = Task("add rows", ("total", "value", "at"), roles=added)
    zero = Task("zero cells", ("total",), roles={"total": "writing"})
    cells.variant(_add_cells)
    rows.variant(_add_rows)
    zero.variant(_zero_cells)
    if dtype in _TYPES:
        cells.variant(_kernel("add_cells", dtype), over="total")
        rows.variant(_kernel("add_rows", dtype), over="value")
        zero.variant(_kernel("zero_cells", dtype), over="total")
    return Sums(cells, rows, zero)


def _kernel(name: str, dtype: str) -> Kernel:
    text = fixed_source(name).replace("VALUE", _TYPES[dtype])
    if name == "zero_cells":
        return Kernel.of(name, text, roles={"total": "writing"})
    return Kernel.of(name, text, roles={"total": "updating"})


def _add_cells(total: Array, value: Array) -> None:
    total += value


def _add_rows(total: Array, value: Array, at: Array) -> None:
    total[at.reshape(-1)] += value


def _zero_cells(total: Array) -> None:
    total[...] = 0
