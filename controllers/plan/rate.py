# SPDX-License-Identifier: MIT
"""How fast a device computes a program, as far as shares and places depend on it."""
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rate:
    """How long a device takes for a step over some cells: `fixed_s + cell_s * cells` seconds.

    >>> Rate(1e-5, 2e-9).seconds(1000)
    1.2e-05
    """

    fixed_s: float
    cell_s: float

    def seconds(self, n_cells: float) -> float:
        """Of a step over so many cells."""
        return self.fixed_s + self.cell_s * n_cells
