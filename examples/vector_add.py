# SPDX-License-Identifier: MIT
"""The sum of two vectors: two arrays are read, one is written, and nothing else is done.

    python examples/vector_add.py [ELEMENTS]
    mpiexec -n 2 python examples/vector_add.py
"""
import sys

import numpy as np

import controllers as ct


def main(n=1_000_000, **options):
    with ct.workspace(dtype="float32", **options) as on:
        a, b = on.array(np.arange(n)), on.array(np.linspace(0, 1, n))
        return np.asarray(on.array(a + b))


if __name__ == "__main__":
    print(main(*map(int, sys.argv[1:]))[-3:])
