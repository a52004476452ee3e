# SPDX-License-Identifier: MIT
"""Compressible Euler, Rayleigh-Taylor: a field of structs, limited slopes, Heun, gravity, walls.

    python examples/rayleigh_taylor.py [STEPS] [PICTURE.png]
    mpiexec -n 4 python examples/rayleigh_taylor.py

Heavy gas sinks through light gas in fingers; what is checked is that no mass is lost and that the
fingers are symmetric, as they begin.
"""
import sys

import numpy as np

import controllers as ct

gamma, g = 1.4, -1.0
grid = ct.Grid(y=150, x=50, lower=(-0.75, -0.25), upper=(0.75, 0.25))
Gas = np.dtype([("rho", "f8"), ("my", "f8"), ("mx", "f8"), ("energy", "f8")])   # per volume


def flux(q, axis):                                  # plain Python, traced; components by name
    v = (q.my if axis == "y" else q.mx) / q.rho
    p = (gamma - 1) * (q.energy - (q.my * q.my + q.mx * q.mx) / q.rho / 2)
    push = ct.struct(Gas, rho=0, my=p * (axis == "y"), mx=p * (axis == "x"), energy=p * v)
    return q * v + push, np.abs(v) + np.sqrt(gamma * p / q.rho)


def face(q, axis):                                  # Rusanov between limited states, upper face
    a, b = q - q.at(axis, -1), q.at(axis, 1) - q
    slope = np.where(a * b > 0, np.where(np.abs(a) < np.abs(b), a, b), 0) / 2
    low, high = q + slope, (q - slope).at(axis, 1)  # expressions have neighbours, too
    (f, s), (h, t) = flux(low, axis), flux(high, axis)
    return ct.stored((f + h - np.maximum(s, t) * (high - low)) / 2)


def rate(q):
    out = 0
    for axis in grid.axes:
        f = face(q, axis)
        out = out + (f - f.at(axis, -1)) / grid.dx
    return dict(q=g * ct.struct(Gas, rho=0, my=q.rho, mx=0, energy=q.my) - out)


def start(y, x):
    rho = np.where(y > 0, 2.0, 1.0)
    vy = 0.01 * (1 + np.cos(4 * np.pi * x)) * (1 + np.cos(4 / 3 * np.pi * y)) / 4
    energy = (2.5 + g * rho * y) / (gamma - 1) + rho * vy**2 / 2
    return dict(rho=rho, my=rho * vy, mx=0 * rho, energy=energy)


def main(n_steps=2500, picture=None):
    walls = dict(y=ct.mirror(my=-1), x="periodic")  # what goes through the wall changes its sign
    heun = ct.heun(rate, dt=0.3 * grid.dx / 2)
    with ct.Computation(heun, grid, boundary=walls, dtype=Gas, q=start) as run:
        before = run.q_rho.get()
        run.run(n_steps, progress=True)
        after = run.q_rho.get()
    if after is None:                               # rank 0 has them
        return
    print(f"density from {after.min():.3f} to {after.max():.3f}")
    assert abs(after.sum() / before.sum() - 1) < 1e-12, "mass"
    assert np.allclose(after, after[:, ::-1], atol=1e-6), "symmetry"
    if picture:
        import matplotlib.pyplot as plt
        plt.imsave(picture, after, origin="lower")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]), *sys.argv[2:3])
