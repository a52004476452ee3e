# SPDX-License-Identifier: MIT
"""How long a checkpoint takes, and the same bytes by `dd ... conv=fsync`.

    python tools/measure_checkpoint.py [MIB [FOLDER [ROUNDS [DEVICE]]]]

Each line: the seconds that went by, those of processors, of the process and of dd, in turn.  The
checkpoint comes with a digest of the field, a manifest, and the removal of older ones.
"""
from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import controllers as ct

ROW = 8192      # cells


@ct.step
def heat(u: Any, *, k: float = 0.1) -> Any:
    return dict(u=u + k * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u))


def cpu_s() -> float:
    """Of this process and of those that it has waited for."""
    each = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in each)


def measured(what: str, work: Callable[[], object], nbytes: int) -> None:
    begun, start = cpu_s(), time.perf_counter()
    work()
    elapsed, cpu = time.perf_counter() - start, cpu_s() - begun
    speed = nbytes / elapsed / 2**30
    print(f"{what:10} {elapsed:7.3f} s  {cpu:6.3f} s of processors  {speed:.2f} GiB/s")


def main(mib: int, folder: str | None, rounds: int, device: str | None) -> None:
    rows = mib * 2**20 // (4 * ROW)
    with ct.Computation(
        heat, (rows, ROW), dtype="float32", u=lambda y, x: (x * 7 + y * 3) % 11, devices=device,
        boundary=ct.keep(),
    ) as run, tempfile.TemporaryDirectory(dir=folder) as own:
        run.run(1)
        for number in range(rounds):
            kept = Path(own) / f"{number}"
            measured("checkpoint", partial(run.run, 1, checkpoint=kept), 4 * rows * ROW)
            (cells,) = kept.rglob("rank-0.cells")
            target = os.fspath(Path(own) / "dd")
            command = ["dd", f"if={cells}", f"of={target}", "bs=16M", "conv=fsync", "status=none"]
            measured("dd", partial(subprocess.run, command, check=True), 4 * rows * ROW)
            os.unlink(target)
            os.unlink(cells)


if __name__ == "__main__":
    given = [*sys.argv[1:], *["4096", "", "3", ""][len(sys.argv) - 1 :]]
    main(int(given[0]), given[1] or None, int(given[2]), given[3] or None)
