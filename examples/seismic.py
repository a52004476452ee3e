# SPDX-License-Identifier: MIT
"""Seismic waves: elastic, on a staggered grid under a free surface; receivers, a seismogram.

    python examples/seismic.py [STEPS] [PICTURE.png]
    mpiexec -n 4 python examples/seismic.py

After Virieux (Geophysics 51, 1986).  P waves come first; strongest are Rayleigh's, on the surface.
"""
import sys

import numpy as np

import controllers as ct

D, DT, RHO, F0, RIM = 5.0, 7e-4, 2000.0, 15.0, 150.0    # m, s, kg/m^3, Hz, metres of sponge
P, RAYLEIGH = 2000.0, 0.9194 * 2000 / 3**0.5            # m/s; by the speed of S waves


def slope(f, axis):
    return (f.at(axis, 1 / 2) - f.at(axis, -1 / 2)) / D


def computation(y, x, **options):
    grid, free = ct.Grid(y=y, x=x, spacing=D), dict(y=(ct.mirror(-1), ct.fixed(0)), x=ct.fixed(0))
    deep, wide = grid.upper

    @ct.step
    def push(vy, vx, syy, sxx, sxy, *, y, x):
        near = np.minimum(np.minimum(x, wide - x), deep - y)        # the rim
        calm = 1 - 0.1 * np.maximum(1 - near / RIM, 0) ** 2
        return dict(vy=calm * (vy + DT / RHO * (slope(syy, "y") + slope(sxy, "x"))),
                    vx=calm * (vx + DT / RHO * (slope(sxx, "x") + slope(sxy, "y"))))

    @ct.step                            # Lame's constants are equal: P is 3**0.5 times as fast as S
    def strain(vy, vx, syy, sxx, sxy, mu, mu_there, *, t: ct.Time):
        ricker = (np.pi * F0 * (t - 0.1)) ** 2
        blast = 1e6 * (1 - 2 * ricker) * np.exp(-ricker) * ct.point(grid, (4 * D, wide / 4))
        yy, xx = slope(vy, "y"), slope(vx, "x")
        return dict(syy=syy + DT * mu * (3 * yy + xx) + blast,
                    sxx=sxx + DT * mu * (yy + 3 * xx) + blast,
                    sxy=sxy + DT * mu_there * (slope(vy, "x") + slope(vx, "y")))

    rock = dict.fromkeys(["mu", "mu_there"], lambda y, x: np.where(y < 600, 1, 2) * RHO / 3 * P**2)
    start = dict(vy=0, vx=0, syy=0, sxx=0, sxy=0, **rock)
    places = dict(vy="y", vx="x", sxy=("y", "x"), mu_there=("y", "x"))
    sides = dict.fromkeys(start, ct.fixed(0)) | dict(syy=free, sxy=free)    # no stress on top
    return ct.Computation([push, strain], grid, location=places, boundary=sides, dt=DT,
                          **{**start, "dtype": "float32", **options})


def main(n_steps=1600, picture=None):
    with computation(y=200, x=400) as run:
        lines = run.record("vy", y=0, x=slice(700, 1500, 20))
        run.run(n_steps)
        traces = lines.get()
    if traces is None:                  # rank 0 has them
        return
    traces /= abs(traces).max(axis=0)
    first, strong = (DT * at.argmax(axis=0) for at in (abs(traces) > 0.02, abs(traces)))
    speeds = [(1480 - 700) / (time[-1] - time[0]) for time in (first, strong)]
    print("the first waves have {:.0f} m/s, the strongest ones {:.0f}".format(*speeds))
    assert n_steps < 1600 or np.allclose(speeds, (P, RAYLEIGH), rtol=0.03)
    if picture:
        import matplotlib.pyplot as plt
        plt.plot(traces + np.arange(40), -DT * np.arange(n_steps), "k", linewidth=0.5)
        plt.savefig(picture)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]), *sys.argv[2:3])
