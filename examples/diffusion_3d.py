# SPDX-License-Identifier: MIT
"""Diffusion in 3D, seven points: two waves on a torus die away, each at its own rate.

    python examples/diffusion_3d.py [CELLS ACROSS] [PICTURE.png]
    mpiexec -n 4 python examples/diffusion_3d.py

A wave decays as exp(-KAPPA k k t); on the grid it bends less, by a share of (k dx)^2 / 12.
"""
import sys

import numpy as np

import controllers as ct

KAPPA, UNTIL = 0.1, 0.05
WAVES = {(1, 0, 2): 1.0, (1, 3, 1): 0.5}        # how often along z, y, x, and how high at first


@ct.step
def diffuse(u, *, dt):
    return dict(u=u + dt * KAPPA * ct.laplacian(u))


def exact(z, y, x, t=0.0):
    return sum(high * np.cos(2 * np.pi * (n[0] * z + n[1] * y + n[2] * x))
               * np.exp(-KAPPA * (2 * np.pi) ** 2 * np.dot(n, n) * t) for n, high in WAVES.items())


def computation(n, **options):
    grid = ct.Grid(z=n, y=n, x=n, upper=1, boundary="periodic")
    dt = grid.dx**2 / KAPPA / 8                 # half of what is stable, and more
    return ct.Computation(diffuse, grid, **(dict(dt=dt, dtype="f4", u=exact) | options))


def main(n=64, picture=None):
    with computation(n) as run:
        run.run(until=UNTIL)
        u, at = run.u.get(), run.u.coords
        right = exact(at["z"][:, None, None], at["y"][:, None], at["x"], run.time)
    if u is None:                               # rank 0 has it
        return
    error = abs(u - right).max() / abs(right).max()
    print(f"{run.step} steps, {error:.1e} of the highest wave off")
    assert error < 30 / n**2, "of second order"
    if picture:
        import matplotlib.pyplot as plt
        plt.imsave(picture, u[0], origin="lower")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]), *sys.argv[2:3])
