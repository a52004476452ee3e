# SPDX-License-Identifier: MIT
"""Bodies that pull each other, points beside centres: for arrays of NumPy and of a workspace."""
from __future__ import annotations

from typing import Any

import item_functions
import numpy as np

import controllers as ct

pull, nearest = ct.each(item_functions.pull), ct.each(item_functions.nearest)


@ct.each
def halves(x: ct.Row, y: ct.Row) -> ct.Row:
    return dict(mean=(x + y) / 2, far=abs(x - y).max())


def moved(x: Any, v: Any, mass: Any, n_steps: int) -> None:
    """Some steps of the bodies, in place."""
    for _ in range(n_steps):
        v += 0.01 * pull(x, x, mass)
        x += 0.02 * v


def bodies(n: int) -> tuple[Any, Any, Any]:
    """Places, velocities, masses."""
    random = np.random.default_rng(n)
    places, speeds = random.normal(size=(2, n, 3)).astype(np.float32)
    return places, speeds, random.uniform(0.5, 1.5, n).astype(np.float32)
