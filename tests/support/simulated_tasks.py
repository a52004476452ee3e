# SPDX-License-Identifier: MIT
"""Tasks whose times are known, and executions of them: noisy, and some of them disturbed."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from controllers.estimates.task_key import Case

SHAPES = ("line", "power", "n log n", "serial part")
DISTURBED = 0.1     # of the executions


@dataclass(frozen=True)
class SimulatedTask:
    """shape: how its time grows with size and units."""

    shape: str
    start_s: float
    each_s: float
    exponent: float
    serial: float

    @classmethod
    def drawn(cls, shape: str, rng: np.random.Generator) -> SimulatedTask:
        return cls(
            shape, 10 ** rng.uniform(-5, -3), 10 ** rng.uniform(-9, -7),
            float(rng.choice([1, 1.5, 2, 3])), rng.uniform(0, 0.3),
        )  # fmt: skip

    def seconds(self, case: Case) -> float:
        """Of an execution that nothing disturbs."""
        n = case.size
        if self.shape == "power":
            return self.start_s + self.each_s * 1e6 * (n / 1e6) ** self.exponent
        if self.shape == "n log n":
            return self.start_s + self.each_s * n * np.log2(n) / 20
        serial = self.serial if self.shape == "serial part" else 0.0
        return self.start_s + self.each_s * n * (serial + (1 - serial) / case.units)


def drawn_case(shape: str, rng: np.random.Generator) -> Case:
    size = float(np.exp(rng.uniform(np.log(1e5), np.log(1e7))).round())
    return Case(size, int(rng.choice([1, 2, 4])) if shape == "serial part" else 1)


def executions(
    n: int, case: Callable[[int], Case], task: SimulatedTask, noise: float, rng: np.random.Generator
) -> Iterator[tuple[Case, float]]:
    """So many, a tenth of which take 2 to 20 times as long, as the machine was busy."""
    disturbed = {*rng.choice(n, round(DISTURBED * n), replace=False)}
    for number in range(n):
        here = case(number)
        seconds = task.seconds(here) * np.exp(noise * rng.normal())
        yield here, seconds * (rng.uniform(2, 20) if number in disturbed else 1)
