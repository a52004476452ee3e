# SPDX-License-Identifier: MIT
"""COSP's nine benchmarks, which are among the examples, on arrays that pass through.

Each is the call that does its work, again and again on the same arrays; or a step of time.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from controllers.language.grid import Grid
from controllers.program.rule import mirror
from controllers.run.computation import Computation
from controllers.space.workspace import Workspace

Module: TypeAlias = Mapping[str, Any]       # of an example
Call: TypeAlias = Callable[[], Any]
REPEATED = 1 << 16      # random numbers, which go on from the first one


@dataclass(frozen=True)
class StreamCase:
    """One benchmark: bytes of all arrays per row, and what makes its arrays and the call.

    begin: of one of steps, what makes its computation, with so many cells and these options.
    fewest: rows; what each chunk folds into would take much of a smaller cap.
    """

    row_nbytes: int
    prepare: Callable[[Module, Workspace, int], Call] | None = None
    begin: Callable[[Module, int, Mapping[str, Any]], Computation] | None = None
    fewest: int = 0


def _random(rows: int, *columns: int) -> npt.NDArray[np.float32]:
    shape = (rows, *columns)
    first = np.random.default_rng(1).random(REPEATED, dtype=np.float32)
    return np.resize(first, shape)


def _vector_add(example: Module, on: Workspace, rows: int) -> Call:
    a, b, both = (on.array(_random(rows)) for _ in range(3))

    def call() -> Any:
        both[...] = a + b
        return both

    return call


def _scalar_product(example: Module, on: Workspace, rows: int) -> Call:
    a, b = (on.array(_random(rows, 256) - 0.5) for _ in range(2))
    return lambda: example["products"](a, b)


def _black_scholes(example: Module, on: Workspace, rows: int) -> Call:
    ends = (5, 30), (1, 100), (0.25, 10)
    given = [on.array(low + (high - low) * _random(rows)) for low, high in ends]
    return lambda: example["prices"](*given)["call"]


def _dct(example: Module, on: Workspace, rows: int) -> Call:
    blocks = on.array(np.floor(256 * _random(rows, 8, 8)))
    cosines = on.array(example["COSINES"], split=None)
    return lambda: example["transformed"](blocks, cosines)


def _batched_fft(example: Module, on: Workspace, rows: int) -> Call:
    waves = example["WAVES"]
    cosines, sines = (on.array(one, split=None) for one in (waves.real, waves.imag))
    re, im = (on.array(_random(rows, len(waves))) for _ in range(2))
    return lambda: example["transformed"](re, im, cosines, sines)["real"]


def _filter_bank(example: Module, on: Workspace, rows: int) -> Call:
    taps, bands = example["TAPS"], example["BANDS"]
    filters, lags = (
        on.array(one, split=None) for one in (_random(bands, taps), np.arange(taps))
    )
    heard = on.array(_random(rows))
    return lambda: example["analysed"](heard, heard, filters, lags)


def _monte_carlo(example: Module, on: Workspace, rows: int) -> Call:
    numbers = on.array(np.arange(rows))
    return lambda: example["inside"](numbers)


def _euler_mesh(example: Module, on: Workspace, rows: int) -> Call:
    n = int(rows**0.5)
    start = np.where(_random(n * n, 1) < 0.5, 1.5, 1) * example["FAR"]
    q, sides, normals = map(on.array, (start, *example["mesh"](n)))
    stage = on.array(start)
    return lambda: example["advanced"](q, stage, sides, normals, q, part=1.0)


def _srad(example: Module, n_cells: int, options: Mapping[str, Any]) -> Computation:
    n = int(n_cells**0.5)
    grid = Grid(y=n, x=n, lower=0, upper=1, boundary=mirror())
    return Computation(example["diffused"], grid, image=1 + _random(n, n), **options)


STREAMS: Mapping[str, StreamCase] = {
    "vector_add": StreamCase(12, _vector_add),
    "scalar_product": StreamCase(8 * 256 + 4, _scalar_product),
    "black_scholes": StreamCase(20, _black_scholes),
    "dct": StreamCase(8 * 64, _dct),
    "batched_fft": StreamCase(16 * 64, _batched_fft),
    "filter_bank": StreamCase(4 + 4 * 8, _filter_bank),
    "monte_carlo": StreamCase(12, _monte_carlo),
    "srad": StreamCase(4, begin=_srad, fewest=1 << 22),
    "euler_mesh": StreamCase(16 + 16 + 32 + 32 + 16, _euler_mesh),
}  # fmt: skip
