# SPDX-License-Identifier: MIT
"""Compressible Euler, Rayleigh-Taylor: a field of structs, limited slopes, Heun, gravity, walls."""
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
    out = sum((f - f.at(axis, -1)) / grid.dx for axis in grid.axes for f in [face(q, axis)])
    return dict(q=g * ct.struct(Gas, rho=0, my=q.rho, mx=0, energy=q.my) - out)


def start(y, x):
    rho = np.where(y > 0, 2.0, 1.0)
    vy = 0.01 * (np.cos(2 * np.pi * x) * np.cos(2 / 3 * np.pi * y)) ** 2
    energy = (2.5 + g * rho * y) / (gamma - 1) + rho * vy**2 / 2
    return dict(rho=rho, my=rho * vy, mx=0, energy=energy)


def time_step(q):
    return 0.4 * grid.dx / ct.max(flux(q, "y")[1] + flux(q, "x")[1])


walls = dict(y=ct.mirror(my=-1), x="periodic")      # what goes through the wall changes its sign
with ct.Computation(ct.heun(rate, dt=time_step), grid, boundary=walls, dtype=Gas, q=start) as run:
    run.run(until=4.0, progress=True)
    run.q_rho.save("rayleigh_taylor.npy")
