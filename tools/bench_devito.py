# SPDX-License-Identifier: MIT
"""Devito, for `python -m controllers bench --with tools/bench_devito.py`: C, OpenMP, in blocks."""
from __future__ import annotations

from typing import Any

import devito
import numpy as np
import numpy.typing as npt

from controllers.bench import Comparator, Problem


class DevitoLoop(Comparator):
    """An operator of one equation over the inner cells."""

    name = "Devito"
    configuration = "advanced, openmp, blockinner"

    def prepare(self, problem: Problem) -> None:
        devito.configuration["log-level"] = "ERROR"
        grid = devito.Grid(shape=problem.extent, dtype=problem.initial.dtype.type)
        reach = max(max(ends) for ends in problem.program.reach)
        u = devito.TimeFunction(name="u", grid=grid, space_order=2 * reach, time_order=1)
        u.data[:] = problem.initial
        total = sum(
            weight * u.subs({axis: axis + step * axis.spacing
                             for axis, step in zip(grid.dimensions, offset)})
            for offset, weight in problem.terms.items()
        )  # fmt: skip
        equation = devito.Eq(u.forward, total / problem.factor)
        options = ("advanced", {"openmp": True, "blockinner": True})
        self._operator = devito.Operator([equation], opt=options)
        self._ends = {
            f"{axis.name}_{end}": value
            for axis, low, high in zip(grid.dimensions, problem.box.lower, problem.box.upper)
            for end, value in (("m", low), ("M", high - 1))
        }
        self._u, self._level = u, 0     # which of the two levels holds the field

    def run(self, n_steps: int) -> None:
        first = self._level
        self._operator.apply(time_m=first, time_M=first + n_steps - 1, **self._ends)
        self._level = (first + n_steps) % 2

    def result(self) -> npt.NDArray[Any]:
        return np.array(self._u.data[self._level])


COMPARATORS = (DevitoLoop(),)
