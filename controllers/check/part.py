# SPDX-License-Identifier: MIT
"""Parts: the cells of one box that an operation touches, in the shadow of their memory."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from controllers.check.cells import Cells, Numbers
from hitmap.shape import Shape
from hitmap.strided import Strided


@dataclass(frozen=True)
class Part:
    """Some cells that an operation touches: `where` in the shadow, `box` in global indices."""

    cells: Cells
    where: Strided
    box: Shape
    field: str


def content_of(parts: Sequence[Part]) -> Numbers:
    """Stamps and bits of all cells of an access, one after another."""
    return np.concatenate([part.cells.content(part.where) for part in parts], axis=1)


def put_content(parts: Sequence[Part], content: Numbers) -> None:
    """Give the cells of an access, one after another, these stamps and bits."""
    first = 0
    for part in parts:
        part.cells.put(part.where, content[:, first : first + part.where.n_cells])
        first += part.where.n_cells
