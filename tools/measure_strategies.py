# SPDX-License-Identifier: MIT
"""Generated kernels against plain C with OpenMP (on a CPU) or the device's own copy (on a GPU).

    python tools/measure_strategies.py [--device cpu] [--stencils 2d4 3d7] [--size N] [--cpu-time]
        [--dtype float32] [--kernels cell wavefront rows:rows=2,streaming=1] [--json FILE]

One sweep over an N^2 or N^3 field with fixed boundaries, two buffers in turn; a launch of several
time steps counts as so many sweeps.  All kernels and the comparator take turns within one process,
forwards and backwards; a kernel whose bits are not those of the strategy "cell" is an error.  C:
`gcc -O3 -march=native -fopenmp`, plain loops, the same operations in the same order; without a gcc,
the first kernel is the comparator.  Printed: Gcell/s, median and best of the rounds, and the median
and the best of the speed relative to the comparator.  With --cpu-time, seconds are those that the
process had of the CPU, divided by its cores: for machines that are busy with other things.  On a
GPU times are those of events.
"""
from __future__ import annotations

import argparse
import dataclasses
import json
import os
import shutil
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyopencl as cl

from controllers import kgt
from controllers.bench.cores import free_cores
from controllers.bench.host import compiled
from controllers.bench.problem import SIZES, STENCILS
from controllers.device import choose, find_devices
from controllers.kernel.build import build
from controllers.kernel.stage_kernel import box_values, tile_values
from controllers.kgt.parameter import bind
from controllers.memory.tile import aligned
from controllers.program.program import Program
from hitmap.shape import Shape
from hitmap.strided import Geometry

Array = npt.NDArray[Any]
Run = Callable[[int], float]    # makes some sweeps: the seconds of one


