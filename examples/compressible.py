# SPDX-License-Identifier: MIT
"""Compressible flow in 3D, Rayleigh-Taylor: of third order, upwind in space, Runge-Kutta in time.

    python examples/compressible.py [CELLS ACROSS] [PICTURE.png]
    mpiexec -n 4 python examples/compressible.py

Five conserved quantities of a gas; the heavy one lies on the light one, and falls through it.
"""
import sys

import numpy as np

import controllers as ct

GAMMA, G, P, DEPTH = 1.4, 1.0, 5.0, 0.02            # pressure and depth of the layer between both
MODE = 2 * np.pi                                    # one wave across, along y and x
Gas = [("rho", "f4"), ("mz", "f4"), ("my", "f4"), ("mx", "f4"), ("energy", "f4")]


def flux(q, axis):                                  # and how fast sound goes along an axis
    r = 1 / q.rho
    v = getattr(q, f"m{axis}") * r
    p = (GAMMA - 1) * (q.energy - (q.mz * q.mz + q.my * q.my + q.mx * q.mx) * r / 2)
    flow = {name: getattr(q, name) * v for name, _ in Gas}
    flow |= {f"m{axis}": flow[f"m{axis}"] + p, "energy": (q.energy + p) * v}
    return ct.struct(Gas, **flow), abs(v) + np.sqrt(GAMMA * p * r)


def face(q, axis):                                  # the upper one: states on both sides, upwind
    step = q.at(axis, 1) - q
    low = q + 1 / 3 * step + 1 / 6 * step.at(axis, -1)
    high = q.at(axis, 1) - 1 / 3 * step - 1 / 6 * step.at(axis, 1)
    (f, s), (h, t) = flux(low, axis), flux(high, axis)
    return ct.stored(f + h - np.maximum(s, t) * (high - low))       # twice what flows


def start(z, y, x):                                 # at rest but for a push at the layer
    below = 1.5 * z + 0.5 * DEPTH * np.log(np.cosh(z / DEPTH))
    p = P * np.exp(-G / P * below)                  # each gas has one temperature
    rho = (1.5 + 0.5 * np.tanh(z / DEPTH)) * p / P
    mz = 0.02 * rho * (np.cos(MODE * y) + np.cos(MODE * x)) * np.exp(-MODE * np.abs(z))
    return dict(rho=rho, mz=mz, my=0, mx=0, energy=p / (GAMMA - 1) + mz**2 / rho / 2)


def computation(z, y, x, **options):
    grid = ct.Grid(z=z, y=y, x=x, lower=(-0.7 * z / x, 0, 0), upper=(0.3 * z / x, y / x, 1),
                   boundary=dict(z=ct.mirror(mz=-1), y="periodic", x="periodic"))

    def rate(q):
        out = sum((f - f.at(axis, -1)) / (2 * grid.dx) for axis in "zyx" for f in [face(q, axis)])
        return dict(q=-G * ct.struct(Gas, rho=0, mz=q.rho, my=0, mx=0, energy=q.mz) - out)

    return ct.Computation(ct.rk3(rate), grid, **(dict(dtype=Gas, q=start, dt=0.12 / x) | options))


def main(n=64, picture=None):
    with computation(2 * n, n, n) as run:
        mass = ct.sum(run.q_rho)
        run.run(until=5.4, progress=True)
        lost, rho = ct.sum(run.q_rho) / mass - 1, run.q_rho.get()
    print(f"mass that was lost: {lost:.1e}")
    assert abs(lost) < 1e-3                         # the roundings of float32
    if rho is not None and picture:                 # rank 0 has it
        import matplotlib.pyplot as plt
        plt.imshow(rho[:, n // 2], origin="lower", extent=(0, 1, -1.4, 0.6), cmap="magma")
        plt.savefig(picture)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]), *sys.argv[2:3])
