# SPDX-License-Identifier: MIT
"""What output costs a run: steps without it and with it, and the disk's own time.

    python tools/measure_output.py [--size 8192] [--steps 200] [--every 50] [--rounds 3]
        [--folder FOLDER] [--device SELECTOR] [--steps-per-launch N]

Heat on a square (5 cells, float32), in turn: the steps alone; with a moment of all cells every so
many steps, to a zarr store in FOLDER (default: of temporary files); and as many files of as many
bytes by `dd ... conv=fsync`, which is the disk's own time.  Each line: the seconds of user and
system time of all threads, and those that went by; last the least of each, of a machine that does
nothing else.
"""
from __future__ import annotations

import argparse
import os
import resource
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import controllers as ct


@ct.step
def heat(u: Any, *, k: float = 0.1) -> Any:
    return dict(u=u + k * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u))


def measured(what: str, work: Callable[[], object]) -> float:
    """Print what `work` takes; the seconds that went by."""
    before, begin = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
    work()
    after, elapsed = resource.getrusage(resource.RUSAGE_SELF), time.monotonic() - begin
    user, system = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
    print(f"{what:8} user {user:6.2f} s  system {system:6.2f} s  elapsed {elapsed:6.2f} s")
    return elapsed


def dd(folder: Path, nbytes: int, count: int) -> None:
    """As many bytes as `count` moments have, each in a file that is on the disk when it ends."""
    command = ["dd", "if=/dev/zero", "bs=16M", f"count={nbytes}", "iflag=count_bytes",
               "conv=fsync", "status=none"]  # fmt: skip
    for number in range(count):
        subprocess.run([*command, f"of={folder / str(number)}"], check=True)
    for number in range(count):
        os.unlink(folder / str(number))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    add = parser.add_argument
    add("--size", type=int, default=8192, help="cells along an axis (default: 8192)")
    add("--steps", type=int, default=200, help="of a round (default: 200)")
    add("--every", type=int, default=50, help="steps between moments (default: 50)")
    add("--rounds", type=int, default=3, help="how many (default: 3)")
    add("--folder", help="that holds the store (default: of temporary files)")
    add("--device", action="append", help="as for `controllers run`")
    add("--steps-per-launch", type=int, help="default: what suits the device")
    options = parser.parse_args()
    n, steps = options.size, options.steps
    start = np.linspace(0, 1, n, dtype="f4")
    found: dict[str, list[float]] = {"alone": [], "output": [], "dd": []}
    with ct.Computation(
        heat, ct.Grid(y=n, x=n, boundary="periodic"), dtype="float32", devices=options.device,
        steps_per_launch=options.steps_per_launch, u=lambda y, x: start[np.newaxis] + 0 * y,
    ) as run, tempfile.TemporaryDirectory(dir=options.folder) as own:  # fmt: skip
        run.run(steps)
        for number in range(options.rounds):
            found["alone"].append(measured("alone", partial(run.run, steps)))
            output = Path(own) / f"{number}.zarr", ct.every(steps=options.every)
            found["output"].append(measured("output", partial(run.run, steps, output=output)))
            # a run begins with a moment, too
            one = partial(dd, Path(own), 4 * n * n, steps // options.every + 1)
            found["dd"].append(measured("dd", one))
    alone, with_output, disk = (min(found[name]) for name in ("alone", "output", "dd"))
    print(f"{n}^2: alone {alone:.2f} s, with output {with_output:.2f} s "
          f"({with_output / alone - 1:+.1%}), the disk's own time {disk:.2f} s: "
          f"{with_output / max(alone, disk) - 1:+.1%} of the longer one")  # fmt: skip


if __name__ == "__main__":
    main()
