# SPDX-License-Identifier: MIT
"""What output costs the cores: steps without it and with it, and copies of cells.

    python tools/measure_output.py [CELLS_PER_AXIS [FOLDER]]

Each line: the seconds of user and system time of all threads, and the seconds that went by.
"""
from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import controllers as ct

STEPS, EVERY, TIMES = 200, 50, 3


@ct.step
def heat(u: Any, *, k: float = 0.1) -> Any:
    return dict(u=u + k * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u))


def measured(what: str, run: ct.Computation, output: Any) -> None:
    before, begin = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
    run.run(STEPS, output=output)
    after, elapsed = resource.getrusage(resource.RUSAGE_SELF), time.monotonic() - begin
    user, system = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
    print(f"{what:8} user {user:6.2f} s  system {system:6.2f} s  elapsed {elapsed:6.2f} s")


def main(cells: int, folder: str | None) -> None:
    grid = ct.Grid(y=cells, x=cells, boundary="periodic")
    start = np.linspace(0, 1, cells, dtype="f4")
    with ct.Computation(
        heat, grid, dtype="float32", u=lambda y, x: np.outer(start, start)[:1] + 0 * y
    ) as run, tempfile.TemporaryDirectory(dir=folder) as own:
        run.run(STEPS)
        for number in range(TIMES):
            measured("alone", run, None)
            path = Path(own) / f"{number}.zarr"
            measured("output", run, (path, ct.every(steps=EVERY)))


if __name__ == "__main__":
    given = [*sys.argv[1:], "8192"]
    main(int(given[0]), sys.argv[2] if len(sys.argv) > 2 else None)
