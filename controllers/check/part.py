# SPDX-License-Identifier: MIT
"""Cells that an operation touches, in the shadow of their memory."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from controllers.check.cells import Elements, Numbers, bits_of
from hitmap.shape import Shape
from hitmap.strided import Strided

Array = npt.NDArray[Any]
Reader = Callable[[str, Shape], Array]      # the cells of a field in a box


@dataclass(frozen=True)
class Touched:
    """Some cells that an operation touches: `where` in the shadow, `box` in global indices."""

    cells: Elements
    where: Strided
    box: Shape
    field: str


def content_of(parts: Sequence[Touched]) -> Numbers:
    """Stamps and bits of all cells of an access, one after another."""
    return np.concatenate([part.cells.content(part.where) for part in parts], axis=1)


def joined(stamps: Sequence[Numbers], values: Sequence[Array]) -> Numbers:
    """The same of arrays, of as many parts."""
    both = zip(stamps, map(bits_of, values), strict=True)
    return np.concatenate([np.reshape(pair, (2, -1)) for pair in both], axis=1)


def put(parts: Sequence[Touched], content: Numbers) -> None:
    """Stamps and bits of all cells of an access become these."""
    first = 0
    for part in parts:
        part.cells.put(part.where, content[:, first : first + part.where.n_cells])
        first += part.where.n_cells
