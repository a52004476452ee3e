# SPDX-License-Identifier: MIT
"""Functions of items that NumPy computes as well, item by item, with arrays for them.

Each is called with arrays of a row and of all rows, traced or of NumPy.
"""
from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

import controllers as ct
from controllers.language.each import Each

Array = npt.NDArray[Any]
N, K = 13, 5


def pull(x: ct.Row, every: ct.All, mass: ct.All, *, eps2: float = 1e-3) -> ct.Row:
    d = every - x
    r2 = (d * d).sum(axis=1) + eps2
    return (mass * r2**-1.5) @ d


def nearest(x: ct.Row, every: ct.All) -> ct.int32:
    return ((every - x) ** 2).sum(axis=1).argmin()


def farthest(x: ct.Row, every: ct.All) -> ct.Row:
    far = np.abs(every - x).max(axis=1)
    return dict(which=far.argmax(), how_far=np.max(far, axis=0), least=far.min())


def softly(x: ct.Row, every: ct.All) -> ct.Row:
    weights = 1 / (1 + ((every - x) ** 2).sum(axis=1))
    return (weights / weights.sum()) @ every


def product(x: ct.Row, matrix: ct.All) -> ct.Row:
    return x @ matrix


def products(x: ct.Row, every: ct.All) -> ct.Row:
    return every @ x


def gather(x: ct.Row, at: ct.Row, every: ct.All) -> ct.Row:
    return every[at] - x + every[-1] * every[(at + 1) % len(every)][1:2]


def gathers(at: ct.Row, mass: ct.All) -> ct.Row:
    return mass[at].sum() + mass[at[0]]


def chosen(x: ct.Row, mass: ct.All) -> ct.Row:
    near = np.where(mass > x[0], mass, -mass)
    return np.stack([near.sum(), np.sqrt(abs(x[1])), (near > 0).sum() + x[2] * 0])


def counts(at: ct.Row, whole: ct.All) -> ct.Row:
    return (whole[:, 0] == at[0]).sum() + (whole // 2).max(axis=0).sum() - at.min()


def outer(x: ct.Row, few: ct.All) -> ct.Row:
    return x[:, None] * few[None, :]


def of_numbers(x: ct.Row, *, a: float = 2, b: float = 0.1) -> ct.Row:
    return (x * a + b * b)[::-1] - np.clip(x, -a, np.float32(0.5)).mean()


def halves(x: ct.Row, every: ct.All) -> ct.Row:
    positive = abs(x) + abs(every) + 1
    return (positive**0.5 + positive**2.5 - positive**-0.5 / positive**3).sum(axis=0)


def in_turns(x: ct.Row, every: ct.All) -> ct.Row:
    first, *_, last = x
    return every.T[0][::2].sum() * first - last + every[2:5, 1].max() - (every.T @ every)[0, 1]


def philox(key: ct.Row, *, i: ct.Index) -> ct.Row:
    low, high = i * 0 + key, i + key        # two rounds, in 64 bits
    for _ in range(2):
        product = low * 0xD2511F53
        low, high = ((product >> 32) & 0xFFFFFFFF) ^ high, product & 0xFFFFFFFF
    return dict(low=low, fraction=(high * 2.0**-32).astype("float32"), place=i)


def turned(column: ct.Column, matrix: ct.All) -> ct.Row:
    return column @ matrix[:, :2] - column.argmin()


def blurred(x: ct.Near(-1, 2), mass: ct.All) -> ct.Row:     # type: ignore[valid-type]
    return x[0] + 2 * x[1] - (x * mass[:4, None]).sum(axis=0)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    one.__name__: one for one in (
        pull, nearest, farthest, softly, product, products, gather, gathers, chosen, counts, outer,
        of_numbers, halves, in_turns, philox, turned, blurred,
    )
}  # fmt: skip


def arrays_for(function: Each, dtype: str, seed: int = 0) -> dict[str, Array]:
    """Arrays for the parameters of a function of these, `dtype` being that of floats."""
    random = np.random.default_rng(seed)
    known: Mapping[str, Array] = {
        "x": random.normal(size=(N, 3)).astype(dtype),
        "every": random.normal(size=(K + 4, 3)).astype(dtype),
        "mass": random.normal(size=(K + 4,)).astype(dtype),
        "matrix": random.normal(size=(3, 21)).astype(dtype),
        "column": random.normal(size=(3, N)).astype(dtype),
        "few": random.normal(size=(4,)).astype(dtype),
        "key": random.integers(0, 2**32, (N,), np.int64),
        "whole": random.integers(-9, 9, (17, 2), np.int32),
    }
    found = {name: known[name] for name in function.parameters.uses if name != "at"}
    if "at" in function.parameters.uses:
        shape = (N,) if function.__name__ == "gather" else (N, 2)
        found["at"] = random.integers(0, 7, shape).astype(np.int32)
    return {name: found[name] for name in function.parameters.uses}


def _given(array: Array, use: Any, at: int) -> Array:
    if isinstance(use, ct.Near):
        return array[np.clip(np.arange(at + use.first, at + use.last + 1), 0, N - 1)]
    return array if use == "all" else array[at] if use == "row" else array[:, at]


def by_rows(function: Callable[..., Any], uses: Mapping[str, Any], arrays: Mapping[str, Array],
            **numbers: float) -> dict[str, Array]:
    """What NumPy gives, item by item."""
    found = []
    for at in range(N):
        given = [_given(array, uses[name], at) for name, array in arrays.items()]
        placed = {"i": np.int64(at)} if "i" in inspect.signature(function).parameters else {}
        with np.errstate(all="ignore"):
            made = function(*given, **numbers, **placed)
        found.append(made if isinstance(made, dict) else {"result": made})
    return {name: np.stack([np.asarray(one[name]) for one in found]) for name in found[0]}
