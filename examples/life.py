# SPDX-License-Identifier: MIT
"""Conway's Game of Life on a torus, one byte per cell.

    python examples/life.py [CELLS] [PICTURE.png]
    mpiexec -n 4 python examples/life.py

A gun fires a glider every 30 generations.
"""
import sys

import numpy as np

import controllers as ct

GUN = """
........................O...........
......................O.O...........
............OO......OO............OO
...........O...O....OO............OO
OO........O.....O...OO..............
OO........O...O.OO....O.O...........
..........O.....O.......O...........
...........O...O....................
............OO......................"""


@ct.step
def life(alive):
    around = sum(alive[i, j] for i in (-1, 0, 1) for j in (-1, 0, 1)) - alive
    return dict(alive=np.where((around | alive) == 3, 1, 0))     # three, or two around a living one


def gun(n):
    cells = np.zeros((n, n), np.uint8)
    for y, row in enumerate(GUN.split()):
        cells[y + 2, 2 : 2 + len(row)] = [one == "O" for one in row]
    return cells


def computation(n, **options):
    grid = ct.Grid(y=n, x=n, boundary="periodic")
    return ct.Computation(life, grid, **{"alive": gun(n), "dtype": "uint8", **options})


def main(n=64, picture=None):
    with computation(n) as run:
        alive = [run.alive.sum()]
        for _ in run.steps(90, every=30):
            alive.append(run.alive.sum())
        cells = run.alive.get()
    if run.comm.rank == 0:
        print(f"{alive} cells are alive after 0, 30, 60 and 90 generations")
    assert alive == [36, 41, 46, 51], "a glider has five cells"
    if cells is not None and picture:
        import matplotlib.pyplot as plt
        plt.imsave(picture, cells, cmap="binary")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]), *sys.argv[2:3])
