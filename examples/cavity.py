# SPDX-License-Identifier: MIT
"""Lid-driven cavity, incompressible: predictor, sweeps of the pressure, projection.

    python examples/cavity.py [STEPS] [PICTURE.png]
    mpiexec -n 4 python examples/cavity.py

A time step is a list of steps.  At a Reynolds number of 100 the flow becomes steady; its velocity
on the vertical centre line is checked against Ghia, Ghia and Shin (1982), table I.
"""
import sys

import numpy as np

import controllers as ct

Re, n, dt, SWEEPS = 100.0, 48, 5e-3, 20
grid = ct.Grid(y=n, x=n, lower=0, upper=1)
GHIA = {0.9766: 0.84123, 0.8516: 0.23151, 0.7344: 0.00332, 0.6172: -0.13641, 0.5: -0.20581,
        0.4531: -0.21090, 0.2813: -0.15662, 0.1719: -0.10150, 0.0547: -0.03717}


def gradient(f, axis):
    return (f.at(axis, 1) - f.at(axis, -1)) / (2 * grid.dx)


def around(f):
    return sum(f.at(axis, side) for axis in grid.axes for side in (-1, 1))


@ct.step
def predict(v, u):                                  # v along y, u along x
    def move(f):
        spread = (around(f) - 4 * f) / (Re * grid.dx**2)
        return f + dt * (spread - v * gradient(f, "y") - u * gradient(f, "x"))
    return dict(v=move(v), u=move(u))


@ct.step
def pressure(p, v, u):                              # one sweep
    source = grid.dx**2 / dt * (gradient(v, "y") + gradient(u, "x"))
    return dict(p=(around(p) - source) / 4)


@ct.step
def project(v, u, p):
    return dict(v=v - dt * gradient(p, "y"), u=u - dt * gradient(p, "x"))


def main(n_steps=3000, picture=None):
    wall, lid = ct.mirror(-1), ct.custom(lambda inside, distance: 2 - inside(distance - 1))
    boundary = dict(v=wall, u=dict(y=(wall, lid), x=wall), p=ct.mirror())   # 1 at the lid's face
    steps = [predict, ct.repeat(pressure, SWEEPS), project]
    with ct.Computation(steps, grid, boundary=boundary, v=0, u=0, p=0) as run:
        run.run(n_steps, progress=True)
        u = run.u[:, n // 2 - 1 : n // 2 + 1].mean(axis=1)      # on every rank
        image = run.u.get()
    error = max(abs(np.interp(y, grid.coordinates("y"), u) - right) for y, right in GHIA.items())
    assert n_steps < 2000 or error < 0.02, "the published velocities"
    if image is not None:
        print(f"the velocity on the centre line differs by {error:.4f} from Ghia's")
    if picture and image is not None:
        import matplotlib.pyplot as plt
        plt.imsave(picture, image, origin="lower")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]), *sys.argv[2:3])
