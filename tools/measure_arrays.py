# SPDX-License-Identifier: MIT
"""Array expressions on fields, against the copy rate and one loop in C with OpenMP.

    python tools/measure_arrays.py --device cpu [--size 4096] [--cpu-time]
    python tools/measure_arrays.py --device gpu [--size 8192]
    POCL_CACHE_DIR=$(mktemp -d) python tools/measure_arrays.py --first "a sum"

`out[...] = a * b + c * d - e`, float32: bytes per second (five arrays read, one written) over the
rate of the device's own copy, and on a CPU the speed over that of C; medians of `--rounds` turns,
or with `--cpu-time` the least seconds of CPU of the process, which others disturb less.
Then what the first use of an expression costs, and later ones of few cells, by kinds of
expressions: seconds of CPU of the calling thread, the least of `--rounds` turns of 60.  With
`--first` the first use of one kind alone, once per process: 512 x 512 cells.
"""
from __future__ import annotations

import argparse
import ctypes
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
from loops_in_c import compiled

import controllers as ct
from controllers.device import choose, find_devices

NAMES = ("a", "b", "c", "d", "e", "out")
C = """
void fused(long n, float **f) {
    const float *restrict a = f[0], *restrict b = f[1], *restrict c = f[2], *restrict d = f[3];
    const float *restrict e = f[4]; float *restrict out = f[5];
    #pragma omp parallel for schedule(static)
    for (long i = 0; i < n; ++i) out[i] = a[i] * b[i] + c[i] * d[i] - e[i];
}
"""


def fused(run: Any) -> None:
    run.out[...] = run.a * run.b + run.c * run.d - run.e


def star(run: Any) -> None:
    u = run.a
    around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
    run.out[1:-1, 1:-1] = around - 4 * u[1:-1, 1:-1]


def scaled(run: Any) -> None:
    run.out += random.random() * run.a


def chosen(run: Any) -> None:
    run.out[...] = np.where(run.a > run.b, run.c, run.d)


def masked(run: Any) -> None:
    run.out[run.a < 0] = 0


def moved(run: Any) -> None:
    run.out[1:-1] = run.a[2:] - run.a[:-2]


KINDS: dict[str, Callable[[Any], object]] = {
    "five operands": fused, "a star of slices": star, "two slices": moved,
    "+= by another number": scaled, "where": chosen, "a mask": masked,
    "a sum": lambda run: run.a.sum(), "a maximum": lambda run: np.abs(run.a - run.b).max(),
    "vdot": lambda run: np.vdot(run.a, run.b), "a norm": lambda run: np.linalg.norm(run.a),
    "argmax": lambda run: run.a.argmax(), "any": lambda run: (run.a > 3).any(),
    "a norm of a difference": lambda run: np.linalg.norm(run.a - run.b),
}  # fmt: skip


def fields(size: int, device: str) -> Any:
    """A computation of six fields and no step."""
    starts = {name: np.float32(number + 1) for number, name in enumerate(NAMES)}
    grid = ct.Grid(y=size, x=size)
    return ct.Computation([], grid, dtype="float32", devices=device, init=starts)


def of_ours(run: Any) -> Callable[[int], float]:
    """Seconds of an assignment, measured over so many, to the end of the last one."""

    def seconds(count: int) -> float:
        start = time.perf_counter()
        for _ in range(count):
            fused(run)
        run.out[0, 0]
        return (time.perf_counter() - start) / count

    return seconds


def of_c(size: int, folder: Path) -> Callable[[int], float]:
    """The same of the loop in C."""
    loop = compiled(C, folder).fused
    arrays = [np.full(size * size, number + 1, np.float32) for number in range(len(NAMES))]
    pointers = (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))

    def seconds(count: int, keep: object = arrays) -> float:
        start = time.perf_counter()
        for _ in range(count):
            loop(ctypes.c_long(size * size), pointers)
        return (time.perf_counter() - start) / count

    return seconds


