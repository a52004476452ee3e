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


def difference(f, axis):        # of two cells it lies between them; of two half points at a cell
    return f.at(axis, 1 / 2) - f.at(axis, -1 / 2)


def pressure(y, x, t=0.0):
    return np.cos(KY * y) * np.cos(KX * x) * np.cos(W * t)


def vibrate(n):
    """Pressure, velocities and the largest error of the pressure after some periods."""
    grid = ct.Grid(y=n, x=n, upper=1)

    @ct.step
    def push(vy, vx, p, *, dt):
        return dict(vy=vy - dt / grid.dy * difference(p, "y"),
                    vx=vx - dt / grid.dx * difference(p, "x"))

    @ct.step
    def squeeze(p, vy, vx, *, dt):
        return dict(p=p - dt * (difference(vy, "y") / grid.dy + difference(vx, "x") / grid.dx))

    n_steps = round(2 * n * PERIODS)
    dt = PERIODS * 2 * np.pi / W / n_steps
    early = -np.sin(W * dt / 2) / W                 # velocities are of half a step earlier
    start = dict(p=pressure, vy=lambda y, x: KY * early * np.sin(KY * y) * np.cos(KX * x),
                 vx=lambda y, x: KX * early * np.cos(KY * y) * np.sin(KX * x))
    with ct.Computation([push, squeeze], grid, location=dict(vy="y", vx="x"), dt=dt,
                        boundary=dict(p=ct.mirror()), **start) as run:      # no slope at the walls
        run.run(n_steps)
        y, x = grid.coordinates("y")[:, None], grid.coordinates("x")
        error = abs(run.p[...] - pressure(y, x, run.time)).max()
        return run.p[...], run.vy[...], run.vx[...], error


def main(n=96, picture=None):
    p, vy, vx, error = vibrate(n)
    ratio = vibrate(n // 2)[-1] / error
    print(f"vx at {vx.shape} points; error {error:.1e}, with half the cells {ratio:.2f} times")
    assert 3.7 < ratio < 4.3, "of second order"
    if picture:
        import matplotlib.pyplot as plt
        plt.imshow(p, origin="lower", extent=(0, n, 0, n), cmap="RdBu")
        some, at = (slice(n // 48, None, n // 24),) * 2, np.arange(n // 48, n, n // 24) + 0.5
        plt.quiver(at, at, (vx[:, 1:] + vx[:, :-1])[some], (vy[1:] + vy[:-1])[some])
        plt.savefig(picture)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]), *sys.argv[2:3])
