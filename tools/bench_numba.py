# SPDX-License-Identifier: MIT
"""Numba, for `python -m controllers bench --with tools/bench_numba.py`: plain loops, parallel.

The loops are written for the stencil, as Numba's documentation advises: no table of offsets.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

from controllers.bench.host import TwoArrays
from controllers.bench.problem import Problem


class NumbaLoops(TwoArrays):
    """`prange` over the first axis."""

    name = "Numba"
    configuration = "njit, parallel"

    def prepare(self, problem: Problem) -> None:
        super().prepare(problem)
        self._sweep = compiled(problem)
        self._sweep(*self._levels)      # compiles; the new level is written anew by the first step

    def run(self, n_steps: int) -> None:
        for _ in range(n_steps):
            self._sweep(*self._levels)
            self._levels.reverse()


def compiled(problem: Problem) -> Callable[..., None]:
    """The sweep from one array to another."""
    scope: dict[str, Any] = {"prange": numba.prange, "number": problem.initial.dtype.type}
    exec(source(problem), scope)
    sweep: Callable[..., None] = numba.njit(parallel=True)(scope["sweep"])
    return sweep


def source(problem: Problem) -> str:
    """Python that Numba compiles."""
    box = problem.box
    axes = "ijk"[: box.n_axes]
    lines = ["def sweep(u, new):"]
    for depth, (axis, low, high) in enumerate(zip(axes, box.lower, box.upper)):
        loop = "range" if depth else "prange"
        lines.append(f"{'    ' * (depth + 1)}for {axis} in {loop}({low}, {high}):")
    terms = []
    for offset, weight in problem.terms.items():
        at = ", ".join(f"{axis}{step:+d}" for axis, step in zip(axes, offset))
        terms.append(f"u[{at}]" if weight == 1 else f"number({weight!r}) * u[{at}]")
    value = f"({' + '.join(terms)}) / number({problem.factor!r})"
    lines.append(f"{'    ' * (len(axes) + 1)}new[{', '.join(axes)}] = {value}")
    return "\n".join(lines) + "\n"


COMPARATORS = (NumbaLoops(),)
