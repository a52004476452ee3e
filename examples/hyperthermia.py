# SPDX-License-Identifier: MIT
"""Hyperthermia: antennas heat a tumour; temperature and nine coefficient fields, in 3D.

    python examples/hyperthermia.py [CELLS] [PICTURE.png]
    mpiexec -n 4 python examples/hyperthermia.py

Heat in tissue after Pennes (1948): dT/dt = div(k grad T) - (w + v T) T + s, T above 37 degrees.
Blood cools, and flows faster where it is warm, but not in the tumour, which so gets the warmest.
"""
import sys

import numpy as np

import controllers as ct

WIDE, DT = 0.12, 0.5                    # metres, seconds


@ct.step                                # each coefficient is a field
def heat(T, a, b, c, z0, z1, y0, y1, x0, x1):
    return dict(T=T * (a * T + b) + c + z0 * T[-1, 0, 0] + z1 * T[1, 0, 0]
                + y0 * T[0, -1, 0] + y1 * T[0, 1, 0] + x0 * T[0, 0, -1] + x1 * T[0, 0, 1])


def in_tumour(z, y, x):
    return (z - 0.06) ** 2 + (y - 0.05) ** 2 + (x - 0.07) ** 2 < 0.02**2


def by_tissue(tumour, other):
    return lambda z, y, x: np.where(in_tumour(z, y, x), tumour, other)


k = by_tissue(1.6e-7, 1.3e-7)           # m^2/s
w, v = by_tissue(4e-4, 8e-4), by_tissue(0, 1e-3)        # 1/s, 1/(K s)


def s(z, y, x):                         # K/s, by antennas about the tumour
    return 12e-3 * np.exp(-((z - 0.06) ** 2 + (y - 0.055) ** 2 + (x - 0.065) ** 2) / 0.03**2)


def coefficients(dx):
    """The nine, as functions of coordinates."""
    def face(z=0, y=0, x=0):            # conduction through the face that is so far away
        return lambda *at: DT / dx**2 * k(*(one + half for one, half in zip(at, (z, y, x))))

    faces = {f"{axis}{n}": face(**{axis: (n - 0.5) * dx}) for axis in "zyx" for n in (0, 1)}
    return faces | dict(a=lambda *at: -DT * v(*at), c=lambda *at: DT * s(*at),
                        b=lambda *at: 1 - DT * w(*at) - sum(one(*at) for one in faces.values()))


def computation(n, **options):
    grid = ct.Grid(z=n, y=n, x=n, upper=WIDE, boundary="periodic")
    return ct.Computation(heat, grid, dt=DT, **{"T": 0, **coefficients(grid.dx), **options})


def main(n=48, picture=None):
    with computation(n) as run:
        run.run(until=1800, progress=True)
        T, tumour = run.T.get(), in_tumour(*np.meshgrid(*run.T.coords.values(), indexing="ij"))
    if T is not None:                   # rank 0 has it
        print(f"up to {37 + T[tumour].max():.1f} degrees, {37 + T[~tumour].max():.1f} around it")
    if T is not None and picture:
        import matplotlib.pyplot as plt
        plt.imshow(37 + T[n // 2], origin="lower", extent=(0, WIDE, 0, WIDE), cmap="inferno")
        plt.colorbar(label="degrees")
        plt.savefig(picture)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]), *sys.argv[2:3])
