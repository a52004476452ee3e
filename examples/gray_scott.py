# SPDX-License-Identifier: MIT
"""Gray-Scott reaction-diffusion: two fields, one step, scalars that change.

    python examples/gray_scott.py [STEPS] [PICTURE.png]
    mpiexec -n 4 python examples/gray_scott.py

Spots divide and fill the square; checked against plain NumPy, bit for bit, in the first steps.
"""
import sys

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


def by_hand(u, v, n_steps, Du=0.16, Dv=0.08, F=0.037, k=0.06):
    """The same in NumPy."""
    for _ in range(n_steps):
        around = [sum(np.roll(f, s, a) for a in (0, 1) for s in (1, -1)) - 4 * f for f in (u, v)]
        uvv = u * v * v
        u, v = u + Du * around[0] - uvv + F * (1 - u), v + Dv * around[1] + uvv - (F + k) * v
    return u, v


def main(n_steps=5000, picture=None):
    grid = ct.Grid(y=256, x=256, lower=0, upper=1, boundary="periodic")
    start = dict(u=lambda y, x: 1 - 2 * seed(y, x), v=seed)
    with ct.Computation(gray_scott, grid, dtype="float32", **start) as run:
        before = np.asarray(run.u), np.asarray(run.v)
        run.run(10)
        assert np.array_equal(run.v, by_hand(*before, 10)[1]), "the bits of NumPy"
        run.run(n_steps, progress=True)
        run.run(n_steps // 5, F=0.03, k=0.062)      # other scalars: nothing is built again
        image = run.v.get()                         # on rank 0
    if image is not None:
        print(f"v is {image.mean():.4f} on average, {image.max():.4f} at most")
        if picture:
            import matplotlib.pyplot as plt
            plt.imsave(picture, image)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]), *sys.argv[2:3])