class Sweeps:
    """One stencil over one field on one device, by several kernels."""

    def __init__(self, handle: cl.Device, program: Program, size: int) -> None:
        self.program = program
        self.domain = Shape.of_extent((size,) * program.n_axes)
        self.box = program.updated(self.domain, (False,) * program.n_axes)
        self.context = cl.Context([handle])
        profiling = cl.command_queue_properties.PROFILING_ENABLE
        self.queue = cl.CommandQueue(self.context, handle, profiling)
        shares = bool(handle.type & cl.device_type.CPU)
        dtype, count = np.dtype(program.dtype), Geometry.dense(self.domain).n_elements
        self.host = [aligned(count, dtype, 5 * number) for number in (1, 2)]
        random = np.random.default_rng(0).random(1 << 20)
        for array in self.host:
            array[...] = np.resize(random, count)
        flags = cl.mem_flags.USE_HOST_PTR if shares else cl.mem_flags.COPY_HOST_PTR
        self.tiles = [
            cl.Buffer(self.context, cl.mem_flags.READ_WRITE | flags, hostbuf=array)
            for array in self.host
        ]
        self.by_events = not shares
        self.exceeds_cache = 2 * self.host[0].nbytes > handle.global_mem_cache_size

    def config(self, strategy: str) -> kgt.Config:
        """The configuration of a strategy that is good for the field, or nearly so."""
        stage, where = self.program.stages[0], Geometry.dense(self.domain).strided(self.box)
        default = kgt.config_of(strategy, self.program, stage, self.exceeds_cache)
        launch = kgt.Launch(
            {"u": where}, self.exceeds_cache, default.steps_per_launch,
            units=self.context.devices[0].max_compute_units,
        )  # fmt: skip
        found = kgt.STRATEGIES[strategy].chosen(self.program, stage, launch)
        return found or default.within(where.extent)

    def kernel(self, config: kgt.Config) -> Run:
        """Sweeps by a generated kernel, whose bits are checked first."""
        run = self.launches(config)
        cell = self.config("cell")
        if config != cell:
            steps = config.steps_per_launch
            ours = self._result(run, steps, 1)
            right = self._result(self.launches(cell), steps, steps)
            assert ours == right, f"{config}: the bits are not those of 'cell'"
        return run

    def copy(self) -> Run:
        """The device's own copy of the field."""
        old, new = self.tiles

        def run(n_sweeps: int) -> float:
            return self._seconds(
                [cl.enqueue_copy(self.queue, new, old) for _ in range(n_sweeps)]
            )

        return run

    def plain_c(self) -> Run:
        """The same loop in C."""
        _, sweep = compiled(self.program, self.domain, self.box, free_cores())
        at = [array.ctypes.data for array in self.host]

        def run(n_sweeps: int) -> float:
            start = time.perf_counter()
            for number in range(n_sweeps):
                sweep(at[number % 2], at[1 - number % 2])
            return (time.perf_counter() - start) / n_sweeps

        return run

    def launches(self, config: kgt.Config) -> Run:
        """Sweeps by a generated kernel."""
        kernel = kgt.generate(self.program, self.program.stages[0], config)
        strict = kernel.divides and self.program.dtype == "float32"
        options = ["-cl-fp32-correctly-rounded-divide-sqrt"] if strict else []
        compiled = build(self.context, kernel.name, kernel.source, options)
        where = Geometry.dense(self.domain).strided(self.box)
        if not config.suits([where]):
            raise ValueError(
                f"{config} does not suit a field of {self.domain}; choose another size"
            )
        steps = kernel.steps_per_launch
        scalars = {**box_values(self.box, self.box), **tile_values("u", where)}
        sizes = kernel.work_sizes(where.extent, not self.by_events)
        both = [cl.Kernel(compiled, kernel.name) for _ in range(2)]
        for number, one in enumerate(both):
            values = {"u": self.tiles[number], "u_new": self.tiles[1 - number], **scalars}
            arguments = bind(kernel.name, kernel.parameters, values, kernel.scalars)
            one.set_args(*arguments)  # type: ignore[arg-type]

        def run(n_sweeps: int) -> float:
            start, n_launches = time.perf_counter(), -(-n_sweeps // steps)
            events = [
                cl.enqueue_nd_range_kernel(self.queue, both[number % 2], *sizes)
                for number in range(n_launches)
            ]
            self.queue.finish()
            elapsed = (time.perf_counter() - start) / (n_launches * steps)
            return self._seconds(events) / steps if self.by_events else elapsed

        return run

    def _result(self, run: Run, n_sweeps: int, n_launches: int) -> bytes:
        """The field after these sweeps; both tiles are then as before."""
        old, result = np.empty_like(self.host[0]), np.empty_like(self.host[0])
        cl.enqueue_copy(self.queue, old, self.tiles[0])
        run(n_sweeps)
        cl.enqueue_copy(self.queue, result, self.tiles[n_launches % 2])
        for tile in self.tiles:
            cl.enqueue_copy(self.queue, tile, old)
        return result.tobytes()

    def _seconds(self, events: list[cl.Event]) -> float:
        self.queue.finish()
        return statistics.median(e.profile.end - e.profile.start for e in events) / 1e9


def configuration(text: str, sweeps: Sweeps) -> kgt.Config:
    """`NAME` or `NAME:key=value,...`: the default configuration of a strategy, changed."""
    name, _, changes = text.partition(":")
    config = sweeps.config(name)
    if not changes:
        return config
    assert config.parameters(), f"the strategy {name!r} has no parameters"
    values: dict[str, Any] = {}
    for change in changes.split(","):
        key, _, value = change.partition("=")
        numbers = tuple(map(int, value.split("x")))
        values[key] = numbers if len(numbers) > 1 else numbers[0]
    changed: kgt.Config = dataclasses.replace(cast(Any, config), **values)
    return changed


def on_cpu(run: Run) -> Run:
    """The same, in seconds of CPU per core."""

    def timed(n_sweeps: int) -> float:
        start, wall = time.process_time(), time.perf_counter()
        seconds = run(n_sweeps)
        share = (time.process_time() - start) / (time.perf_counter() - wall)
        return seconds * share / len(os.sched_getaffinity(0))

    return timed


def measure(runs: dict[str, Run], rounds: int, n_sweeps: int) -> dict[str, list[float]]:
    """Seconds of a sweep, per round; all take turns."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for run in runs.values():
        run(2)
    for number in range(rounds):
        for name in [*runs][:: 1 if number % 2 == 0 else -1]:
            times[name].append(runs[name](n_sweeps))
    return times


def table(title: str, times: dict[str, list[float]], base: str, n_cells: int) -> list[object]:
    """Print a stencil's figures, and return them."""
    print(f"{title}: Gcell/s median (best), relative to {base}: median (of the best)")
    rows: list[object] = []
    for name, seconds in times.items():
        rates = n_cells / statistics.median(seconds) / 1e9, n_cells / min(seconds) / 1e9
        ratio = statistics.median(b / s for b, s in zip(times[base], seconds))
        best = min(times[base]) / min(seconds)
        print(f"  {name:44} {rates[0]:8.2f} ({rates[1]:8.2f})   {ratio:5.2f} ({best:5.2f})")
        rows.append({"stencil": title, "kernel": name, "gcells": rates, "ratio": (ratio, best)})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--device", default="cpu", help="as for `controllers run` (default: cpu)")
    parser.add_argument("--stencils", nargs="+", choices=STENCILS, default=[*STENCILS])
    parser.add_argument("--size", type=int, help="cells per axis (default: 8192, 384; 16384, 640)")
    parser.add_argument("--dtype", default="float32", help="default: float32")
    parser.add_argument("--kernels", nargs="+", help="STRATEGY or STRATEGY:key=value,... ")
    parser.add_argument("--rounds", type=int, default=9, help="default: 9")
    parser.add_argument("--sweeps", type=int, default=4, help="per round and kernel (default: 4)")
    parser.add_argument(
        "--cpu-time", action="store_true", help="count the process's own CPU time, not the clock's"
    )
    parser.add_argument("--json", type=Path, help="write the figures there")
    options = parser.parse_args()
    (device,) = choose([options.device], find_devices())
    handle, kind = device.handle, device.kind
    assert handle is not None, "an OpenCL device"
    kernels = options.kernels or ["cell", "rows" if kind == "cpu" else "marching"]
    print(f"{device.name}, {device.version}; {options.dtype}; {time.strftime('%d %B %Y')}")
    rows: list[object] = []
    for name in options.stencils:
        program = STENCILS[name].program(options.dtype)
        extents = SIZES["cpu" if kind == "cpu" else "gpu"]
        usual = next(extent[0] for extent in extents if len(extent) == program.n_axes)
        sweeps = Sweeps(handle, program, options.size or usual)
        runs = {} if kind == "cpu" else {"copy": sweeps.copy()}
        if kind == "cpu" and shutil.which("gcc"):
            runs["C"] = sweeps.plain_c()
        runs |= {text: sweeps.kernel(configuration(text, sweeps)) for text in kernels}
        base = next(iter(runs))
        if options.cpu_time:
            runs = {text: on_cpu(run) for text, run in runs.items()}
        times = measure(runs, options.rounds, options.sweeps)
        cells = sweeps.domain.n_cells if base == "copy" else sweeps.box.n_cells
        rows += table(f"{name} {sweeps.domain}", times, base, cells)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
