# SPDX-License-Identifier: MIT
"""How long a checkpoint takes, and the same bytes by `dd ... conv=fsync`.

    python tools/measure_checkpoint.py [--mib 4096] [--rounds 3] [--folder FOLDER]
        [--device SELECTOR]

In turn, in FOLDER (default: of temporary files).  Each line: the seconds that went by, and those
of processors, of the process and of dd; last the least of each.  The checkpoint comes with a step,
a digest of the field, a manifest, and the removal of older ones; dd reads the checkpoint's cells.
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

import controllers as ct

ROW = 8192      # cells


@ct.step
def heat(u: Any, *, k: float = 0.1) -> Any:
    return dict(u=u + k * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u))


def cpu_s() -> float:
    """Of this process and of those that it has waited for."""
    each = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in each)


def measured(what: str, work: Callable[[], object], nbytes: int) -> float:
    """Print what `work` takes; the seconds that went by."""
    begun, start = cpu_s(), time.perf_counter()
    work()
    elapsed, cpu = time.perf_counter() - start, cpu_s() - begun
    speed = nbytes / elapsed / 2**30
    print(f"{what:10} {elapsed:7.3f} s  {cpu:6.3f} s of processors  {speed:.2f} GiB/s")
    return elapsed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    add = parser.add_argument
    add("--mib", type=int, default=4096, help="of the field (default: 4096)")
    add("--rounds", type=int, default=3, help="how many (default: 3)")
    add("--folder", help="that holds the checkpoint (default: of temporary files)")
    add("--device", action="append", help="as for `controllers run`")
    options = parser.parse_args()
    nbytes = options.mib * 2**20
    found: dict[str, list[float]] = {"checkpoint": [], "dd": []}
    with ct.Computation(
        heat, (nbytes // (4 * ROW), ROW), dtype="float32", devices=options.device,
        u=lambda y, x: (x * 7 + y * 3) % 11, boundary=ct.keep(),
    ) as run, tempfile.TemporaryDirectory(dir=options.folder) as own:  # fmt: skip
        run.run(1)
        for number in range(options.rounds):
            kept, target = Path(own) / f"{number}", os.fspath(Path(own) / "dd")
            ours = partial(run.run, 1, checkpoint=kept)
            found["checkpoint"].append(measured("checkpoint", ours, nbytes))
            (cells,) = kept.rglob("rank-0.cells")
            command = ["dd", f"if={cells}", f"of={target}", "bs=16M", "conv=fsync", "status=none"]
            theirs = partial(subprocess.run, command, check=True)
            found["dd"].append(measured("dd", theirs, nbytes))
            os.unlink(target)
            os.unlink(cells)
    least, disk = map(min, found.values())
    print(f"{options.mib} MiB: a checkpoint {least:.3f} s, dd {disk:.3f} s: "
          f"at {disk / least:.2f} of its speed")  # fmt: skip


if __name__ == "__main__":
    main()
