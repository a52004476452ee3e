# SPDX-License-Identifier: MIT
"""The stage of programs that compute nothing in steps: their fields are set and read as arrays."""
from __future__ import annotations

from dataclasses import dataclass

from controllers.program.stage import Boundaries, Stage
from hitmap.shape import Shape


@dataclass(frozen=True, eq=False)
class Idle(Stage):
    """It computes no cell."""

    def updated(
        self, domain: Shape, periodic: tuple[bool, ...], boundaries: Boundaries | None = None
    ) -> Shape:
        """No cell."""
        return Shape(domain.lower, domain.lower)
