# SPDX-License-Identifier: MIT
"""A matrix product on cores and devices at once: each side has rows, as many as it is fast.

    python examples/hybrid_product.py
    python examples/hybrid_product.py cpu/1,1

Sums run in the same order on all sides, so that the bits do not depend on the shares.
"""
import sys

import numpy as np

import controllers as ct

product = ct.Task("product", ("c", "a", "b", "n"), roles={"c": "writing"},
                  size=lambda c, a, b, n: c.size * n)           # multiplications


@product.variant
def product_on_host(c, a, b, n):
    c[...] = 0
    for column, row in zip(a.T, b):
        c += column[:, None] * row


product.variant(ct.Kernel.of("product", """
    __kernel void product(__global float *c, __global const float *a, __global const float *b,
                          TILE(c), TILE(a), TILE(b), BOX, const long n)
    {
        CELL;
        float sum = 0;
        for (long k = 0; k < n; ++k) sum += AT(a, INDEX(0), k) * AT(b, k, INDEX(1));
        HERE(c) = sum;
    }""", roles={"c": "writing"}))

both = ct.hybrid(product, cut={"c": ct.Row, "a": ct.Row, "b": ct.All})


def main(a, b, times=5, **options):
    c = np.empty((len(a), b.shape[1]), a.dtype)
    with ct.tasks(**options) as pool:
        for _ in range(times):          # with better estimates each time
            pool.submit(both, c, a, b, a.shape[1]).result()
        return c, pool.report()


if __name__ == "__main__":
    draw = np.random.default_rng(1)
    a, b = (draw.random(shape, np.float32) for shape in ((700, 300), (300, 500)))
    found, report = main(a, b, devices=sys.argv[1:] or None)
    right = np.empty_like(found)
    product_on_host(right, a, b, len(b))
    assert np.array_equal(found, right), "the bits of NumPy"
    print(report)
