# SPDX-License-Identifier: MIT
"""How long a person waits for a first result: Gray-Scott on 256 x 256 cells, in new processes.

    python tools/measure_first_result.py [--rounds 5] [--device cpu] [--size 256]

A row per state of the caches: `nothing` is kept, as at the first run on a machine, where drivers
are tried in child processes; `no kernels` are in the driver's cache; `all` is kept.  A column each
for the imports (NumPy, PyOpenCL, controllers), for `Computation(...)`, which traces, plans, builds
and launches each kernel once, and for the first `run(1)`; the sum, and CPU seconds of the process
and of its children.  Medians of the rounds, in seconds; Python's own cache of modules is warm.
"""
from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

STATES = "nothing", "no kernels", "all"
COLUMNS = "imports", "Computation", "run(1)", "sum", "CPU", "CPU of children"
PROGRAM = """
import json, os, sys, time
start = time.perf_counter()
import numpy as np
import controllers as ct
ct.Computation, ct.Grid

def around(f):
    return f[-1, 0] + f[1, 0] + f[0, -1] + f[0, 1] - 4 * f

@ct.step
def gray_scott(u, v, *, Du=0.16, Dv=0.08, F=0.037, k=0.06):
    uvv = u * v * v
    new_u = u + Du * around(u) - uvv + F * (1 - u)
    return dict(u=new_u, v=v + Dv * around(v) + uvv - (F + k) * v)

size, device = int(sys.argv[1]), sys.argv[2]
u = np.ones((size, size), np.float32)
imported = time.perf_counter()
grid = ct.Grid(y=size, x=size, boundary="periodic")
run = ct.Computation(gray_scott, grid, dtype="float32", devices=device, u=u, v=0.1)
made = time.perf_counter()
run.run(1)
done = time.perf_counter()
run.close()
cpu = os.times()
print(json.dumps([
    imported - start, made - imported, done - made, done - start,
    cpu.user + cpu.system, cpu.children_user + cpu.children_system,
]))
"""


def seconds(caches: Path, size: int, device: str) -> list[float]:
    """What a new process needs, with all that is kept in one folder."""
    kernels = caches / "kernels"
    kernels.mkdir(parents=True, exist_ok=True)
    environment = {
        **os.environ,
        "POCL_CACHE_DIR": str(kernels),
        "CUDA_CACHE_PATH": str(kernels),
        "XDG_CACHE_HOME": str(caches / "own"),
        "PYTHONPYCACHEPREFIX": str(caches.parent / "modules"),
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-c", PROGRAM, str(size), device]
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    found: list[float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--size", type=int, default=256)
    options = parser.parse_args()
    rows: dict[str, list[list[float]]] = {state: [] for state in STATES}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        seconds(folder / "before", options.size, options.device)    # modules are compiled
        for number in range(options.rounds):
            caches = folder / str(number)
            for state in STATES:
                if state == "no kernels":
                    (caches / "kernels").rename(folder / f"kernels {number}")
                rows[state].append(seconds(caches, options.size, options.device))
    print(f"{'kept':12}" + "".join(f"{column:>17}" for column in COLUMNS))
    for state, found in rows.items():
        medians = map(statistics.median, zip(*found))
        print(f"{state:12}" + "".join(f"{value:17.2f}" for value in medians))


if __name__ == "__main__":
    main()
