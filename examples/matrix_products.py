# SPDX-License-Identifier: MIT
"""Products of matrices: by rows, by columns, and as a sum over all rows.

    python examples/matrix_products.py [ROWS]
    mpiexec -n 2 python examples/matrix_products.py

Sums of products run from the first element to the last, those over all rows are exact: the bits are
the same on any devices and ranks.
"""
import sys

import numpy as np

import controllers as ct


@ct.each
def times(row: ct.Row, b: ct.All) -> ct.Row:                    # A B
    return row @ b


@ct.each
def transposed_times(column: ct.Column, b: ct.All) -> ct.Row:   # A^T B
    return column @ b


@ct.each
def of_columns(row: ct.Row) -> ct.Row:                          # A^T A of few columns
    return ct.accumulate(row[:, None] * row)


def main(n=2000, **options):
    random = np.random.default_rng(1)
    with ct.workspace(**options) as on:
        a, b = on.array(random.random((n, 6))), on.array(random.random((n, 40)))
        c = transposed_times(a, b)                              # 6 rows
        return [np.asarray(one) for one in (a, b, c, times(a, c), of_columns(a))]


if __name__ == "__main__":
    a, b, _, projected, square = main(*map(int, sys.argv[1:]))
    print(projected.shape, abs(np.linalg.inv(square) @ square - np.eye(6)).max())
