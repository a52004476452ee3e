# SPDX-License-Identifier: MIT
"""A matrix product by rows over weighted bands, on devices that need not be alike.

    python examples/matrix_product.py
    python examples/matrix_product.py "gpu cpu" 9,1  # two devices, the first one gets 9/10
    mpiexec -n 2 python examples/matrix_product.py cpu 1,2

C = A B: each device holds its rows of A and C, and all of B.  Sums run in the same order on every
device, so that the bits do not depend on how the rows are divided.
"""
import sys

import numpy as np

from controllers import Controller, Kernel
from hitmap import Layout, Shape, default_communicator, gather

N, INNER, M = 301, 257, 403

PRODUCT = Kernel.of("product", """
    __kernel void product(__global const float *restrict a, __global const float *restrict b,
                          __global float *restrict c, TILE(a), TILE(b), TILE(c), BOX,
                          const long n)
    {
        CELL;
        float sum = 0;
        for (long k = 0; k < n; ++k) sum += AT(a, INDEX(0), k) * AT(b, k, INDEX(1));
        HERE(c) = sum;
    }""", roles={"c": "writing"}, scalars={"n": INNER})  # fmt: skip


def matrix(shape: Shape) -> np.ndarray:
    """Rows of a matrix that every rank can make."""
    i, j = np.ogrid[shape.slices((0, 0))]
    return np.cos(i * 0.7 + j * j * 0.3).astype(np.float32)


def main(selectors: str = "", weights: str = "") -> None:
    comm = default_communicator()
    controllers = Controller.each(selectors.split(), comm)
    counts = comm.allgather(len(controllers))
    ranks = [rank for rank, count in enumerate(counts) for _ in range(count)]
    parts = [float(part) for part in weights.split(",")] if weights else [1.0] * len(ranks)
    layout = Layout.weighted(Shape.of_extent((N, M)), parts)

    products, b_box = {}, Shape.of_extent((INNER, M))
    for controller, place in zip(controllers, (p for p, r in enumerate(ranks) if r == comm.rank)):
        owned = layout.owned[place]
        a_box = Shape((owned.lower[0], 0), (owned.upper[0], INNER))
        a, b, c = (controller.tile(box) for box in (a_box, b_box, owned))
        a.write(matrix(a_box))
        b.write(matrix(b_box))
        controller.launch(PRODUCT, c, a=a, b=b, c=c)
        controller.move_from(c)                 # all devices compute at the same time
        products[place] = c
    whole = gather({p: c.read() for p, c in products.items()}, layout, ranks, comm, np.float32)

    if whole is not None:
        a, b = matrix(Shape.of_extent((N, INNER))), matrix(b_box)
        right = np.zeros((N, M), np.float32)
        for k in range(INNER):                  # the same order of operations
            right += a[:, k, None] * b[k]
        assert np.array_equal(whole, right), "the bits of NumPy"
        print(layout)
    for controller in controllers:
        controller.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