def of_copy(size: int, handle: cl.Device) -> Callable[[int], float]:
    """The same of a copy that moves as many bytes."""
    context = cl.Context([handle])
    queue = cl.CommandQueue(context, handle)
    n_bytes = len(NAMES) * 4 // 2 * size * size
    buffers = [cl.Buffer(context, cl.mem_flags.READ_WRITE, n_bytes) for _ in range(2)]
    for buffer in buffers:      # memory that nobody has written to is read from one page
        cl.enqueue_fill_buffer(queue, buffer, np.float32(1), 0, n_bytes)

    def seconds(count: int) -> float:
        start = time.perf_counter()
        for _ in range(count):
            cl.enqueue_copy(queue, *buffers)
        queue.finish()
        return (time.perf_counter() - start) / count

    return seconds


def in_turns(
    each: dict[str, Callable[[int], float]], count: int, n_rounds: int, cpu_time: bool
) -> dict[str, list[float]]:
    """Seconds of each by round, one after the other, forwards and backwards."""
    times: dict[str, list[float]] = {name: [] for name in each}
    for seconds in each.values():
        seconds(4)
    for number in range(n_rounds):
        for name in [*each][:: 1 if number % 2 == 0 else -1]:
            start = time.process_time()
            wall = each[name](count)
            cpu = (time.process_time() - start) / count
            times[name].append(cpu if cpu_time else wall)
    return times


def of_few_cells(device: str, n_rounds: int) -> tuple[float, dict[str, float]]:
    """Seconds of the first use of an expression of 8 x 8 cells, and of later ones by kind."""
    with fields(8, device) as run:
        start = time.perf_counter()
        fused(run)
        run.out[0, 0]
        first = time.perf_counter() - start
        later = dict.fromkeys(KINDS, float("inf"))
        for _ in range(n_rounds + 1):       # the first turn builds
            for name, kind in KINDS.items():
                run.out[0, 0]
                start = time.thread_time()
                for _ in range(60):
                    kind(run)
                later[name] = min(later[name], (time.thread_time() - start) / 60)
    return first, later


def of_first(device: str, kind: str) -> tuple[float, float]:
    """Seconds of a first use in this process, to its end, and of its CPU."""
    with fields(512, device) as run:
        start, before = time.perf_counter(), time.process_time()
        KINDS[kind](run)
        run.out[0, 0]
        return time.perf_counter() - start, time.process_time() - before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--device", default="cpu", help="cpu (default) or gpu")
    parser.add_argument("--size", type=int, help="cells per axis, of two")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--count", type=int, help="assignments of a turn")
    parser.add_argument("--cpu-time", action="store_true", help="seconds of CPU; the least ones")
    parser.add_argument("--first", choices=list(KINDS), help="only the first use of one kind")
    options = parser.parse_args()
    if options.first:
        wall, cpu = of_first(options.device, options.first)
        print(f"the first use, {options.first}: {wall:.3f} s, of CPU {cpu:.3f}")
        return
    on_cpu = options.device == "cpu"
    size = options.size or (4096 if on_cpu else 8192)
    count = options.count or (12 if on_cpu else 60)     # of which the end is looked at
    (device,) = choose([options.device], find_devices())
    assert device.handle is not None, "an OpenCL device"
    print(f"{device.name}, {os.cpu_count()} cores; float32, {size}^2")
    with tempfile.TemporaryDirectory() as folder, fields(size, options.device) as run:
        each = {"ours": of_ours(run), "copy": of_copy(size, device.handle)}
        each |= {"C": of_c(size, Path(folder))} if on_cpu else {}
        times = in_turns(each, count, options.rounds, options.cpu_time)
    middle = min if options.cpu_time else statistics.median
    found = {name: middle(its) for name, its in times.items()}
    text = f"five operands: {len(NAMES) * 4 * size * size / found['ours'] / 1e9:.1f} GB/s"
    text += f"   of the copy {found['copy'] / found['ours']:.2f}"
    print(text + (f"   times C {found['C'] / found['ours']:.2f}" if on_cpu else ""))
    first, later = of_few_cells(options.device, options.rounds)
    print(f"8^2: the first use {first:.3f} s; later ones, us of the calling thread:")
    for name, seconds_of_it in later.items():
        print(f"  {name:22} {seconds_of_it * 1e6:6.1f}")


if __name__ == "__main__":
    main()
