# SPDX-License-Identifier: MIT
"""What is measured: a stencil, a dtype, the extent of a field with fixed boundaries."""
from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from controllers.kgt.text.comment import weighted_sum
from controllers.language.weights import Stencil
from controllers.program.program import Program
from hitmap.shape import Shape

_NEAR = [0, 1, 0, 1, 0, 1, 0, 1, 0]
_HEAT = [0, 0, 0, 0, 1, 0, 0, 0, 0]
_FAR = [0, 0, 1, 0, 0, 0, 0, 4, 0, 0, 1, 4, 2, 4, 1, 0, 0, 4, 0, 0, 0, 0, 1, 0, 0]
_PLANES = [1 + abs(z) + 2 * abs(y) for z in (-1, 0, 1) for y in (-1, 0, 1) for _ in range(3)]
# Star and compact, near and far, asymmetric, in two and three dimensions
STENCILS = {
    "2d4": Stencil.of("s", [(-1, 1)] * 2, _NEAR, 4),
    "2d9c": Stencil.of("s", [(-1, 1)] * 2, [1, 4, 1, 4, 20, 4, 1, 4, 1], 40),
    "2d9s": Stencil.of("s", [(-2, 2)] * 2, _FAR, 22),
    "2d5a": Stencil.of("s", [(-2, 0)] * 2, [0, 0, 1, 0, 0.5, 2, 1, 2, 0], 6.5),
    "3d7": Stencil.of("s", [(-1, 1)] * 3, [*_HEAT, 0, 1, 0, 1, 2, 1, 0, 1, 0, *_HEAT], 8),
    "3d27": Stencil.of("s", [(-1, 1)] * 3, _PLANES, 81),
}
SIZES = {
    "cpu": ((8192, 8192), (384, 384, 384)),
    "gpu": ((16384, 16384), (640, 640, 640)),
    "quick": ((200, 200), (40, 40, 40)),
}
_PERIOD = 1_048_573     # of the initial values; prime: rows and planes do not repeat


@dataclass(frozen=True)
class Problem:
    """One of STENCILS on a field of `extent` cells of `dtype`."""

    stencil: str
    dtype: str
    extent: tuple[int, ...]

    def __str__(self) -> str:
        """
        >>> str(Problem("2d4", "float32", (64, 32)))
        '2d4 float32 64x32'
        """
        return f"{self.stencil} {self.dtype} {'x'.join(map(str, self.extent))}"

    @cached_property
    def program(self) -> Program:
        return STENCILS[self.stencil].program(self.dtype)

    @property
    def terms(self) -> dict[tuple[int, ...], float]:
        """The weight per offset, in the order of the sum."""
        return self._sum[0]

    @property
    def factor(self) -> float:
        """What the sum is divided by."""
        return self._sum[1]

    @cached_property
    def _sum(self) -> tuple[dict[tuple[int, ...], float], float]:
        found = weighted_sum(self.program.stages[0].expression)
        assert found is not None, "a stencil is a weighted sum"
        return found

    @property
    def domain(self) -> Shape:
        return Shape.of_extent(self.extent)

    @property
    def box(self) -> Shape:
        """The cells that a step computes."""
        return self.program.updated(self.domain, (False,) * len(self.extent))

    @property
    def nbytes(self) -> int:
        """Of the field."""
        return prod(self.extent) * np.dtype(self.dtype).itemsize

    @cached_property
    def initial(self) -> npt.NDArray[Any]:
        """The field before the first step, values in [0, 1); not to be written to."""
        values = np.random.default_rng(0).random(_PERIOD, np.float32).astype(self.dtype)
        field: npt.NDArray[Any] = np.resize(values, self.extent)
        field.flags.writeable = False
        return field

    def tolerance(self, n_steps: int) -> float:
        """The error of a value after `n_steps` steps, where operations are rounded otherwise.

        All weights are positive and their sum is the factor: values stay in [0, 1).
        """
        roundings = self.program.flops_per_cell + 2
        return float(2 * n_steps * roundings * np.finfo(self.dtype).eps)
