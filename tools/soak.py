# SPDX-License-Identifier: MIT
"""Random work for a while: memory, files, threads and OpenCL objects must not grow.

    mpiexec -n 3 python tools/soak.py [--minutes 10]

A fixed set of random workloads (stencils in all layouts, user kernels, redistribution, files,
controllers with host tasks) is repeated on all ranks, and each result compared with NumPy.  The
first third of the time warms the drivers' caches up; from then on nothing may grow.  Exit code 1
if something does, or if a result is wrong.
"""
from __future__ import annotations

import argparse
import gc
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from compare_bits import random_stencil

from controllers import Computation, Controller, Kernel, Stencil, reading, reference_run, updating
from controllers.controller.tied_tile import TiedTile
from controllers.executor.launching_device import SharedKernel
from controllers.executor.opencl import OpenCLExecutor
from controllers.memory.tile import Tile
from controllers.plan import Overlap
from hitmap import Communicator, Shape, agree, default_communicator

N_WORKLOADS = 12
GROWTH_MB, GROWTH = 4.0, 0.01   # of resident memory that is no leak: the allocator's own
COUNTED = (OpenCLExecutor, SharedKernel, Tile, TiedTile)
ADD = Kernel.of("add", "__kernel void add(__global int *u, TILE(u), BOX) { CELL; HERE(u) += 1; }")


@dataclass(frozen=True)
class Usage:
    """What one rank, or the worst one of all, holds."""

    memory_mb: float
    files: int
    threads: int
    objects: int

    @classmethod
    def now(cls) -> Usage:
        gc.collect()
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
        return cls(
            pages * os.sysconf("SC_PAGE_SIZE") / 1e6,
            len(os.listdir("/proc/self/fd")),
            len(os.listdir("/proc/self/task")),
            sum(isinstance(thing, COUNTED) for thing in gc.get_objects()),
        )

    def grown(self, earlier: Usage) -> list[str]:
        """What has grown since."""
        allowed = earlier.memory_mb * (1 + GROWTH) + GROWTH_MB
        return [
            f"{what}: {before:g} before, {after:g} now"
            for what, before, after, limit in (
                ("resident memory in MB", earlier.memory_mb, self.memory_mb, allowed),
                ("open files", earlier.files, self.files, earlier.files),
                ("threads", earlier.threads, self.threads, earlier.threads),
                ("OpenCL objects", earlier.objects, self.objects, earlier.objects),
            )
            if after > limit
        ]


def stencils(rng: random.Random, comm: Communicator, folder: Path) -> None:
    """A random stencil, divided twice, through a file; the bits of the reference."""
    n_axes = rng.randint(1, 3)
    program = random_stencil(rng, n_axes).program(rng.choice(("float32", "float64")))
    extent = tuple(rng.randint(8, 60) for _ in range(n_axes))
    field = np.random.default_rng(rng.randrange(1 << 30)).random(extent).astype(program.dtype)
    periodic = tuple(rng.random() < 0.5 for _ in extent)
    boundary = ["periodic" if wraps else "fixed" for wraps in periodic]
    overlap: Overlap = "on" if rng.random() < 0.5 else "off"
    n_each, zero_copy = rng.randint(1, 2), rng.random() < 0.5
    other = rng.choice(("bands", "blocks"))
    with Computation(
        program, extent, boundary=boundary, overlap=overlap, zero_copy=zero_copy, comm=comm,
        places_per_controller=n_each, devices="cpu",
    ) as run:  # fmt: skip
        run.scatter(field if comm.rank == 0 else None)
        run.run(4)
        run.redistribute(partition=other)
        run.run(3)
        run.save(folder / "field.npy")
        run.load_file(folder / "field.npy")
        run.run(2)
        result = run.gather()
    if result is not None:
        right = reference_run(program, field, 9, periodic)
        assert np.array_equal(result, right, equal_nan=True), "the bits of the reference"


def user_kernel(rng: random.Random, comm: Communicator, folder: Path) -> None:
    """A kernel of the user's own, on a ring of whole numbers."""
    ring = Stencil.of("ring", [(-1, 0)], [1, 1], 1).program("int32")
    kernel = Kernel.of("largest", "NEW(u) = max(HERE(u), NEAR(u, -1));")
    extent = rng.randint(50, 200)
    with Computation(ring, extent, boundary="periodic", kernel=kernel, comm=comm) as run:
        run.scatter(np.arange(extent, dtype=np.int32) if comm.rank == 0 else None)
        run.run(extent)
        result = run.gather()
    assert result is None or (result == extent - 1).all(), "the largest everywhere"


def tasks(rng: random.Random, comm: Communicator, folder: Path) -> None:
    """Controllers, kernels and host tasks."""
    (controller,) = Controller.each("cpu", comm)
    with controller:
        u, v = (controller.tile((rng.randint(9, 50), 20), "int32") for _ in range(2))
        rows = Shape.of_extent((9, 20))
        for _ in range(20):
            controller.launch(ADD, rows, u=u.select(rows))
            controller.host_task(np.copyto, updating(v.select(rows)), reading(u.select(rows)))
            controller.launch(ADD, rows, u=v.select(rows))
        assert (v.select(rows).read() == 21).all(), "as many as were added"


WORKLOADS: tuple[Callable[[random.Random, Communicator, Path], None], ...] = (
    stencils, stencils, stencils, user_kernel, tasks,
)  # fmt: skip


def one_round(comm: Communicator, folder: Path) -> None:
    """All workloads once, each always the same."""
    for number in range(N_WORKLOADS):
        WORKLOADS[number % len(WORKLOADS)](random.Random(number), comm, folder)


def soak(comm: Communicator, seconds: float) -> list[str]:
    """What has grown on this rank in the last two thirds of the time."""
    start, rounds = time.monotonic(), 0
    earlier: Usage | None = None
    with tempfile.TemporaryDirectory() as own:
        folder = Path(comm.bcast(own))
        while comm.bcast(time.monotonic() - start) < seconds:
            one_round(comm, folder)
            rounds += 1
            usage = Usage.now()
            if earlier is None and comm.bcast(time.monotonic() - start) > seconds / 3:
                earlier = usage
            if comm.rank == 0 and rounds & (rounds - 1) == 0:
                print(f"{time.monotonic() - start:5.0f} s, {rounds} rounds: {usage}", flush=True)
        agree(comm, "the number of rounds", rounds)
    if earlier is None or usage is earlier:
        return ["too short: no round in the last two thirds"]
    return usage.grown(earlier)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10)
    comm = default_communicator()
    grown = comm.allgather(soak(comm, 60 * parser.parse_args().minutes))
    for rank, texts in enumerate(grown):
        for text in texts if comm.rank == 0 else ():
            print(f"rank {rank}: {text}", file=sys.stderr)
    if comm.rank == 0 and not any(grown):
        print("nothing has grown, all results are right")
    return int(any(map(bool, grown)))


if __name__ == "__main__":
    sys.exit(main())
