# SPDX-License-Identifier: MIT
"""Poisson's equation by red-black relaxation: every second cell at a time.

    python examples/red_black.py [SWEEPS] [PICTURE.png]
    mpiexec -n 4 python examples/red_black.py

A sweep computes the cells of one colour, whose neighbours are all of the other one, then the
others; over-relaxed, sweeps as many as five times the cells of a row suffice.  The right-hand side
is that of a known solution, which the result is checked against.
"""
import sys

import numpy as np

import controllers as ct

n = 96
grid = ct.Grid(y=n, x=n, lower=0, upper=1, boundary=ct.mirror(-1))      # 0 at the walls' faces
OMEGA = 2 / (1 + np.sin(np.pi / n))     # the best there is, after Young (1954)


def solution(y, x):
    return np.sin(np.pi * x) * np.sin(2 * np.pi * y)


def source(y, x):                       # what the Laplacian of the solution is
    return -5 * np.pi**2 * solution(y, x)


@ct.step
def relax(u, f):
    around = u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1]
    return dict(u=u + OMEGA * ((around - grid.dx**2 * f) / 4 - u))


def main(n_sweeps=5 * n, picture=None):
    red, black = (ct.step(relax, over=ct.parity(colour)) for colour in (0, 1))
    with ct.Computation([red, black], grid, u=0, f=source) as run:
        run.run(n_sweeps, progress=True)
        u = run.u.get()
    if u is None:                       # rank 0 has it
        return
    y, x = (grid.coordinates(axis) for axis in grid.axes)
    error = abs(u - solution(y[:, None], x)).max()
    print(f"{n_sweeps} sweeps; the largest error is {error:.1e}")
    assert n_sweeps < 4 * n or error < 4 / n**2, "second order"
    if picture:
        import matplotlib.pyplot as plt
        plt.imsave(picture, u, origin="lower")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]), *sys.argv[2:3])
