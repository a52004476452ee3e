# SPDX-License-Identifier: MIT
"""What output costs a run, beside the disk's own time.

    python tools/measure_output.py [--size 8192] [--steps 200] [--every 50] [--rounds 3]
        [--folder FOLDER] [--device SELECTOR] [--steps-per-launch N]

Heat on a square (5 cells, float32), in turn: the steps alone; with a moment of all cells every so
many steps, to a zarr store in FOLDER (default: of temporary files); and the disk alone: files of
the same sizes, written from memory one after the other, each with an fsync.  Each line: the seconds
of user and system time of all threads, and those that went by.  Last, of the medians of all rounds,
what the run with output took beyond the steps alone and the disk alone, as a share of the steps
alone: by the clock, which is negative where both go on beside each other, and of the processors'
time.  Of a machine that does nothing else.

Before each, as much memory as it may take is filled and freed: the host of a virtual machine gives
memory page by page where it is touched first, which may take longer than to write it.
"""
from __future__ import annotations

import argparse
import os
import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

import controllers as ct

Seconds: TypeAlias = "npt.NDArray[np.float64]"


@ct.step
def heat(u: Any, *, k: float = 0.1) -> Any:
    return dict(u=u + k * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u))


def measured(
    what: str, work: Callable[[], object], nbytes: int
) -> tuple[float, float]:
    """Print what `work` takes; the seconds that went by, and of the processors."""
    np.ones(nbytes, np.uint8)       # see above
    before, begin = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
    work()
    after, elapsed = resource.getrusage(resource.RUSAGE_SELF), time.monotonic() - begin
    user, system = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
    print(f"{what:8} user {user:6.2f} s  system {system:6.2f} s  elapsed {elapsed:6.2f} s")
    return elapsed, user + system


def write_plainly(folder: Path, sizes: Sequence[int], cells: memoryview) -> None:
    """Files of so many bytes, each of which is on the disk before the next one."""
    for number, size in enumerate(sizes):
        with open(folder / str(number), "wb", buffering=0) as file:
            left = cells[:size]
            while left:
                left = left[file.write(left) :]
            os.fsync(file.fileno())


def sizes_of(store: Path) -> list[int]:
    """Of the files that have cells."""
    return [one.stat().st_size for one in store.glob("u/c/**/*") if one.is_file()]


def parsed() -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    add = parser.add_argument
    add("--size", type=int, default=8192, help="cells along an axis (default: 8192)")
    add("--steps", type=int, default=200, help="of a round (default: 200)")
    add("--every", type=int, default=50, help="steps between moments (default: 50)")
    add("--rounds", type=int, default=3, help="how many (default: 3)")
    add("--folder", help="that holds the store (default: of temporary files)")
    add("--device", action="append", help="as for `controllers run`")
    add("--steps-per-launch", type=int, help="default: what suits the device")
    return parser.parse_args()


def main() -> None:
    options = parsed()
    n, steps = options.size, options.steps
    start = np.linspace(0, 1, n, dtype="f4")
    cells = np.random.default_rng(1).random((n, n), "f4").reshape(-1).view(np.uint8).data
    nbytes = (steps // options.every + 3) * cells.nbytes    # files, and copies of two moments
    found: dict[str, list[tuple[float, float]]] = {"alone": [], "output": [], "disk": []}
    with ct.Computation(
        heat, ct.Grid(y=n, x=n, boundary="periodic"), dtype="float32", devices=options.device,
        steps_per_launch=options.steps_per_launch, u=lambda y, x: start[np.newaxis] + 0 * y,
    ) as run:  # fmt: skip
        run.run(steps)
        for _ in range(options.rounds):
            with tempfile.TemporaryDirectory(dir=options.folder) as own:
                found["alone"].append(measured("alone", partial(run.run, steps), nbytes))
                store = Path(own) / "run.zarr"
                output = store, ct.every(steps=options.every)
                beside = partial(run.run, steps, output=output)
                found["output"].append(measured("output", beside, nbytes))
                sizes = sizes_of(store)
                shutil.rmtree(store)
                alone = partial(write_plainly, Path(own), sizes, cells)
                found["disk"].append(measured("disk", alone, nbytes))
    show(n, *(np.median(found[name], axis=0) for name in ("alone", "output", "disk")))


def show(n: int, alone: Seconds, output: Seconds, disk: Seconds) -> None:
    """The last line; each is of the clock and of the processors."""
    beyond = (output - alone - disk) / alone
    print(f"{n}^2: alone {alone[0]:.2f} s, with output {output[0]:.2f} s, the disk's own time "
          f"{disk[0]:.2f} s: {beyond[0]:+.1%} beyond both; of the processors {alone[1]:.2f}, "
          f"{output[1]:.2f} and {disk[1]:.2f} s: {beyond[1]:+.1%}")  # fmt: skip


if __name__ == "__main__":
    main()
