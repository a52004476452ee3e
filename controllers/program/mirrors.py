# SPDX-License-Identifier: MIT
"""Mirrors at the ends of axes: what several steps make, in between, of the cells behind them.

A step of such a launch leaves no time to fill what lies outside, so the launch copies it.  What
lies behind any other end never changes, where steps can be combined at all.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from controllers.program.boundary import Boundary, Mirror, Rule
from hitmap.shape import Shape


@dataclass(frozen=True)
class Mirrors:
    """Per axis the sign of the mirror at its lower and at its upper end; 0: there is none.

    >>> print(Mirrors.of(Boundary.of([("mirror:-1", "keep"), "mirror"], 2), 2))
    Mirrors(signs=((-1, 0), (1, 1)))
    """

    signs: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, boundary: Boundary, n_axes: int) -> Mirrors:
        """Those of a field."""
        return cls(tuple((_sign(a), _sign(b)) for a, b in map(boundary.side, range(n_axes))))

    def __bool__(self) -> bool:
        return any(sign for ends in self.signs for sign in ends)

    @property
    def is_odd(self) -> bool:
        """Whether any of them changes the sign."""
        return any(sign < 0 for ends in self.signs for sign in ends)

    def renew(self, values: npt.NDArray[Any], box: Shape, inside: Shape) -> None:
        """In `values`, the cells of `box`, those behind mirrors become what is seen in these.

        inside: the cells that are computed, which end at the mirrors.  What lies beyond any other
        end stays as it is, as does what a mirror shows of it.

        >>> import numpy as np
        >>> line = np.array([9, 1, 2, 9])
        >>> ends = Mirrors(((1, -1),))
        >>> ends.renew(line, Shape((-1,), (3,)), Shape((0,), (2,)))
        >>> line.tolist()
        [1, 1, 2, -2]
        """
        for axis, (low, high) in enumerate(self.signs):
            # the last axis decides corners: on later ones this is for cells inside alone
            over = box
            for later in range(axis + 1, box.n_axes):
                over &= box.slab(later, inside.lower[later], inside.upper[later])
            first, last = inside.lower[axis], inside.upper[axis]
            below = [(low, first - k, first + k - 1) for k in range(1, first - box.lower[axis] + 1)]
            above = [(high, last + k - 1, last - k) for k in range(1, box.upper[axis] - last + 1)]
            for sign, at, seen in (*below, *above):
                if sign:
                    cells = over.slab(axis, seen, seen + 1).slices(box.lower)
                    behind = over.slab(axis, at, at + 1).slices(box.lower)
                    values[behind] = values[cells] if sign > 0 else -values[cells]


NO_MIRRORS = Mirrors()


def _sign(rule: Rule) -> int:
    return rule.sign if isinstance(rule, Mirror) else 0
