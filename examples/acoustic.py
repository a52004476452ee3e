# SPDX-License-Identifier: MIT
"""Sound in a box with rigid walls: pressure at cells, velocities at the half points between them.

    python examples/acoustic.py [CELLS] [PICTURE.png]
    mpiexec -n 4 python examples/acoustic.py

A standing wave, whose error against the analytic one falls by four when cells are halved.
"""
import sys

import numpy as np

import controllers as ct

PERIODS, KY, KX, W = 1.125, 2 * np.pi, 3 * np.pi, 13**0.5 * np.pi   # the speed of sound is 1


def slope(f, axis):             # of cells it lies between them, of half points at cells
    return f.at(axis, 1 / 2) - f.at(axis, -1 / 2)


@ct.step
def push(vy, vx, p, *, c):
    return dict(vy=vy - c * slope(p, "y"), vx=vx - c * slope(p, "x"))


@ct.step
def squeeze(p, vy, vx, *, c):
    return dict(p=p - c * (slope(vy, "y") + slope(vx, "x")))


def vibrate(n):
    """The largest error after some periods, pressure and velocities; None on other ranks than 0."""
    early = -np.sin(np.pi / n / 2) / W      # a step is pi / n of the phase, velocities half behind
    start = dict(p=lambda y, x: np.cos(KY * y) * np.cos(KX * x),
                 vy=lambda y, x: KY * early * np.sin(KY * y) * np.cos(KX * x),
                 vx=lambda y, x: KX * early * np.cos(KY * y) * np.sin(KX * x))
    with ct.Computation([push, squeeze], ct.Grid(y=n, x=n, upper=1), **start, c=np.pi / W,
                        location=dict(vy="y", vx="x"), boundary=dict(p=ct.mirror())) as run:
        first = run.p.get()
        run.run(round(2 * n * PERIODS))
        p, vy, vx, phase = run.p.get(), run.vy.get(), run.vx.get(), np.pi / n * run.step
    return p is not None and abs(p - first * np.cos(phase)).max(), p, vy, vx


def main(n=96, picture=None):
    (error, p, vy, vx), (coarse, *_) = vibrate(n), vibrate(n // 2)
    if p is not None:
        print(f"vx at {vx.shape} points; error {error:.1e}, on half the cells {coarse:.1e}")
        assert 3.7 < coarse / error < 4.3, "of second order"
    if p is not None and picture:
        import matplotlib.pyplot as plt
        plt.imshow(p, origin="lower", extent=(0, n, 0, n), cmap="RdBu")
        at, some = np.arange(2, n, 4) + 0.5, np.s_[2::4, 2::4]
        plt.quiver(at, at, (vx[:, 1:] + vx[:, :-1])[some], (vy[1:] + vy[:-1])[some])
        plt.savefig(picture)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]), *sys.argv[2:3])
