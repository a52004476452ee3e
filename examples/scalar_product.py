# SPDX-License-Identifier: MIT
"""Scalar products of many pairs of vectors, and of all their elements together.

    python examples/scalar_product.py [PAIRS] [ELEMENTS]
    mpiexec -n 2 python examples/scalar_product.py

A pair is an item, which sums in the order of its elements; `np.vdot` sums exactly.
"""
import sys

import numpy as np

import controllers as ct


@ct.each
def products(a: ct.Row, b: ct.Row) -> ct.Row:
    return a @ b


def main(n_pairs=2048, n_elements=256, **options):
    random = np.random.default_rng(1)
    with ct.workspace(dtype="float32", **options) as on:
        a, b = (on.array(random.random((n_pairs, n_elements)) - 0.5) for _ in range(2))
        return np.asarray(products(a, b)), float(np.vdot(a, b))


if __name__ == "__main__":
    each, together = main(*map(int, sys.argv[1:]))
    print(each[:3], together)
