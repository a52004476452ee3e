# SPDX-License-Identifier: MIT
"""Random graphs of tasks, and what they make of arrays when one is done after another."""
from __future__ import annotations

import inspect
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

import controllers as ct
from controllers.pool import forecast
from controllers.pool.job import Job

MODULUS = 1009
Array = npt.NDArray[Any]

_MIX = ct.Kernel.of("blend", f"""
    __kernel void blend(__global int *y, __global const int *x, TILE(y), TILE(x), BOX)
    {{ CELL; HERE(y) = (HERE(y) * 3 + HERE(x)) % {MODULUS}; }}""")
_PUT = ct.Kernel.of("put", f"""
    __kernel void put(__global int *y, __global const int *x, TILE(y), TILE(x), BOX)
    {{ CELL; HERE(y) = (HERE(x) * 7 + 1) % {MODULUS}; }}""", roles={"y": "writing"})
_SHIFT = ct.Kernel.of("shift", f"""
    __kernel void shift(__global int *y, const int n, TILE(y), BOX)
    {{ CELL; HERE(y) = (HERE(y) + n) % {MODULUS}; }}""")


@ct.each
def put_each(x: ct.Row) -> dict:  # type: ignore[type-arg]
    return {"y": (x * 7 + 1) % MODULUS}


@ct.each
def near_each(x: ct.Near(-2, 1)) -> dict:  # type: ignore[type-arg, valid-type]
    return {"y": (x[0] + x[1] * 3 + x[2] * 5 + x[3] * 7) % MODULUS}  # type: ignore[index]


@ct.each
def tally_each(x: ct.Row) -> dict:  # type: ignore[type-arg]
    return {"y": ct.accumulate((x * 3 + 1) / 8)}


def mix(y: Array, x: Array) -> None:
    y[...] = (y * 3 + x) % MODULUS


def put(y: Array, x: Array) -> None:
    y[...] = (x * 7 + 1) % MODULUS


def shift(y: Array, n: int) -> None:
    y[...] = (y + n) % MODULUS


def near(y: Array, x: Array, *, rows: slice = slice(None)) -> None:
    own = np.arange(len(y))[rows]
    parts = [x[np.clip(own + k, 0, len(x) - 1)] * (2 * n + 1) for n, k in enumerate(range(-2, 2))]
    y[rows] = sum(parts) % MODULUS


def tally(y: Array, x: Array) -> None:
    y[...] = ((x * 3 + 1) / 8).sum(axis=0)


def total(x: Array) -> int:
    return int(x.sum()) % MODULUS


def added(a: int, b: int) -> int:
    return (a * 5 + b) % MODULUS


def _task(name: str, function: Any, roles: dict[str, str], *kernels: Any) -> ct.Task:
    made = ct.Task(name, inspect.getfullargspec(function).args, roles=roles)

    def sometimes_late(*args: Any, **rows: Any) -> Any:
        if random.random() < 0.2:   # of another thread's luck, on purpose
            time.sleep(random.random() * 2e-3)
        return function(*args, **rows)

    sometimes_late.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    made.variant(sometimes_late)
    for kernel in kernels:
        made.variant(kernel)
    return made


TASKS = {
    "mix": _task("mix", mix, {"y": "updating"}, _MIX),
    "put": _task("put", put, {"y": "writing"}, _PUT, put_each),
    "shift": _task("shift", shift, {"y": "updating"}, _SHIFT),
    "near": _task("near", near, {"y": "writing"}, near_each),
    "tally": _task("tally", tally, {"y": "writing"}, tally_each),
    "total": _task("total", total, {}),
    "added": _task("added", added, {}),
}
TASKS["near"].variant(near_each, on="host")
TASKS["tally"].variant(tally_each, on="host")
TASKS["total"].variant(total, devices=(1, 2))    # which only keeps others from them
_FUNCTIONS = {
    "mix": mix, "put": put, "shift": shift, "near": near, "tally": tally, "total": total,
    "added": added,
}  # fmt: skip
MOST_COLUMNS = 8    # of an array, and as many sums


SOON_S = 120            # a limit that only a deadlock reaches


