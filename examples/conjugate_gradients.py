# SPDX-License-Identifier: MIT
"""Poisson's equation by conjugate gradients, written for arrays.

    python examples/conjugate_gradients.py [CELLS]
    mpiexec -n 4 python examples/conjugate_gradients.py

`solve` knows nothing of places: it takes the fields of a computation as it takes NumPy's arrays,
and needs as many iterations for either.  Each statement is one sweep, where the fields are; a
scalar product is the exact sum of the products, on any number of places.
"""
import sys

import numpy as np

import controllers as ct

INNER = np.s_[1:-1, 1:-1]               # the outermost cells hold the boundary's zeros


def applied(p):
    """The negative Laplacian, times the square of the spacing."""
    return (4 * p[INNER] - p[:-2, 1:-1] - p[2:, 1:-1]) - p[1:-1, :-2] - p[1:-1, 2:]


def solve(x, r, p, q, tolerance=1e-8):
    """Hestenes and Stiefel (1952): from x = 0 with the residual r; how many iterations it takes."""
    p[...] = r
    rr = first = np.vdot(r, r)
    count = 0
    while rr > tolerance**2 * first:
        q[INNER] = applied(p)
        alpha = rr / np.vdot(p, q)
        x += alpha * p
        r -= alpha * q
        rr, before = np.vdot(r, r), rr
        p[...] = r + (rr / before) * p
        count += 1
    return count


def main(n=127):
    h = 1 / (n + 1)
    grid = ct.Grid(y=n + 2, x=n + 2, lower=-h / 2, upper=1 + h / 2)     # cell 0 is at 0
    y, x = np.meshgrid(*map(grid.coordinates, grid.axes), indexing="ij")
    solution = np.sin(np.pi * x) * np.sin(2 * np.pi * y) + x * (1 - x) * y * (1 - y)
    source = np.zeros_like(x)
    source[INNER] = applied(solution)

    with ct.Computation([], grid, x=0, r=source, p=0, q=0) as run:
        count = solve(run.x, run.r, run.p, run.q)
        error = abs(run.x - solution).max()
    usual = solve(np.zeros_like(x), source.copy(), np.zeros_like(x), np.zeros_like(x))
    if run.comm.rank == 0:
        print(f"{count} iterations, {usual} in NumPy; the largest error is {error:.1e}")
    assert abs(count - usual) <= 1 and error < 1e-6, (count, usual, error)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
