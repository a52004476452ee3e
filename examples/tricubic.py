# SPDX-License-Identifier: MIT
"""Tricubic interpolation: a field is carried along, each cell read between 64 others.

    python examples/tricubic.py [CELLS] [PICTURE.png]
    mpiexec -n 4 python examples/tricubic.py

Semi-Lagrangian advection: a step takes for each cell what was (a, b, c) cells from it, all of them
from 0 to 1, by the cubic polynomials through four cells along each axis, one below and two above.
With half the spacing and twice as many steps, the error is about an eighth.
"""
import sys

import numpy as np

import controllers as ct

SIDE = range(-1, 3)                     # the cells along an axis
B, C = 0.25, 0.5                        # cells per step along y and x


def weights(a):                         # Lagrange's
    return (-1 / 6 * a * (a - 1) * (a - 2), 1 / 2 * (a + 1) * (a - 1) * (a - 2),
            -1 / 2 * (a + 1) * a * (a - 2), 1 / 6 * (a + 1) * a * (a - 1))


@ct.step
def carry(u, a, b, c):
    wz, wy, wx = map(weights, (a, b, c))
    return dict(u=sum(p * sum(q * sum(r * u[i, j, k] for k, r in zip(SIDE, wx))
                              for j, q in zip(SIDE, wy)) for i, p in zip(SIDE, wz)))


def blob(z, y, x):                      # on a ring of length 1
    return np.exp(np.cos(2 * np.pi * z) + np.cos(2 * np.pi * y) + np.cos(2 * np.pi * x) - 3)


def shear(y):                           # cells per step along z
    return 0.5 + 0.4 * np.sin(2 * np.pi * y)


def computation(n, **options):
    start = dict(u=blob, a=lambda z, y, x: shear(y), b=B, c=C)
    grid = ct.Grid(z=n, y=n, x=n, upper=1, boundary="periodic")
    return ct.Computation(carry, grid, **{**start, **options})


def error(n, n_steps):
    """The largest one, and the field, beside the exact solution; None on other ranks than 0."""
    with computation(n) as run:
        run.run(n_steps)
        u, (z, y, x) = run.u.get(), np.meshgrid(*run.u.coords.values(), indexing="ij")
    along = sum(shear(y + B * m / n) for m in range(n_steps))
    exact = blob(z + along / n, y + B * n_steps / n, x + C * n_steps / n)
    return u is not None and abs(u - exact).max(), u


def main(n=64, picture=None):
    (fine, u), (coarse, _) = error(n, n), error(n // 2, n // 2)
    if u is not None:
        print(f"error {fine:.1e}, on half the cells {coarse:.1e}")
        assert fine < coarse / 6, "of third order"
    if u is not None and picture:
        import matplotlib.pyplot as plt
        plt.imsave(picture, u[:, :, n // 2], origin="lower")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]), *sys.argv[2:3])