class Graph:
    """A graph with arrays of its own: `statements` of tasks with views, numbers and results.

    waits: before which statements the program waits for all, and changes arrays itself.
    """

    def __init__(self, seed: int, most: int = 60) -> None:
        self.draw = np.random.default_rng(seed)
        n_axes = int(self.draw.integers(1, 3))
        shapes = [self.draw.integers(3, 9, n_axes) for _ in range(self.draw.integers(2, 5))]
        self.arrays = [self.draw.integers(0, MODULUS, shape, np.int32) for shape in shapes]
        self.n_cut = len(self.arrays)
        self.arrays.append(np.zeros(MOST_COLUMNS))  # type: ignore[arg-type]
        self.statements: list[tuple[str, list[Any]]] = []
        for n in range(self.draw.integers(10, most + 1)):
            self.statements.append(self._statement(n))
        self.waits = {n for n in range(len(self.statements)) if self.draw.random() < 0.05}

    def _statement(self, n: int) -> tuple[str, list[Any]]:
        """What is done, and to what: slices of arrays by number, and results of statements."""
        words = ["mix", "mix", "put", "put", "near", "tally", "shift", "total", "added"]
        word = str(self.draw.choice(words))
        if word == "added":
            return word, [self._number(n), self._number(n)]
        one, other = (int(k) for k in self.draw.integers(0, self.n_cut, 2))
        if word == "total" and self.draw.random() < 0.3:
            return word, [(self.n_cut, (slice(None),))]
        if word == "tally":
            extent = self.draw.integers(1, np.add(self.arrays[one].shape, 1))
            n_sums = int(extent[1]) if len(extent) == 2 else 1
            first = int(self.draw.integers(0, MOST_COLUMNS + 1 - n_sums))
            where = one, self._slices(self.arrays[one].shape, extent)
            return word, [(self.n_cut, (slice(first, first + n_sums),)), where]
        if word in ("shift", "total"):
            extent = self.draw.integers(1, np.add(self.arrays[one].shape, 1))
            where = (one, self._slices(self.arrays[one].shape, extent))
            return word, [where, self._number(n)] if word == "shift" else [where]
        least = np.minimum(self.arrays[one].shape, self.arrays[other].shape)
        extent = self.draw.integers(1, least + 1)
        where = one, self._slices(self.arrays[one].shape, extent)
        if word == "near" and one == other:     # which reads what it would write
            word = "put"
        if one == other:    # the same cells, or some would be read that others write
            return word, [where, where]
        return word, [where, (other, self._slices(self.arrays[other].shape, extent))]

    def _slices(self, shape: Sequence[int], extent: Any) -> tuple[slice, ...]:
        lower = [int(self.draw.integers(0, n - k + 1)) for n, k in zip(shape, extent)]
        slices = [slice(low, low + int(k)) for low, k in zip(lower, extent)]
        if self.draw.random() < 0.1 and all(k == 1 or 2 * k <= n for n, k in zip(shape, extent)):
            # every second one, which is no box
            slices = [slice(0, 2 * int(k) - 1, 2) for k in extent]
        return tuple(slices)

    def _number(self, n: int) -> Any:
        """A number, or the result of a statement before the n-th one."""
        before = [k for k in range(n) if self.statements[k][0] in ("total", "added")]
        if before and self.draw.random() < 0.6:
            return "result", int(self.draw.choice(before))
        return int(self.draw.integers(0, MODULUS))

    def one_after_another(self) -> tuple[list[Array], list[Any]]:
        """The arrays, and what the statements have returned: the model."""
        arrays = [array.copy() for array in self.arrays]
        results: list[Any] = []
        for n, (word, given) in enumerate(self.statements):
            if n in self.waits:
                self._change(arrays)
            args = [self._argument(one, arrays, results) for one in given]
            results.append(_FUNCTIONS[word](*args))
        return arrays, results

    def submitted(self, pool: Any) -> tuple[list[Array], list[Any]]:
        """The same by a pool: arrays, and futures."""
        arrays = [array.copy() for array in self.arrays]
        futures: list[Any] = []
        for n, (word, given) in enumerate(self.statements):
            if n in self.waits:
                pool.wait(SOON_S)
                self._change(arrays)
            args = [self._argument(one, arrays, futures) for one in given]
            futures.append(pool.submit(TASKS[word], *args))
        return arrays, futures

    def _change(self, arrays: list[Array]) -> None:
        """By the program, to which they belong while no task is under way."""
        for array in arrays[: self.n_cut]:
            array[...] = (array + 1) % MODULUS

    def _argument(self, given: Any, arrays: list[Array], results: list[Any]) -> Any:
        if not isinstance(given, tuple):
            return given
        if given[0] == "result":
            return results[given[1]]
        return arrays[given[0]][given[1]]


@contextmanager
def any_schedule(seed: int) -> Iterator[None]:
    """Jobs are sent anywhere, in place of where they end first."""
    draw, place = random.Random(seed), forecast.Forecast.place

    def anywhere(self: forecast.Forecast, job: Job, befores: Sequence[Job]) -> None:
        place(self, job, befores)
        job.placed = draw.choice(job.may_run)
        job.rank_s = draw.random()

    forecast.Forecast.place = anywhere  # type: ignore[method-assign]
    try:
        yield
    finally:
        forecast.Forecast.place = place     # type: ignore[method-assign]
