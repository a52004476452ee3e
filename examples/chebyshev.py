# SPDX-License-Identifier: MIT
"""Poisson's equation by Chebyshev's iteration, written for arrays.

    python examples/chebyshev.py [CELLS]
    mpiexec -n 4 python examples/chebyshev.py

It knows the least and the greatest eigenvalue, and so needs no scalar products: nothing is asked
of all places but, now and then, whether the residual is small.  `solve` takes fields of a
computation as it takes NumPy's arrays, and needs as many iterations for either.
"""
import sys

import numpy as np

import controllers as ct

INNER = np.s_[1:-1, 1:-1]               # the outermost cells hold the boundary's zeros


def applied(p):
    """The negative Laplacian, times the square of the spacing."""
    return (4 * p[INNER] - p[:-2, 1:-1] - p[2:, 1:-1]) - p[1:-1, :-2] - p[1:-1, 2:]


def solve(x, r, d, least, greatest, tolerance=1e-8, check_every=10):
    """After Saad (2003), algorithm 12.1: from x = 0 with the residual r; how many iterations."""
    middle, half = (greatest + least) / 2, (greatest - least) / 2
    rho = half / middle
    d[...] = r / middle
    first, count = np.linalg.norm(r), 0
    while count % check_every or np.linalg.norm(r) > tolerance * first:
        x += d
        r[INNER] = r[INNER] - applied(d)
        before, rho = rho, 1 / (2 * middle / half - rho)
        d[...] = (rho * before) * d + (2 * rho / half) * r
        count += 1
    return count


def main(n=127):
    h = 1 / (n + 1)
    grid = ct.Grid(y=n + 2, x=n + 2, lower=-h / 2, upper=1 + h / 2)     # cell 0 is at 0
    y, x = np.meshgrid(*map(grid.coordinates, grid.axes), indexing="ij")
    solution = np.sin(np.pi * x) * np.sin(2 * np.pi * y) + x * (1 - x) * y * (1 - y)
    source = np.zeros_like(x)
    source[INNER] = applied(solution)
    ends = 8 * np.sin(np.pi * h / 2) ** 2, 8 * np.cos(np.pi * h / 2) ** 2

    with ct.Computation([], grid, x=0, r=source, d=0) as run:
        count = solve(run.x, run.r, run.d, *ends)
        error = abs(run.x - solution).max()
    usual = solve(np.zeros_like(x), source.copy(), np.zeros_like(x), *ends)
    ratio = np.sqrt(ends[0] / ends[1])
    bound = np.log(2e8) / np.log((1 + ratio) / (1 - ratio))     # of the textbook
    if run.comm.rank == 0:
        print(f"{count} iterations, {usual} in NumPy; the largest error is {error:.1e}")
    assert abs(count - usual) <= 1 and count <= bound + 10 and error < 1e-5, (count, usual, error)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
