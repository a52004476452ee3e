# SPDX-License-Identifier: MIT
"""An acoustic wave: two time levels, constant fields, a source, a sponge, receivers."""
import numpy as np

import controllers as ct

grid = ct.Grid(y=300, x=400, spacing=5.0, boundary=ct.fixed(0))     # metres
dt, f0, source = 5e-4, 15.0, (300.0, 1000.0)


@ct.step
def wave(u, old, c, damp, *, t: ct.Time):
    ricker = (np.pi * f0 * (t - 0.1)) ** 2              # of the time: once per step, not per cell
    pulse = dt**2 * 1e6 * (1 - 2 * ricker) * np.exp(-ricker) * ct.point(grid, source)
    new = 2 * u - (1 - damp) * old + (dt * c) ** 2 * ct.laplacian(u, accuracy=8)
    return dict(u=new / (1 + damp) + pulse, old=u)      # old=u renames: nothing is copied


def sponge(y, x):                                       # 0 inside, growing to the rim
    depth = np.minimum(np.minimum(y, 1500 - y), np.minimum(x, 2000 - x))
    return 0.1 * np.clip(1 - depth / 100, 0, 1) ** 2


start = dict(u=0, old=0, c=lambda y, x: np.where(y < 700, 1500.0, 2500.0), damp=sponge)
with ct.Computation(wave, grid, dt=dt, dtype="float32", **start) as run:
    seismogram = run.record("u", y=52.5, x=slice(100, 1900, 100), every=8)     # receivers
    run.run(1600)
    run.u.save("wave.npy")
