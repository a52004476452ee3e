# SPDX-License-Identifier: MIT
"""Sound in a box with rigid walls: pressure at cells, velocities at the half points between them.

    python examples/acoustic.py [CELLS] [PICTURE.png]
    mpiexec -n 4 python examples/acoustic.py

A standing wave, whose error against the analytic one falls by four when cells are halved.
"""
import sys

import numpy as np

import controllers as ct

PERIODS, KY, KX = 1.125, 2 * np.pi, 3 * np.pi       # 2 and 3 half waves from wall to wall
W = np.hypot(KY, KX)                                # the speed of sound is 1


def slope(f, axis):             # of cells it lies between them, of half points at cells
    return f.at(axis, 1 / 2) - f.at(axis, -1 / 2)


@ct.step
def push(vy, vx, p, *, c):
    return dict(vy=vy - c * slope(p, "y"), vx=vx - c * slope(p, "x"))


@ct.step
def squeeze(p, vy, vx, *, c):
    return dict(p=p - c * (slope(vy, "y") + slope(vx, "x")))


def vibrate(n):
    """The largest error after some periods, pressure and velocities; on rank 0, else None."""
    grid, n_steps = ct.Grid(y=n, x=n, upper=1), round(2 * n * PERIODS)
    dt = PERIODS * 2 * np.pi / W / n_steps
    early = -np.sin(W * dt / 2) / W                 # velocities are of half a step earlier
    start = dict(p=lambda y, x: np.cos(KY * y) * np.cos(KX * x),
                 vy=lambda y, x: KY * early * np.sin(KY * y) * np.cos(KX * x),
                 vx=lambda y, x: KX * early * np.cos(KY * y) * np.sin(KX * x))
    with ct.Computation([push, squeeze], grid, location=dict(vy="y", vx="x"), c=dt * n,
                        boundary=dict(p=ct.mirror()), **start) as run:      # no slope at the walls
        first = run.p.get()
        run.run(n_steps)
        p, vy, vx = run.p.get(), run.vy.get(), run.vx.get()
    return None if p is None else (abs(p - first * np.cos(2 * np.pi * PERIODS)).max(), p, vy, vx)


def main(n=96, picture=None):
    fine, coarse = vibrate(n), vibrate(n // 2)
    if fine is None:
        return
    (error, p, vy, vx), ratio = fine, coarse[0] / fine[0]
    print(f"vx at {vx.shape} points; error {error:.1e}, with half the cells {ratio:.2f} times")
    assert 3.7 < ratio < 4.3, "of second order"
    if picture:
        import matplotlib.pyplot as plt
        plt.imshow(p, origin="lower", extent=(0, n, 0, n), cmap="RdBu")
        some, at = (slice(2, None, 4),) * 2, np.arange(2, n, 4) + 0.5
        plt.quiver(at, at, (vx[:, 1:] + vx[:, :-1])[some], (vy[1:] + vy[:-1])[some])
        plt.savefig(picture)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]), *sys.argv[2:3])
