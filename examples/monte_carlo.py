# SPDX-License-Identifier: MIT
"""The volume of the ball in four dimensions by random points, the same points on any devices.

    python examples/monte_carlo.py [POINTS]
    mpiexec -n 2 python examples/monte_carlo.py

Point i is what the generator Philox 4x32-10 makes of the counter i (Salmon, Moraes, Dror, Shaw, SC
2011): no state is kept, so it does not matter who computes it.  Words of 32 bits are whole numbers
of 64, whose products wrap.
"""
import sys

import numpy as np

import controllers as ct

WORD = 0xFFFFFFFF


def philox(counter, key):
    """Four random words, of four words and two."""
    for _ in range(10):
        one, other = counter[0] * 0xD2511F53, counter[2] * 0xCD9E8D57
        counter = [
            other >> 32 & WORD ^ counter[1] ^ key[0], other & WORD,
            one >> 32 & WORD ^ counter[3] ^ key[1], one & WORD,
        ]  # fmt: skip
        key = [key[0] + 0x9E3779B9 & WORD, key[1] + 0xBB67AE85 & WORD]
    return counter


@ct.each
def inside(number: ct.Row, *, seed: int = 1) -> ct.int32:
    words = philox([number & WORD, number >> 32, number * 0, number * 0], [seed.astype("int64"), 0])
    return np.where(sum((word + 0.5) ** 2 for word in words) < 2.0**64, 1, 0)


def main(n=1_000_000, **options):
    with ct.workspace(**options) as on:
        return 16 * int(inside(on.array(np.arange(n))).sum()) / n


if __name__ == "__main__":
    print(f"{main(*map(int, sys.argv[1:])):.5f}, exactly {np.pi**2 / 2:.5f}")
