# SPDX-License-Identifier: MIT
"""The low-level API: two kernels, a host task, a selection.

    python examples/low_level.py [DEVICE]

A wave on a square membrane, u'' = c^2 (d2u/dx2 + d2u/dy2), by leapfrog with (c dt/dx)^2 = 1/4:
new = 2 u - before + (sum of the four neighbours - 4 u) / 4.  Kernel "wave" computes the inner
cells, a host task moves the left edge, kernel "energy" measures: what waits for what, and which
cells move between host and device, follows from the tiles and selections that they name.
"""
import sys

import numpy as np

from controllers import Controller, Kernel, writing
from hitmap import Shape

N, STEPS = 301, 400

WAVE = Kernel.of("wave", """
    __kernel void wave(__global const float *restrict u, __global float *restrict before,
                       TILE(u), TILE(before), BOX)
    {
        CELL;
        const float sum = NEAR(u, -1, 0) + NEAR(u, 0, -1) + NEAR(u, 0, 1) + NEAR(u, 1, 0);
        HERE(before) = 2 * HERE(u) - HERE(before) + (sum - 4 * HERE(u)) * 0.25f;
    }""")  # fmt: skip
ENERGY = Kernel.of("energy", """
    __kernel void energy(__global const float *restrict u, __global float *restrict e,
                         TILE(u), TILE(e), BOX)
    {
        CELL;
        const float dx = NEAR(u, 0, 1) - HERE(u), dy = NEAR(u, 1, 0) - HERE(u);
        HERE(e) = dx * dx + dy * dy;
    }""", roles={"e": "writing"})  # fmt: skip


def reference() -> np.ndarray:
    """The same in NumPy, the same operations in the same order."""
    u, before = np.zeros((2, N, N), np.float32)
    for step in range(STEPS):
        total = u[:-2, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] + u[2:, 1:-1]
        here = u[1:-1, 1:-1]
        before[1:-1, 1:-1] = 2 * here - before[1:-1, 1:-1] + (total - 4 * here) / 4
        before[:, 0] = np.sin(step / 10)
        u, before = before, u
    return u


def main(device: str = "") -> None:
    box = Shape.of_extent((N, N))
    inner, left = Shape((1, 1), (N - 1, N - 1)), Shape((0, 0), (N, 1))
    with Controller(device) as controller:
        u, before = controller.tile(box), controller.tile(box)
        e = controller.tile(inner, kind="internal")     # the host never sees all of it
        for step in range(STEPS):
            controller.launch(WAVE, inner, u=u, before=before.select(inner))
            shake = np.float32(np.sin(step / 10))       # beside the kernel: no cell in common
            controller.host_task(lambda edge, to=shake: edge.fill(to), writing(before.select(left)))
            controller.swap(u, before)
        controller.launch(ENERGY, inner, u=u, e=e)
        print(f"on {controller.device.name}: {e.read().sum():.3f} in the gradients")
        assert np.array_equal(u.read(), reference()), "the bits of NumPy"


if __name__ == "__main__":
    main(*sys.argv[1:])
