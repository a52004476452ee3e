# SPDX-License-Identifier: MIT
"""Folds against the rate at which memory is read, and fused ones against their sweep alone.

    python tools/measure_folds.py --device gpu [--size 8192] [--rounds 20] [--in-a-row 20]
    python tools/measure_folds.py --device cpu [--size 4096] [--cpu-time]

One row per dtype and case, all cases in turns, in any order, medians of `--rounds`: a sum and a
maximum alone over the rate of a kernel that reads as much (on a CPU, of a sum in C with OpenMP of
the same memory); a five-point sweep, and the same with a fused maximum of the change and with a
fused sum.  Times are from the start of the launch to the end of the merging and its download.  With
`--in-a-row` they are those of launches that are enqueued one after the other, each with its folds,
from the end of the first one to that of the last: what folds cost in a program whose host need not
wait for them.  With `--cpu-time` they are seconds of CPU of the process, which others on the
machine disturb less: the least ones are told.
"""
from __future__ import annotations

import argparse
import ctypes
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyopencl as cl
from loops_in_c import compiled

from controllers.device import choose, find_devices
from controllers.executor.opencl import OpenCLExecutor
from controllers.program.expression import Expression, Read
from controllers.program.fold import Fold
from controllers.program.program import Field, Program, Stage
from controllers.program.surroundings import Surroundings
from controllers.program.sweep import Sweep
from hitmap.shape import Shape
from hitmap.strided import Geometry

Seconds: TypeAlias = Callable[[], float]
C_SUM = """
double sum(const REAL *x, long n) {
    double s = 0;
    #pragma omp parallel for reduction(+:s) schedule(static)
    for (long i = 0; i < n; ++i) s += x[i];
    return s;
}
"""
READING = """
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
__kernel void reading(__global const REAL4 *x, const long n, __global REAL4 *out) {
    REAL4 found = 0;
    for (long i = get_global_id(0); i < n; i += get_global_size(0)) found += x[i];
    if (found.x == (REAL)12345.678) out[0] = found;
}
"""
N_ITEMS, GROUP = 1 << 18, 256


def cell(*offset: int) -> Expression:
    return Read("u", offset)


MEAN = (cell(-1, 0) + cell(1, 0) + cell(0, -1) + cell(0, 1)) * 0.25
CASES: Mapping[str, tuple[bool, Mapping[str, Fold]]] = {
    "sum": (False, {"s": Fold("sum", cell(0, 0))}),
    "max": (False, {"m": Fold("max", cell(0, 0))}),
    "sweep": (True, {}),
    "sweep, max": (True, {"m": Fold("max", abs(MEAN - cell(0, 0)))}),
    "sweep, sum": (True, {"s": Fold("sum", MEAN)}),
}


