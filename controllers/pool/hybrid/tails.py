# SPDX-License-Identifier: MIT
"""A share as a few pieces, large ones first: who is done early takes of the last ones of others.

After guided self-scheduling, Polychronopoulos, Kuck 1987, doi:10.1109/TC.1987.5009495; but the
first part is as large as it is sure that its side will not be late with it.
"""
from __future__ import annotations

from itertools import accumulate

from controllers.estimates.estimate import Estimate
from controllers.pool.pieces import least_s

LEAST_TAIL, MOST_TAIL = 0.125, 0.5    # of a share that is cut further, and steps between them
FEWEST_PARTS, MOST_PARTS = 4, 7     # up to which the share of a worker is cut; between them ...
MOST_TAILS = 8          # ... by so many parts of all workers, beside their first ones


def parts_of(
    n_rows: int, n_jobs: int, known: Estimate | None, unsure: float = 0.0
) -> list[tuple[int, int]]:
    """From which row to before which one, of n rows that `n_jobs` workers do at once.

    known: how long that takes, if anything is.  unsure: which part of it another side
    may take, as it may be done earlier than foreseen.  Pieces are dispatched one by one, so that
    those of many workers have to be longer, and few.

    >>> parts_of(64, 1, Estimate.about(1.0, 0.5, "history"))
    [(0, 32), (32, 48), (48, 56), (56, 60), (60, 62), (62, 63), (63, 64)]
    >>> parts_of(64, 2, Estimate.about(30e-3, 0.125, "history"))
    [(0, 24), (24, 48), (48, 56), (56, 64)]
    >>> parts_of(64, 2, Estimate.about(1.0, 0.01, "history"))
    [(0, 32), (32, 64)]
    >>> parts_of(64, 1, Estimate.about(0.02, 0.01, "history"), unsure=0.125)
    [(0, 48), (48, 64)]
    >>> [len(parts_of(512, n, Estimate.about(1.0, 0.5, "history"))) for n in (1, 2, 4, 8, 15)]
    [7, 10, 16, 32, 60]
    """
    pieces = [1.0]
    if known is not None:
        # where one side is as much slower than foreseen as the other one is faster
        tail = min(MOST_TAIL, 2 * max(unsure, known.most_s / known.seconds - 1))
        tail = round(tail / LEAST_TAIL) * LEAST_TAIL      # so that the same rows come again
        least = least_s(n_jobs)
        if tail >= LEAST_TAIL and tail * known.seconds >= least:
            pieces = [1 - tail, tail]
            n_pieces = min(MOST_PARTS, max(FEWEST_PARTS, 1 + MOST_TAILS // n_jobs))
            while len(pieces) < n_pieces and pieces[-1] * known.seconds >= 2 * least:
                pieces[-1:] = [pieces[-1] / 2] * 2
    upto = [0.0, *accumulate(piece / n_jobs for piece in pieces for _ in range(n_jobs))]
    rows = [round(n_rows * part) for part in upto]
    # those first that are larger by a row, or the last one of a worker may be such a one
    counts = sorted((high - low for low, high in zip(rows, rows[1:])), reverse=True)
    rows = [0, *accumulate(counts)]
    return [(low, high) for low, high in zip(rows, rows[1:]) if low < high]
