# SPDX-License-Identifier: MIT
"""Fields of several GiB, compared with the NumPy reference in strips (`compare_bits.py --large`).

A strip is some rows or planes around a cell: at both ends, in the middle, around the 2^31st and
2^32nd byte and cell, and where the field is cut.  The reference computes a strip alone, with as
many rows more as the steps reach.  Before that a new field must hold zeros all over.
"""
from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from controllers import Computation, reference_run
from controllers.bench.problem import STENCILS
from controllers.memory.tile import TileView
from controllers.program.program import Program
from hitmap import Communicator

Array = npt.NDArray[Any]
PERIOD = 1_048_573      # of the initial values; prime: rows do not repeat
N_STEPS = 13            # more than a launch computes
ROWS = 3                # of a strip
WIDE = {2: (16_384,), 3: (256, 512)}       # cells on all axes but the first
SMALL = {2: (96,), 3: (24, 32)}             # ... of fields under 1 GiB


def initial(first: int, count: int, dtype: str) -> Array:
    """The values of `count` cells from number `first` on, in C order of the field."""
    table = np.random.default_rng(0).random(PERIOD, np.float32).astype(dtype)
    return np.resize(np.roll(table, -first), count)


def fill(tile: TileView) -> None:
    """The initial values of the rows of one place."""
    row, dtype = prod(tile.domain[1:]), str(tile.array.dtype)
    for number in range(0, tile.box.extent[0], 64):
        part = tile.array[number : number + 64]
        part[...] = initial((tile.box.lower[0] + number) * row, part.size, dtype).reshape(
            part.shape
        )


class Large:
    """One field of `gib` GiB and `n_axes` axes, in as many bands as there are places."""

    def __init__(self, gib: float, n_axes: int, dtype: str) -> None:
        self.dtype, self.gib = dtype, gib
        self.program: Program = STENCILS["2d4" if n_axes == 2 else "3d7"].program(dtype)
        rest = (SMALL if gib < 1 else WIDE)[n_axes]
        row_nbytes = prod(rest) * np.dtype(dtype).itemsize
        self.extent = (max(3 * N_STEPS, int(gib * 2**30) // row_nbytes), *rest)
        self.wrong: list[str] = []

    def __str__(self) -> str:
        return f"{' x '.join(map(str, self.extent))} cells of {self.dtype} ({self.gib} GiB)"

    def strips(self, cuts: Sequence[int]) -> Iterator[tuple[int, int]]:
        """First and last row, exclusive, of each strip; `cuts`: rows at which places begin."""
        n, row = self.extent[0], prod(self.extent[1:])
        cells = [2**31, 2**32, *(2**bits // np.dtype(self.dtype).itemsize for bits in (31, 32, 33))]
        rows = sorted({0, n, n // 2, *cuts, *(cell // row for cell in cells if cell // row < n)})
        for at in rows:
            first = min(max(0, at - ROWS), n - 2 * ROWS)
            yield first, first + 2 * ROWS

    def expected(self, first: int, last: int) -> Array:
        """The rows of a strip after the steps, by the reference."""
        low, high = max(0, first - N_STEPS), min(self.extent[0], last + N_STEPS)
        rest = self.extent[1:]
        start = initial(low * prod(rest), (high - low) * prod(rest), self.dtype)
        field = start.reshape((high - low, *rest))
        after = reference_run(self.program, field, N_STEPS, (False,) * len(self.extent))
        return after[first - low : last - low]

    def compare(self, how: str, array: Array, lower: int, cuts: Sequence[int]) -> None:
        """`array` holds the rows from number `lower` on."""
        for first, last in self.strips(cuts):
            first, last = max(first, lower), min(last, lower + len(array))
            if first < last and array[first - lower : last - lower].tobytes() != self.expected(
                first, last
            ).tobytes():
                self.wrong.append(f"{how}: rows {first} to {last} differ")

    def run(self, devices: list[str], comm: Communicator, folder: Path) -> None:
        """Clear, fill, compute and read back in every way.  Collective."""
        with Computation(
            self.program, self.extent, devices=devices, comm=comm, partition="bands"
        ) as run:
            cuts = [owned.lower[0] for owned in run.layout.owned]
            run.visit(lambda tile: self._zeros("a new field", tile))
            run.load(fill)
            run.run(N_STEPS)
            run.visit(lambda tile: self.compare(
                "load, visit", tile.array, tile.box.lower[0], cuts
            ))  # fmt: skip
            path = folder / "large.npy"
            run.save(path)
            if comm.rank == 0:
                self.compare("save", np.load(path, mmap_mode="r"), 0, cuts)
                path.unlink()
            whole = np.empty(self.extent, self.dtype) if comm.rank == 0 else None
            if whole is not None:
                count = prod(self.extent)
                whole.reshape(-1)[...] = initial(0, count, self.dtype)
            run.scatter(whole)
            run.run(N_STEPS)
            whole = run.gather(out=whole)
            if whole is not None:
                self.compare("scatter, gather", whole, 0, cuts)

    def _zeros(self, what: str, tile: TileView) -> None:
        if tile.array.any():
            self.wrong.append(f"{what} of place {tile.place} is not zero")


def n_wrong(
    sizes: Sequence[float], devices: list[str], comm: Communicator, folder: Path
) -> int:
    """How many fields of these sizes in GiB have a strip that differs.  Collective."""
    count = 0
    for gib in sizes:
        for dtype in ("float32", "float64"):
            for n_axes in (2, 3):
                field, start = Large(gib, n_axes, dtype), time.monotonic()
                field.run(devices, comm, folder)
                wrong = [text for rank in comm.allgather(field.wrong) for text in rank]
                count += bool(wrong)
                if comm.rank == 0:
                    result = "; ".join(wrong) or "right"
                    print(f"{field}: {result}, {time.monotonic() - start:.0f} s", flush=True)
    return count
