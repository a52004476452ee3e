# SPDX-License-Identifier: MIT
"""The discrete cosine transform of the 8 x 8 blocks of a picture, as JPEG has it, and back.

    python examples/dct.py [BLOCKS]
    mpiexec -n 2 python examples/dct.py
"""
import sys

import numpy as np

import controllers as ct

k = np.arange(8)
SCALES = np.where(k == 0, 1 / 8, 1 / 4) ** 0.5
COSINES = np.cos(np.pi * np.outer(k, 2 * k + 1) / 16) * SCALES[:, None]


@ct.each
def transformed(block: ct.Row, cosines: ct.All) -> ct.Row:
    return cosines @ block @ cosines.T


def main(n_blocks=4096, **options):
    picture = np.random.default_rng(1).integers(0, 256, (n_blocks, 8, 8))
    with ct.workspace(**options) as on:
        blocks = on.array(picture.astype("float32"))
        there = transformed(blocks, COSINES.astype("float32"))
        back = transformed(there, COSINES.T.astype("float32"))
        return [np.asarray(one) for one in (blocks, there, back)]


if __name__ == "__main__":
    blocks, _, back = main(*map(int, sys.argv[1:]))
    error = abs(back - blocks).max()
    print(f"{len(blocks)} blocks there and back: the largest error is {error:.1e}")
