# SPDX-License-Identifier: MIT
"""Lid-driven cavity by a lattice Boltzmann method (D2Q9, BGK): a struct of nine populations.

    mpiexec -n 4 python examples/lattice_boltzmann.py [STEPS] [PICTURE.png]

Populations fly, come back from walls, relax; checked against Ghia, Ghia and Shin (1982), Re 100.
"""
import sys

import numpy as np

import controllers as ct

LID, REYNOLDS = 0.1, 100
SHARE = {(dy, dx): (16, 4, 1)[abs(dy) + abs(dx)] / 36 for dy in (-1, 0, 1) for dx in (-1, 0, 1)}
NAME = {way: f"f{i}" for i, way in enumerate(SHARE)}
Cell = np.dtype([(name, "f8") for name in NAME.values()])
GHIA = {0.8047: -0.24533, 0.2344: 0.17527}, {0.9766: 0.84123, 0.5: -0.20581, 0.1719: -0.1015}


def velocity(q):                        # of populations by their ways: along y and x
    return [sum(way[a] * q[way] for way in q if way[a]) / sum(q.values()) for a in (0, 1)]


def computation(n, **options):
    omega = 1 / (3 * LID * n / REYNOLDS + 0.5)          # of the viscosity

    @ct.step
    def flow(q, *, y, x):
        walls = {(0, -1): x > n - 1, (0, 1): x < 1, (-1, 0): y > n - 1, (1, 0): y < 1}
        came = {(dy, dx): getattr(q[-dy, -dx], name) for (dy, dx), name in NAME.items()}
        for dy, dx in SHARE:
            for side in [one for one in walls if one in ((dy, 0), (0, dx))]:
                back = getattr(q, NAME[-dy, -dx]) + (side[0] < 0) * 6 * SHARE[dy, dx] * dx * LID
                came[dy, dx] = np.where(walls[side], back, came[dy, dx])    # the lid moves along x
        rho, (v, u) = sum(came.values()), velocity(came)
        for way, one in came.items():
            a = 3 * (way[0] * v + way[1] * u)
            even = SHARE[way] * rho * (1 + a + a * a / 2 - 1.5 * (v * v + u * u))
            came[way] = one + omega * (even - one)
        return dict(q=ct.struct(Cell, **{NAME[way]: one for way, one in came.items()}))

    grid = ct.Grid(y=n, x=n, boundary=ct.fixed(0))      # nothing comes from beyond the walls
    rest = {NAME[way]: SHARE[way] for way in SHARE}
    return ct.Computation(flow, grid, **(dict(q=rest, dtype=Cell) | options))


def main(n_steps=8000, picture=None, n=64):
    with computation(n) as run:
        run.run(n_steps, progress=True)
        q = {way: run[f"q_{name}"].get() for way, name in NAME.items()}
    if q[0, 0] is not None:             # rank 0 has them
        (v, u), middle = np.array(velocity(q)) / LID, slice(n // 2 - 1, n // 2 + 1)
        lines = v[middle].mean(axis=0), u[:, middle].mean(axis=1)   # along x, along y
        error = max(abs(np.interp(at * n, np.arange(n) + 0.5, line) - right)
                    for line, table in zip(lines, GHIA) for at, right in table.items())
        print(f"the velocities on the centre lines differ by {error:.4f} from Ghia's")
        assert n_steps < 8000 or error < 0.005, "the published velocities"
        if picture:
            import matplotlib.pyplot as plt
            plt.imsave(picture, np.hypot(u, v), origin="lower")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]), *sys.argv[2:3])
