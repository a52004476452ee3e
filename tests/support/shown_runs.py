# SPDX-License-Identifier: MIT
"""A run that leaves checkpoints, an array and, if it is asked to, other output in this folder."""
from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

import controllers as ct
from hitmap import SerialCommunicator

GRID = ct.Grid(y=11, x=16, lower=(0, 2), upper=(5.5, 10), boundary="periodic")


@ct.step
def heat(u, v, *, k=0.2):
    return dict(u=u + k * (u[-1, 0] + u[1, 0] - 2 * u), v=v + 1)


def made(**options: Any) -> dict[int, npt.NDArray[Any]]:
    """A run of 8 steps with all kinds of files; u at steps that are kept."""
    found = {}
    with ct.Computation(
        heat, GRID, u=lambda y, x: np.sin(y) * x, v=0, dtype=dict(u="float64", v="int32"), dt=0.5,
        devices=["reference"] * 2, comm=SerialCommunicator(),
    ) as run:  # fmt: skip
        for now in run.steps(8, every=4, checkpoint=("kept", ct.every(steps=4)), **options):
            found[now.step] = now.u.get()
        np.save("u.npy", found[8])
    return found
