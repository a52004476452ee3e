# SPDX-License-Identifier: MIT
"""Shallow water between walls: finite volumes (Rusanov), a boundary rule per field and side.

    python examples/shallow_water.py [STEPS] [PICTURE.png]
    mpiexec -n 4 python examples/shallow_water.py

A drop falls into a pool; what is checked is that no water is lost and that the pool stays
symmetric about its diagonal, as the drop is.
"""
import sys

import numpy as np

import controllers as ct

g, grid = 9.81, ct.Grid(y=200, x=200, lower=0, upper=10)


def fluxes(h, m, axis):                             # plain Python, traced; m: {"y": hv, "x": hu}
    v = m[axis] / h
    flux = [m[axis], *(m[a] * v + (g / 2 * h * h if a == axis else 0) for a in m)]
    fast = np.abs(v) + np.sqrt(g * h)
    fast = np.maximum(fast, fast.at(axis, 1))
    return [
        ct.stored((f + f.at(axis, 1) - fast * (q.at(axis, 1) - q)) / 2)
        for f, q in zip(flux, [h, *m.values()])
    ]


@ct.step
def shallow(h, hv, hu, *, dt):
    new = [h, hv, hu]
    for axis in grid.axes:
        for i, flux in enumerate(fluxes(h, {"y": hv, "x": hu}, axis)):
            new[i] = new[i] - dt / grid.dx * (flux - flux.at(axis, -1))
    return dict(h=new[0], hv=new[1], hu=new[2])


def drop(y, x):
    return 1 + 0.5 * np.exp(-2 * ((y - 3) ** 2 + (x - 3) ** 2))


walls = dict(
    h=ct.mirror(),
    hv=dict(y=ct.mirror(-1), x=ct.mirror()),
    hu=dict(y=ct.mirror(), x=ct.mirror(-1)),
)


def main(n_steps=600, picture=None):
    dt = 0.3 * grid.dx / (2 * np.sqrt(1.5 * g))     # within what the fastest wave allows
    with ct.Computation(shallow, grid, boundary=walls, dt=dt, h=drop, hv=0, hu=0) as run:
        before = run.h.get()
        run.run(n_steps, progress=True)
        after, time = run.h.get(), run.time
    if after is None:                               # rank 0 has them
        return
    print(f"after {time:.3f} s the water is {after.min():.4f} to {after.max():.4f} deep")
    assert abs(after.sum() / before.sum() - 1) < 1e-12, "water"
    assert np.allclose(after, after.T, atol=1e-9), "symmetry"
    if picture:
        import matplotlib.pyplot as plt
        plt.imsave(picture, after)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]), *sys.argv[2:3])
