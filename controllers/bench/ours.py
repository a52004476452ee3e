# SPDX-License-Identifier: MIT
"""The library itself, by the object that users have."""
from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from controllers.bench.comparator import Comparator
from controllers.bench.problem import Problem
from controllers.memory.tile import TileView
from controllers.program.program import Math
from controllers.run.computation import Computation
from hitmap.comm import SerialCommunicator


class Ours(Comparator):
    """A `Computation` on one device."""

    def __init__(
        self, selector: str, name: str, math: Math = "strict", steps_per_launch: int | None = None
    ) -> None:
        self.name, self.exact = name, math == "strict"
        self._options: dict[str, Any] = {
            "devices": selector, "math": math, "steps_per_launch": steps_per_launch,
            "comm": SerialCommunicator(),
        }  # fmt: skip
        self._computation: Computation | None = None

    def prepare(self, problem: Problem) -> None:
        self._computation = Computation(problem.program, problem.extent, **self._options)
        self.n_at_once = self._computation.plan.steps_per_launch

        def load(tile: TileView) -> None:
            tile.array[...] = problem.initial[tile.box.slices((0,) * len(problem.extent))]

        self._computation.load(load)

    def run(self, n_steps: int) -> None:
        self._prepared.run(n_steps)

    def result(self) -> npt.NDArray[Any]:
        made = self._prepared
        field = np.empty(made.domain.extent, made.program.dtype)
        made.gather(out=field)
        return field

    @property
    def configuration(self) -> str:
        """Of the kernel that computes most cells."""
        made = max(
            self._prepared.configurations(),
            key=lambda one: max(launch.n_cells for launch in one.launches),
        )
        return made.origin.removeprefix("generated, ")

    @property
    def _prepared(self) -> Computation:
        assert self._computation is not None, "it is prepared"
        return self._computation

    def close(self) -> None:
        if self._computation is not None:
            self._computation.close()
            self._computation = None
