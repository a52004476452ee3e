# SPDX-License-Identifier: MIT
"""A lattice gas: particles on a hexagonal lattice, six bits of a byte per cell, and sound in it.

    python examples/lattice_gas.py [STEPS] [PICTURE.png]
    mpiexec -n 4 python examples/lattice_gas.py

After Frisch, Hasslacher and Pomeau (Phys. Rev. Lett. 56, 1986).  Bit i is a particle that flies
i times 60 degrees from x; x and y are 60 degrees apart, so that all six neighbours are among the
eight of a square.  Particles that meet and have no momentum together turn by 60 degrees, to a side
that a coin says.  Their number and momentum stay; sound runs as a ring, 0.7 cells a step.
"""
import sys

import numpy as np

import controllers as ct

WAYS = ((0, 1), (1, 0), (1, -1), (0, -1), (-1, 0), (-1, 1))     # along y and x


@ct.step
def fly(gas, coin):
    def turned(n):                      # by so many times 60 degrees
        return (met << n | met >> 6 - n) & 63

    met = sum(gas[-dy, -dx] & (1 << i) for i, (dy, dx) in enumerate(WAYS))
    balanced = (met == turned(3)) | (met == turned(2))
    return dict(gas=np.where(balanced, turned(1 + 4 * coin), met), coin=coin[0, -1])


def computation(n, **options):
    random = np.random.default_rng(0)
    y, x = np.indices((n, n)) - n // 2
    full = np.where(x * x + x * y + y * y < (n // 16) ** 2, 0.9, 0.2)   # how likely a particle is
    start = dict(gas=sum((random.random((n, n)) < full) << i for i in range(6)),
                 coin=random.integers(2, size=(n, n)))
    grid = ct.Grid(y=n, x=n, boundary="periodic")
    return ct.Computation(fly, grid, **{**start, "dtype": "uint8", **options})


def totals(gas):
    """The particles, and the momentum along y and x."""
    counts = [int((gas >> i & 1).sum()) for i in range(6)]
    return sum(counts), *(sum(n * way[a] for n, way in zip(counts, WAYS)) for a in (0, 1))


def main(n_steps=240, picture=None, n=768):
    with computation(n) as run:
        before = run.gas.get()
        run.run(n_steps)
        gas = run.gas.get()
    if gas is None:                     # rank 0 has it
        return
    print(f"{totals(gas)[0]} particles with the momentum {totals(gas)[1:]}")
    assert totals(gas) == totals(before)
    if picture:
        import matplotlib.pyplot as plt
        density = sum(gas >> i & 1 for i in range(6)).reshape(n // 8, 8, n // 8, 8).mean((1, 3))
        y, x = np.indices(density.shape)
        plt.axes().set_aspect("equal")
        plt.pcolormesh(x + y / 2, y * 0.75**0.5, density)
        plt.savefig(picture)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]), *sys.argv[2:3])
