# SPDX-License-Identifier: MIT
"""Time per step against the same loop written directly in PyOpenCL and mpi4py.

    python tools/compare_handwritten.py [--device SELECTOR] [--sizes 4096 64]
    mpiexec -n 2 python tools/compare_handwritten.py ...

The hand-written loop is the usual one: one launch, the border row down, Sendrecv, the halo
row up, tiles swapped; on one rank just the launch.  Both compute the mean of four neighbours
in float32 on bands of an N x N field, on the same devices, in turn within one process, and
both end with the same bits.  Printed: medians over the rounds in microseconds per step, and
the median of the rounds' ratios.
"""
from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyopencl as cl
from mpi4py import MPI

from controllers import Computation, Stencil, TileView
from controllers.executor.opencl import OpenCLExecutor
from hitmap import Shape

Field = npt.NDArray[np.float32]
MEAN = Stencil.of("mean", [(-1, 1), (-1, 1)], [0, 1, 0, 1, 0, 1, 0, 1, 0], 4)
SOURCE = """
#pragma OPENCL FP_CONTRACT OFF
__kernel void mean(__global const float *restrict old, __global float *restrict new,
                   const long pitch)
{
    const long c = (get_global_id(1) + 1) * pitch + get_global_id(0) + 1;
    new[c] = (old[c - pitch] + old[c - 1] + old[c + 1] + old[c + pitch]) * 0.25f;
}
"""


class HandWritten:
    """A band of rows with one halo row towards each neighbour, as one would write it by hand."""

    def __init__(self, comm: MPI.Intracomm, device: cl.Device, owned: Shape, field: Field) -> None:
        n_rows = field.shape[0]
        self.comm = comm
        self.below = comm.rank - 1 if owned.lower[0] > 0 else None
        self.above = comm.rank + 1 if owned.upper[0] < n_rows else None
        first = owned.lower[0] - (self.below is not None)
        last = owned.upper[0] + (self.above is not None)
        self.local = np.ascontiguousarray(field[first:last])
        self.owned = slice(owned.lower[0] - first, owned.upper[0] - first)
        self.context = cl.Context([device])
        self.queue = cl.CommandQueue(self.context, device)
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        self.old, self.new = (cl.Buffer(self.context, flags, hostbuf=self.local) for _ in range(2))
        self.kernel = cl.Kernel(cl.Program(self.context, SOURCE).build(), "mean")
        self.row_nbytes = self.local.shape[1] * 4
        self.send, self.receive = (np.empty(self.local.shape[1], np.float32) for _ in range(2))

    def run(self, n_steps: int) -> None:
        """`n_steps` launches, each followed by the exchange."""
        rows, columns = self.local.shape
        pitch = np.int64(columns)
        for _ in range(n_steps):
            self.kernel.set_args(self.old, self.new, pitch)
            cl.enqueue_nd_range_kernel(self.queue, self.kernel, (columns - 2, rows - 2), None)
            if self.above is not None:
                self._swap_rows(self.above, rows - 2, rows - 1)
            if self.below is not None:
                self._swap_rows(self.below, 1, 0)
            self.old, self.new = self.new, self.old
        self.queue.finish()

    def _swap_rows(self, peer: int, border: int, halo: int) -> None:
        nbytes = self.row_nbytes
        cl.enqueue_copy(self.queue, self.send, self.new, src_offset=border * nbytes)
        self.comm.Sendrecv(self.send, peer, 0, self.receive, peer, 0)
        cl.enqueue_copy(self.queue, self.new, self.receive, dst_offset=halo * nbytes)

    def result(self) -> Field:
        """The owned rows."""
        cl.enqueue_copy(self.queue, self.local, self.old)
        return self.local[self.owned]


def compare(comm: MPI.Intracomm, device: str, size: int, rounds: int) -> None:
    """Interleave both at one size and print a line on rank 0."""
    field = np.random.default_rng(0).random((size, size), np.float32)
    n_steps = max(20, min(2000, 400_000_000 // size**2))
    with Computation(MEAN.program("float32"), field.shape, devices=device, comm=comm) as ours:
        (place,) = ours.placement.places
        controller = ours.placement.executors[place]
        assert isinstance(controller, OpenCLExecutor), "an OpenCL device"
        owned = ours.layout.owned[place]
        theirs = HandWritten(comm, controller.context.devices[0], owned, field)

        def load(tile: TileView) -> None:
            tile.array[...] = field[tile.box.slices((0, 0))]

        ours.load(load)
        runs: tuple[Callable[[int], object], ...] = (ours.run, theirs.run)
        times = [[_seconds(comm, run, n_steps) for run in runs] for _ in range(rounds + 1)][1:]
        assert np.array_equal(_only(ours), theirs.result()), "both loops have the same bits"
    if comm.rank == 0:
        mine, hand = (statistics.median(column) / n_steps * 1e6 for column in zip(*times))
        ratio = statistics.median(a / b for a, b in times)
        print(
            f"{size:6} x {size:<6} {comm.size} rank(s) {mine:10.1f} us {hand:10.1f} us "
            f"ratio {ratio:.3f}", flush=True,
        )


def _seconds(comm: MPI.Intracomm, run: Callable[[int], object], n_steps: int) -> float:
    comm.Barrier()
    start = time.perf_counter()
    run(n_steps)
    elapsed: float = max(comm.allgather(time.perf_counter() - start))
    return elapsed


def _only(computation: Computation) -> Field:
    """The cells of this rank's one place."""
    arrays: list[Field] = []
    computation.visit(lambda tile: arrays.append(tile.array))
    return arrays[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--device", default="cpu", help="as for `controllers run` (default: cpu)")
    parser.add_argument("--sizes", type=int, nargs="+", default=[4096, 64], help="N of N x N")
    parser.add_argument("--rounds", type=int, default=9, help="rounds per size (default: 9)")
    options = parser.parse_args()
    comm = MPI.COMM_WORLD
    if comm.rank == 0:
        print(" cells            ranks     controllers  hand-written")
    for size in options.sizes:
        compare(comm, options.device, size, options.rounds)


if __name__ == "__main__":
    main()
