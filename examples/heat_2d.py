# SPDX-License-Identifier: MIT
"""2D heat from a NumPy array.

    python examples/heat_2d.py
    mpiexec -n 2 python examples/heat_2d.py

A plate of 1024 x 1024 cells with a hot disk in its middle; the rim keeps its temperature, cold
but for one warm edge.  Explicit Euler for du/dt = a (d2u/dx2 + d2u/dy2) with a dt / dx^2 = 1/8:
a step adds an eighth of the differences to the four neighbours, u' = (n + w + 4 u + e + s) / 8.
"""
import numpy as np

import controllers

N, STEPS, CHECKED = 1024, 500, 20
HEAT = controllers.Stencil.of("heat", pattern=[[0, 1, 0], [1, 4, 1], [0, 1, 0]], factor=8)


def plate() -> np.ndarray:
    """Temperatures between 0 and 1."""
    y, x = np.mgrid[0:N, 0:N] / (N - 1)
    field = np.where((x - 0.5) ** 2 + (y - 0.5) ** 2 < 0.1, 1.0, 0.0)
    field[0, :] = 0.5
    return field.astype(np.float32)


def main() -> None:
    start = plate()
    with controllers.Computation(HEAT, start) as heat:      # the array is the initial field
        heat.run(CHECKED)               # a look after a few steps ...
        early = heat.gather()
        heat.run(STEPS - CHECKED)       # ... and on
        final = heat.gather()
        program, report = heat.program, heat.report()

    if early is not None and final is not None:     # rank 0 has them
        right = controllers.reference_run(program, start, CHECKED, (False, False))
        assert np.array_equal(early, right), "the bits of the NumPy reference"
        print(f"{final[N // 2, N // 2]:.4f} in the middle, {final.mean():.4f} on average")
        print(report.table())
        gb_per_s = report.cells_per_s * program.bytes_per_cell / 1e9
        print(f"{report.cells_per_s:.3g} cells/s, {gb_per_s:.1f} GB/s to read and write each once")


if __name__ == "__main__":
    main()
