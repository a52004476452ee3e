# SPDX-License-Identifier: MIT
"""Swim: a shallow ocean on a torus, three stages, leapfrog with a Robert-Asselin filter.

    python examples/swim.py [CELLS] [PICTURE.png]
    mpiexec -n 4 python examples/swim.py

SPEC's benchmark of this name is the same model, by Sadourny's scheme (J. Atmos. Sci. 32, 1975).
"""
import sys

import numpy as np

import controllers as ct

D, DT, A = 1e5, 90.0, 1e6               # the spacing, the time step, the strength of the flow


def mean(f, axis):                      # of both neighbours half a cell away
    return (f.at(axis, 1 / 2) + f.at(axis, -1 / 2)) / 2


def slope(f, axis):
    return (f.at(axis, 1 / 2) - f.at(axis, -1 / 2)) / D


@ct.step
def fluxes(u, v, p, cu, cv, z, h):
    return dict(cu=mean(p, "x") * u, cv=mean(p, "y") * v,
                z=(slope(v, "x") - slope(u, "y")) / mean(mean(p, "y"), "x"),
                h=p + (mean(u * u, "x") + mean(v * v, "y")) / 2)


@ct.step
def leap(u, v, p, u_old, v_old, p_old, cu, cv, z, h, *, span=2 * DT, alpha=0.001):
    def both(name, f, old, change):     # two time levels, and the one between them made smooth
        new = old + span * change
        return {name: new, f"{name}_old": f + alpha * (new - 2 * f + old)}

    return (both("u", u, u_old, mean(z, "y") * mean(mean(cv, "y"), "x") - slope(h, "x"))
            | both("v", v, v_old, -mean(z, "x") * mean(mean(cu, "x"), "y") - slope(h, "y"))
            | both("p", p, p_old, -slope(cu, "x") - slope(cv, "y")))


def computation(n, **options):
    k, wide = 2 * np.pi / (n * D), 2 * A / D * np.sin(np.pi / n)    # streams by A sin(k x) sin(k y)
    start = dict(cu=0, cv=0, z=0, h=0, u=lambda y, x: -wide * np.sin(k * x) * np.cos(k * y),
                 v=lambda y, x: wide * np.cos(k * x) * np.sin(k * y),
                 p=lambda y, x: 5e4 + (k * A / 2) ** 2 * (np.cos(2 * k * x) + np.cos(2 * k * y)))
    start |= {f"{name}_old": start[name] for name in ("u", "v", "p")}
    places = dict(u="x", u_old="x", cu="x", v="y", v_old="y", cv="y", z=("y", "x"))
    return ct.Computation([fluxes, leap], ct.Grid(y=n, x=n, spacing=D, boundary="periodic"),
                          location=places, **{**start, **options})


def main(n=128, picture=None):
    with computation(n) as run:
        mass = run.p.sum()
        run.run(1, span=DT, alpha=0)    # from one time level
        run.run(400, span=2 * DT, alpha=0.001)
        error, p, u = run.p.sum() / mass - 1, run.p.get(), run.u.get()
    assert abs(error) < 1e-13, "no water is lost"
    if p is not None:                   # rank 0 has it
        print(f"mass differs by {error:.1e}; the fastest flow along x is {u.max():.2f}")
    if p is not None and picture:
        import matplotlib.pyplot as plt
        plt.imsave(picture, p, origin="lower")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]), *sys.argv[2:3])
