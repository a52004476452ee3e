# SPDX-License-Identifier: MIT
"""Lid-driven cavity, incompressible: predictor, pressure until it converges, projection."""
import numpy as np

import controllers as ct

Re, n, dt = 100.0, 48, 5e-3
grid = ct.Grid(y=n, x=n, lower=0, upper=1)


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
    new = (around(p) - source) / 4
    return dict(p=new, residual=ct.max(np.abs(new - p)))        # a result with a name of its own


@ct.step
def project(v, u, p):
    new = dict(v=v - dt * gradient(p, "y"), u=u - dt * gradient(p, "x"))
    return new | dict(energy=ct.mean(new["v"] ** 2 + new["u"] ** 2))


solve = ct.repeat(pressure, until=lambda now: now.residual < 1e-4, check_every=20, at_most=400)
wall, lid = ct.mirror(-1), ct.custom(lambda inside, distance: 2 - inside(distance - 1))
sides = dict(v=wall, u=dict(y=(wall, lid), x=wall), p=ct.mirror())      # 1 at the lid's face
with ct.Computation([predict, solve, project], grid, boundary=sides, v=0, u=0, p=0) as run:
    run.record("energy", every=200)
    run.run(until=ct.steady("energy", 1e-4), check_every=200, at_most=8000)
    run.u.save("cavity.npy")
