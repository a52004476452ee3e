# SPDX-License-Identifier: MIT
"""Gray-Scott: two fields, one step.  python gray_scott.py | mpiexec -n 4 python gray_scott.py"""
import numpy as np

import controllers as ct


def laplacian(f):
    return f[-1, 0] + f[1, 0] + f[0, -1] + f[0, 1] - 4 * f  # f is this cell, f[i, j] a neighbour


@ct.step                    # positional: fields, all read at the old time; keyword-only: scalars
def gray_scott(u, v, *, Du=0.16, Dv=0.08, F=0.037, k=0.06):
    uvv = u * v * v
    new_u = u + Du * laplacian(u) - uvv + F * (1 - u)
    return dict(u=new_u, v=v + Dv * laplacian(v) + uvv - (F + k) * v)


def seed(y, x):             # coordinates of the cells that a place owns: nobody makes the whole
    return np.where(np.hypot(y - 0.5, x - 0.5) < 0.1, 0.25, 0.0)


grid = ct.Grid(y=256, x=256, lower=0, upper=1, boundary="periodic")
start = dict(u=lambda y, x: 1 - 2 * seed(y, x), v=seed)
with ct.Computation(gray_scott, grid, dtype="float32", **start) as run:
    run.run(5000, progress=True)
    run.run(1000, F=0.03, k=0.062)      # other scalars: nothing is built again
    run.v.save("gray_scott.npy")
