# SPDX-License-Identifier: MIT
"""An acoustic wave in two layers: two time levels, constant fields, a source, a sponge, receivers.

    python examples/wave.py [STEPS] [PICTURE.png]
    mpiexec -n 4 python examples/wave.py

A pulse of 15 Hz starts 300 m below the surface; receivers 50 m below it see the direct wave pass
at the speed of the upper layer, which is what is checked.
"""
import sys

import numpy as np

import controllers as ct

grid = ct.Grid(y=300, x=400, spacing=5.0, boundary=ct.fixed(0))             # metres
dt, f0, source = 5e-4, 15.0, (300.0, 1000.0)
EVERY, DEPTH, FIRST, APART = 8, 10, 40, 16      # steps, and cells: where receivers are


@ct.step
def wave(u, old, c, damp, *, t: ct.Time):
    ricker = (np.pi * f0 * (t - 0.1)) ** 2          # of the time: once per step, not per cell
    pulse = dt**2 * 1e6 * (1 - 2 * ricker) * np.exp(-ricker) * ct.point(grid, source)
    new = 2 * u - (1 - damp) * old + (dt * c) ** 2 * ct.laplacian(u, accuracy=8)
    return dict(u=new / (1 + damp) + pulse, old=u)  # old=u renames: nothing is copied


def speed(y, x):
    return np.where(y < 700, 1500.0, 2500.0)


def sponge(y, x):                                   # 0 inside, growing to the rim
    depth = np.minimum(np.minimum(y, 1500 - y), np.minimum(x, 2000 - x))
    return 0.1 * np.clip(1 - depth / 100, 0, 1) ** 2


def main(n_steps=1600, picture=None):
    lines = []
    values = dict(u=0, old=0, c=speed, damp=sponge)
    with ct.Computation(wave, grid, dt=dt, dtype="float32", **values) as run:
        for _ in range(n_steps // EVERY):
            run.run(EVERY)
            lines.append(run.u[DEPTH, FIRST:-FIRST:APART])      # on every rank
        image = run.u.get()
    if image is None:
        return
    seismogram = np.array(lines)                    # [time, receiver]
    offset = grid.coordinates("x")[FIRST:-FIRST:APART] - source[1]
    distance = np.hypot(offset, grid.coordinates("y")[DEPTH] - source[0])
    direct = distance < 600                         # before what comes from the layer below
    peak = (np.abs(seismogram[:, direct]).argmax(0) + 1) * EVERY * dt
    slope, _ = np.polyfit(distance[direct], peak, 1)
    print(f"{len(lines)} samples; the direct wave passes at {1 / slope:.0f} m/s")
    assert n_steps < 1200 or abs(1 / slope - 1500) < 50, "the speed of the upper layer"
    if picture:
        import matplotlib.pyplot as plt
        figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5))
        for axes, values, title in (left, image, "pressure"), (right, seismogram, "receivers"):
            axes.imshow(values, aspect="auto", vmin=-abs(image).max(), vmax=abs(image).max())
            axes.set_title(title)
        figure.savefig(picture)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]), *sys.argv[2:3])
