# SPDX-License-Identifier: MIT
"""What expressions are given next to the cells of fields: scalars now, where cells are and lie."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from controllers.program.coordinates import Coordinates
from controllers.program.expression import Coordinate, Given, Index, Scalar
from controllers.program.program import Program
from hitmap.shape import Shape

Array: TypeAlias = npt.NDArray[Any]
_LEAST, _MOST = (float(size) for size in (np.finfo("float32").tiny, np.finfo("float32").max))


@dataclass(frozen=True)
class Positions:
    """The cells of a domain, of which those beyond the end of a periodic axis are seen again."""

    domain: Shape
    periodic: tuple[bool, ...]
    grid: Coordinates | None = None

    def along(self, node: Index | Coordinate, first: int, end: int) -> Array:
        """What the cells `first` <= i < `end` of its axis are given: int64, or float64.

        >>> Positions(Shape((0,), (4,)), (True,)).along(Index(0, 1), 1, 4).tolist()
        [2, 3, 0]
        """
        axis = node.axis
        cells = np.arange(first, end, dtype=np.int64) + node.offset
        if self.periodic[axis]:
            lower = self.domain.lower[axis]
            cells = (cells - lower) % self.domain.extent[axis] + lower
        if isinstance(node, Index):
            return cells
        assert self.grid is not None, "a program that uses coordinates has a grid"
        return self.grid.at(axis, cells, node.half)


class Surroundings:
    """What one place is given in the step that it computes; `change` begins another one.

    numbers: the scalars in float64, by name.  version: counts the changes.
    """

    def __init__(self, positions: Positions, numbers: Mapping[str, float]) -> None:
        self.positions = positions
        self.numbers = numbers
        self.version = 0

    @classmethod
    def usual(
        cls, program: Program, domain: Shape, periodic: tuple[bool, ...] | None = None
    ) -> Surroundings:
        """Those of a program as it begins, with the defaults of parameters, and 1 where none is."""
        wraps = (False,) * program.n_axes if periodic is None else periodic
        positions = Positions(domain, wraps, program.grid)
        known = program.rules.at(program.rules.usual, 0.0)      # without what is folded
        return cls(positions, {**dict.fromkeys(program.rules, 1.0), **known})

    def change(self, numbers: Mapping[str, float]) -> None:
        """From now on the scalars are `numbers`."""
        self.numbers = numbers
        self.version += 1

    def scalar(self, name: str, dtype: str) -> np.generic:
        """A scalar, rounded once to `dtype`; what is beyond its range becomes infinite."""
        number, kind = self.numbers[name], np.dtype(dtype).type
        rounded: np.generic
        if not number or _LEAST <= abs(number) <= _MOST:    # mostly: NumPy has nothing to say
            rounded = kind(number)
        else:
            with np.errstate(all="ignore"):
                rounded = kind(number)
        return rounded

    def value(self, node: Given, box: Shape, dtype: str) -> Any:
        """What the cells of `box` are given: a number, or an array that is broadcast over them.

        Indices are int64, all else is of `dtype`.
        """
        if isinstance(node, Scalar):
            return self.scalar(node.name, dtype)
        assert isinstance(node, (Index, Coordinate)), node
        axis = node.axis
        values = self.positions.along(node, box.lower[axis], box.upper[axis])
        if isinstance(node, Coordinate):
            with np.errstate(all="ignore"):
                values = values.astype(dtype)
        return values.reshape([-1 if at == axis else 1 for at in range(box.n_axes)])
