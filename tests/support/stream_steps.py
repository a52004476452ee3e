# SPDX-License-Identifier: MIT
"""Programs on arrays that pass through their devices, at random: functions, expressions, slices."""
from __future__ import annotations

from typing import Any

import numpy as np

import controllers as ct


@ct.each
def nearest(x: ct.Row, centres: ct.All) -> ct.int32:
    return ((centres - x) ** 2).sum(axis=1).argmin()


@ct.each
def moved(x: ct.Row, push: ct.Row, centres: ct.All, *, by: float = 0.5, i: ct.Index) -> ct.Row:
    far = abs(x - centres[np.where(i < 3, i, 0)]).max()
    return dict(place=x + by * push, far=far, all=ct.accumulate(x))


@ct.each(private=dict(kept=("float32", 4)), opencl_c="""
    for (int k = 0; k < 4; ++k)
        kept[k] = x(k);
    for (int k = 0; k < 4; ++k)
        result_new(k) = kept[3 - k];
""")
def backwards(x: ct.Row) -> ct.Row:
    return x[::-1]


def steps(on: Any, seed: int, rows: int, *, shifts: bool = True) -> list[Any]:
    """What a random program finds; the same seed is the same program.

    shifts: whether rows of other places may be read.
    """
    random = np.random.default_rng(seed)
    columns = int(random.integers(1, 5))
    x, push = (on.array(random.normal(size=(rows, columns))) for _ in range(2))
    centres = random.normal(size=(4, columns)).astype("float32")
    found: list[Any] = []
    for kind in random.integers(0, 6, 5):
        if kind == 0:
            x += 0.5 * push
        elif kind == 1:
            found.append(np.asarray(nearest(x, centres)))
        elif kind == 2:
            both = moved(x, push, x[:3], by=0.25)
            x, found = both["place"], [*found, np.asarray(both["far"]), both["all"]]
        elif kind == 3:
            x[: rows // 2] = -push[: rows // 2]
            x[x < -1] = 0
        elif kind == 4:
            found += [(x * push).sum(), x.max(), x.argmin()]
        elif shifts:
            x[2:] = x[:-2] + push[1:-1]
    return [*found, np.asarray(x)]


def same(one: list[Any], other: list[Any]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
