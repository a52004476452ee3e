# SPDX-License-Identifier: MIT
"""Poisson's equation by multigrid: V-cycles, in which coarser grids correct what finer ones leave.

    python examples/multigrid.py [LEVELS] [PICTURE.png]
    mpiexec -n 4 python examples/multigrid.py

Each level is a computation of its own.  A step of it adds the correction `e` of a coarser one,
relaxes red and black cells, and weighs what is left for the coarser one (Trottenberg, Oosterlee and
Schueller, Multigrid, 2001, 2.4).  However fine the grid, a cycle leaves an eighth of the residual.
"""
import sys

import numpy as np

import controllers as ct


def spread(f):                          # over a cell and the eight around it
    row = f + (f[0, -1] + f[0, 1]) / 2
    return row + (row[-1, 0] + row[1, 0]) / 2


def left_by(p, f):
    return f + p[-1, 0] + p[1, 0] + p[0, -1] + p[0, 1] - 4 * p


correct = ct.step(lambda p, e: dict(p=p + spread(e)))
relax = ct.step(lambda p, f: dict(p=p + left_by(p, f) / 4))
leave = ct.step(lambda p, f, r: dict(r=left_by(p, f), residual=ct.norm(left_by(p, f))))
weigh = ct.step(lambda r, w: dict(w=spread(r)))
steps = [correct, *(ct.step(relax, over=ct.parity(colour)) for colour in (0, 1)), leave, weigh]


def level(k, f=0):
    grid = ct.Grid(y=2**k - 1, x=2**k - 1, lower=0.5, boundary=ct.fixed(0))  # first cell at 1
    return ct.Computation(steps, grid, p=0, e=0, r=0, w=0, f=f)


def cycle(fine, *coarser):
    fine.run(1)
    if coarser:                         # a single cell is solved by relaxing it
        coarser[0].p[...], coarser[0].f[...] = 0, fine.w[1::2, 1::2]
        cycle(*coarser)
        fine.e[1::2, 1::2] = coarser[0].p[...]
        fine.run(1)
        fine.e[...] = 0
    return fine.results.residual


def main(n_levels=6, picture=None):
    h = 0.5 ** int(n_levels)
    # minus the Laplacian of x (1 - x) y (1 - y), for which differences are exact
    finest = level(int(n_levels), lambda y, x: 2 * h**3 * (x * (1 - h * x) + y * (1 - h * y)))
    levels, left = [finest, *map(level, range(int(n_levels) - 1, 0, -1))], [ct.norm(finest.f)]
    while left[-1] > 1e-8 * left[0]:
        left.append(cycle(*levels))
    if (p := finest.p.get()) is None:   # rank 0 has it
        return
    parabola = (at := h * np.arange(1, 1 / h)) * (1 - at)
    error = abs(p - np.outer(parabola, parabola)).max()
    print(f"{len(left) - 1} cycles; the largest error is {error:.1e}")
    assert len(left) <= 11 and error < 1e-8
    if picture:
        import matplotlib.pyplot as plt
        plt.imsave(picture, p, origin="lower")


if __name__ == "__main__":
    main(*sys.argv[1:3])
