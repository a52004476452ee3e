# SPDX-License-Identifier: MIT
"""The Himeno benchmark: pressure by Jacobi iterations, 19 points, 14 arrays.

    python examples/himeno.py [XS|S|M|L|XL] [PICTURE.png]
    mpiexec -n 4 python examples/himeno.py

After R. Himeno's himenoBMT: the same sizes, coefficients and start, its residual (gosa) and its
convention of 34 operations for each inner cell.  The outermost cells keep their pressure.
"""
import sys

import numpy as np

import controllers as ct

SIZES = {"XS": (32, 32, 64), "S": (64, 64, 128), "M": (128, 128, 256), "L": (256, 256, 512),
         "XL": (512, 512, 1024)}
OMEGA, FLOPS = 0.8, 34
COEFFICIENTS = dict(a0=1, a1=1, a2=1, a3=1 / 6, b0=0, b1=0, b2=0, c0=1, c1=1, c2=1)


def corners(p, one, other):             # four times the mixed derivative
    high, low = p.at(one, 1), p.at(one, -1)
    return high.at(other, 1) - high.at(other, -1) - low.at(other, 1) + low.at(other, -1)


@ct.step
def jacobi(p, a0, a1, a2, a3, b0, b1, b2, c0, c1, c2, wrk1, bnd):
    s0 = (a0 * p.at("i", 1) + a1 * p.at("j", 1) + a2 * p.at("k", 1)
          + b0 * corners(p, "i", "j") + b1 * corners(p, "k", "j") + b2 * corners(p, "k", "i")
          + c0 * p.at("i", -1) + c1 * p.at("j", -1) + c2 * p.at("k", -1) + wrk1)
    ss = (s0 * a3 - p) * bnd
    return dict(p=p + OMEGA * ss, gosa=ct.sum(ss * ss))


def computation(i, j, k, **options):
    grid = ct.Grid(i=i, j=j, k=k, lower=-0.5, boundary=ct.keep())       # cell n is at n
    start = dict(p=lambda i, j, k: (i / (grid.shape[0] - 1)) ** 2, wrk1=0, bnd=1, **COEFFICIENTS)
    return ct.Computation(jacobi, grid, **{**start, "dtype": "float32", **options})


def main(size="XS", picture=None):
    with computation(*SIZES[size]) as run:
        first = run.run(1).gosa
        gosa = run.run(200).gosa
        report, p = run.report(), run.p.get()
    if p is None:                       # rank 0 has it
        return
    n_inner = np.prod([n - 2 for n in SIZES[size]])
    print(f"{size}: gosa {gosa:.3e}, {FLOPS * n_inner / report.seconds_per_step / 1e6:.0f} MFLOPS")
    assert gosa < first, "it converges"
    if picture:
        import matplotlib.pyplot as plt
        plt.contourf(p[:, :, p.shape[2] // 2].T, 20)
        plt.xlabel("i")
        plt.ylabel("j")
        plt.colorbar(label="pressure")
        plt.savefig(picture)


if __name__ == "__main__":
    main(*sys.argv[1:])
