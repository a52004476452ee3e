# SPDX-License-Identifier: MIT
"""Runs with output that others disturb: killed again and again, read meanwhile, on full disks.

    python tests/support/output_runs.py kill FIRST END FOLDER

kills a run for each of the cases FIRST to END - 1 at random moments, looks at its store after each
kill, and lets it go on from its checkpoints until it is done.  It prints a line for each case whose
store is wrong, and how many kills there were.

    mpiexec -n 3 python tests/support/output_runs.py run FOLDER STEPS [FULL_RANK]

is one run of so many steps, with checkpoints; on FULL_RANK no file gets longer than some bytes.
"""
from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import sys
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt

import controllers as ct
from hitmap import SerialCommunicator
from hitmap.comm import Communicator, default_communicator

SHAPE = (24, 36)
STEPS, MOST_S, FULL_BYTES, KILLS = 40, 0.5, 700, 2


@ct.step
def count(u, v):
    return dict(u=u + 1, v=v + 2)


def run(folder: Path, n_steps: int, comm: Communicator, *, kept: bool, places: int = 1) -> None:
    """All cells of u are the number of the step, those of v twice that and the cell's own."""
    with ct.Computation(
        count, ct.Grid(y=SHAPE[0], x=SHAPE[1], boundary="periodic"), dtype="float64", comm=comm,
        u=0, v=lambda y, x: y + 100 * x, devices="reference", places_per_controller=places,
    ) as found:  # fmt: skip
        options = dict(checkpoint=(folder / "kept", ct.every(steps=7))) if kept else {}
        found.run(n_steps, output=(folder / "a.zarr", ct.every(steps=2)), **options)


def own_of_v() -> npt.NDArray[np.float64]:
    """v before the first step."""
    y, x = np.ogrid[0 : SHAPE[0], 0 : SHAPE[1]]
    return (y + 0.5) + 100.0 * (x + 0.5)


def check(path: Path) -> list[int]:
    """The steps in a store, all of which are whole; AssertionError else."""
    import xarray

    found = xarray.open_zarr(path)
    steps: list[int] = found.step.values.tolist()
    for n, step in enumerate(steps):
        assert (found.u[n].values == step).all(), (step, "u")
        assert (found.v[n].values == own_of_v() + 2 * step).all(), (step, "v")
    return steps


def case(number: int, folder: Path) -> int:
    """How often a run was killed until it was done."""
    chosen, n_kills = random.Random(number), 0
    folder.mkdir()
    while True:
        places, delay = chosen.randint(1, 3), chosen.random() * MOST_S
        child = os.fork()
        if child == 0:
            run(folder, STEPS, SerialCommunicator(), kept=True, places=places)
            os._exit(0)
        if n_kills < KILLS:
            time.sleep(delay)
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if (folder / "a.zarr").exists():
            looked = os.fork()      # zarr's threads do not survive a fork
            if looked == 0:
                check(folder / "a.zarr")
                os._exit(0)
            assert os.waitpid(looked, 0)[1] == 0, f"case {number}: a store is not whole"
        if status == 0:
            break
        assert os.WIFSIGNALED(status), f"case {number}: status {status}"
        n_kills += 1
    return n_kills


def kill(first: int, end: int, folder: Path) -> None:
    total = 0
    for number in range(first, end):
        total += case(number, folder / str(number))
    for number in range(first, end):    # after the last fork
        steps = check(folder / str(number) / "a.zarr")
        if steps != [*range(0, STEPS + 1, 2)]:
            print(f"case {number}: steps {steps}")
        shutil.rmtree(folder / str(number))
    print(f"kills: {total}")


def main(folder: Path, n_steps: int, full_rank: int, comm: Communicator) -> None:
    if comm.rank == full_rank:
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (FULL_BYTES, hard))
    run(folder, n_steps, comm, kept=full_rank < 0)


if __name__ == "__main__":
    if sys.argv[1] == "kill":
        kill(int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
    else:
        rank = int(sys.argv[4]) if len(sys.argv) > 4 else -1
        main(Path(sys.argv[2]), int(sys.argv[3]), rank, default_communicator())
