# SPDX-License-Identifier: MIT
"""Random programs and layouts whose moments go to zarr stores.

    mpiexec -n 3 python tests/support/output_cases.py FIRST COUNT FOLDER

runs the cases FIRST <= n < FIRST + COUNT, and writes for each a store, and what the fields were at
its moments as .npz.
"""
from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import numpy as np

import controllers as ct
from hitmap.comm import Communicator, default_communicator

DTYPES = ("float64", "float32", "int32", "int16", "uint8", "int64")


@ct.step
def lines(a, b):
    return dict(a=b[1] + a, b=a[-1])


@ct.step
def planes(a, b):
    return dict(a=b[0, 1] + a, b=a[-1, 0])


@ct.step
def solids(a, b):
    return dict(a=b[0, 1, 0] + a, b=a[-1, 0, 1])


STEPS = {1: lines, 2: planes, 3: solids}


def case(number: int, comm: Communicator) -> tuple[ct.Computation, dict[str, Any], int, int]:
    """A computation, options of its output, its steps, and after how many it is written."""
    chosen = random.Random(number)
    n_axes = chosen.choice((1, 2, 2, 3))
    extent = [chosen.randint(5, (90, 40, 14)[n_axes - 1]) for _ in range(n_axes)]
    grid = ct.Grid(**dict(zip("zyx"[-n_axes:], extent)), boundary="periodic", lower=-1.5)
    dtype = chosen.choice(DTYPES)
    n_places = chosen.randint(1, 3)
    drawn = random.Random(number + comm.size)       # the rest is the same for all sizes
    weights = [drawn.uniform(0.2, 3) for _ in range(n_places * comm.size)]
    division: dict[str, Any] = chosen.choice((
        dict(partition="weighted", weights=weights), dict(partition="blocks"),
        dict(partition="cyclic", block=[chosen.randint(2, 9) for _ in extent]),
    ))  # fmt: skip
    start = np.random.default_rng(number).integers(0, 50, extent)
    run = ct.Computation(
        STEPS[n_axes], grid, dtype=dtype, devices="reference", a=start, b=start[::-1].copy(),
        places_per_controller=n_places, comm=comm, **division,
    )  # fmt: skip
    options: dict[str, Any] = {}
    if chosen.random() < 0.3:
        options["fields"] = ["b"]
    if chosen.random() < 0.3:
        options["stride"] = chosen.randint(2, 4)
    if chosen.random() < 0.3:
        options["x"] = slice(chosen.randint(0, 3) - 1.5, None)
    if n_axes > 1 and chosen.random() < 0.3:
        options["y"] = chosen.randint(0, extent[-2] - 1) - 1.0
    if dtype == "float64" and chosen.random() < 0.5:
        options["dtype"] = "float32"
    return run, options, chosen.randint(3, 9), chosen.randint(1, 3)


def main(first: int, count: int, folder: Path, comm: Communicator) -> None:
    for number in range(first, first + count):
        run, options, n_steps, every = case(number, comm)
        path = folder / f"{number}.zarr"
        with run:
            run.run(n_steps, output=ct.output(path, ct.every(steps=every), **options))
        found: dict[str, Any] = {}
        again, *_ = case(number, comm)
        with again:
            for step in range(n_steps + 1):
                if step:
                    again.run(1)
                whole = {f"{name}{step}": again[name].gather() for name in again.fields}
                if step % every == 0 or step == n_steps:
                    found |= whole
        if comm.rank == 0:
            np.savez(folder / f"{number}.npz", **found)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), default_communicator())