class Cases:
    """The cases on one device for one dtype, on two tiles of random numbers."""

    def __init__(self, executor: OpenCLExecutor, dtype: str, size: int, in_a_row: int) -> None:
        self.executor, self.dtype, self.in_a_row = executor, dtype, in_a_row
        self.domain = Shape.of_extent((size, size))
        self.values = np.random.default_rng(0).random((size, size)).astype(dtype)
        geometry = Geometry.padded(self.domain)
        self.tiles = [executor.tile(geometry, np.dtype(dtype)) for _ in range(2)]
        executor.move_to(self.tiles[0], self.domain, self.values)

    def folding(self, name: str) -> Seconds:
        """A case, once."""
        updates, folds = CASES[name]
        reach = ((-1, 1),) * 2 if updates else ((0, 0),) * 2
        stage = Stage("turn", {"u": MEAN} if updates else {}, reach, folds)
        program = Program("turn", (Field("u", self.dtype),), (stage,))
        sweep = Sweep.over(stage, self.domain, (False, False))
        reads, writes = {"u": self.tiles[0]}, dict.fromkeys(sweep.writes, self.tiles[1])
        folding = self.executor.folding(program, sweep, [sweep.cells]) if folds else None
        launch = self.executor.launch_command(
            program, sweep, reads, writes, sweep.cells, Surroundings.usual(program, self.domain),
            folding, 0,
        )  # fmt: skip

        def once() -> tuple[Any, Any]:
            launched = launch(None)
            return launched, launched if folding is None else folding.command(None)

        return self._seconds(once)

    def _seconds(self, once: Callable[[], tuple[Any, Any]]) -> Seconds:
        """What takes the time of a launch with what follows it, or of one of those in a row."""

        def seconds() -> float:
            events = [once() for _ in range(1 + self.in_a_row)]
            (first, _), (last, end) = events[0], events[-1]
            end.wait()
            if not self.in_a_row:
                return float(end.profile.end - first.profile.start) * 1e-9
            return float(last.profile.end - first.profile.end) * 1e-9 / self.in_a_row

        return seconds

    def reading(self) -> Seconds:
        """The sum in C on a CPU, elsewhere a kernel that reads the tile."""
        if self.executor.device.kind == "cpu":
            assert self.tiles[0].host is not None, "a CPU shares the host's memory"
            return c_sum(self.tiles[0].host[: self.values.size])    # the pages that are summed, too
        real = {"float32": "float", "float64": "double"}[self.dtype]
        context, queue = self.executor.context, self.executor.compute
        text = READING.replace("REAL", real)
        kernel = cl.Kernel(cl.Program(context, text).build(), "reading")
        out = cl.Buffer(context, cl.mem_flags.READ_WRITE, 64)
        kernel.set_args(self.tiles[0].buffer, np.int64(self.values.size // 4), out)

        def once(keep: object = out) -> tuple[Any, Any]:   # a kernel does not hold its buffers
            event = cl.enqueue_nd_range_kernel(queue, kernel, (N_ITEMS,), (GROUP,))
            return event, event

        return self._seconds(once)


def c_sum(values: np.ndarray[Any, Any]) -> Seconds:
    """A sum in C with OpenMP."""
    real = {"float32": "float", "float64": "double"}[values.dtype.name]
    with tempfile.TemporaryDirectory() as folder:
        call = compiled(C_SUM, Path(folder), "-ffast-math", f"-DREAL={real}").sum
    call.restype = ctypes.c_double
    pointer, count = ctypes.c_void_p(values.ctypes.data), ctypes.c_long(values.size)

    def seconds() -> float:
        start = time.perf_counter()
        call(pointer, count)
        return time.perf_counter() - start

    return seconds


def cpu_time(call: Callable[[], object]) -> float:
    """What it takes of all threads of the process."""
    start = time.process_time()
    call()
    return time.process_time() - start


def main() -> None:
    """Print the rows."""
    parser = argparse.ArgumentParser(description="Folds against the read rate and their sweeps.")
    parser.add_argument("--device", default="cpu", help="as --devices of the command line")
    parser.add_argument("--size", type=int, help="cells along an axis (CPU: 4096, GPU: 8192)")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--in-a-row", type=int, default=0, help="launches whose host does not wait")
    parser.add_argument("--cpu-time", action="store_true", help="seconds of CPU; the least ones")
    options = parser.parse_args()
    middle, name_of = (min, "least") if options.cpu_time else (statistics.median, "medians")
    device = choose([f"{options.device}:0"], find_devices())[0]
    size = options.size or (4096 if device.kind == "cpu" else 8192)
    executor = OpenCLExecutor(device)
    how = f", {options.in_a_row} in a row" if options.in_a_row else ""
    print(f"{device.name}, {size}^2, {name_of} of {options.rounds}{how}")
    for dtype in ("float32", "float64"):
        cases = Cases(executor, dtype, size, options.in_a_row)
        turns = {"reading": cases.reading()} | {name: cases.folding(name) for name in CASES}
        found: dict[str, list[float]] = {name: [] for name in turns}
        names, any_order = [*turns], random.Random(0)
        for _ in range(options.rounds):
            any_order.shuffle(names)    # what ran before changes how fast memory is
            for name in names:
                seconds = turns[name]
                found[name].append(cpu_time(seconds) if options.cpu_time else seconds())
        medians = {name: middle(times) for name, times in found.items()}
        for name, median in medians.items():
            n_bytes = cases.values.nbytes * (1 + name.startswith("sweep"))
            base = "sweep" if name.startswith("sweep") else "reading"
            ratio = medians[base] / median
            print(
                f"{dtype}  {name:11} {median * 1e3:9.4f} ms  {n_bytes / median * 1e-9:8.1f} GB/s  "
                f"{ratio:6.3f} of {base}"
            )


if __name__ == "__main__":
    main()
