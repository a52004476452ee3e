# SPDX-License-Identifier: MIT
"""Record a tuning table: the times of all configurations of one stencil on one device.

    python tools/record_tuning.py 2d4 --out table.json [--device cpu] [--size N] [--dtype float32]
        [--seconds 60]

Configurations take turns within batches, each with the default beside it; times are those of
events, the bits of each are checked.  As many passes over the space are made as `--seconds` allow,
each with other batches; a ratio is the median of its passes.  Where they do not suffice for one,
the table holds only what was measured.  Tests replay the tables tests/data/tuning/cpu-*.json and
gpu-*.json to say how near a search comes to the optimum.
"""
from __future__ import annotations

import argparse
import time
from math import isfinite
from pathlib import Path
from statistics import median
from typing import cast

from controllers import kgt
from controllers.bench.problem import SIZES, STENCILS
from controllers.device import choose, find_devices
from controllers.executor.opencl import OpenCLExecutor
from controllers.kernel.candidate import Candidate
from controllers.program.sweep import Sweep
from controllers.tuning.bench import Bench
from controllers.tuning.search import exhaustive, random_order
from controllers.tuning.space import Space
from controllers.tuning.table import Table
from controllers.tuning.trials import Trials
from hitmap.shape import Shape
from hitmap.strided import Geometry


def record(bench: Bench, title: str, seconds: float) -> Table:
    """The table of all configurations, or of those that `seconds` suffice for."""
    space = Space(bench.candidates)
    found: dict[Candidate, list[float]] = {}
    times, end, n_passes = [], time.monotonic() + seconds, 0
    while not n_passes or time.monotonic() < end:
        trials = Trials(space, random_order if n_passes else exhaustive, seed=n_passes)
        while (batch := trials.batch()) and (not found or time.monotonic() < end):
            trials.tell(bench.measure(batch))
            if not n_passes:
                found = {config: [ratio] for config, ratio in trials.ratios.items()}
        if n_passes and len(trials.ratios) == len(space):   # a pass without an end says nothing
            for config, ratio in trials.ratios.items():
                found[config].append(ratio)
        times.append(trials.seconds(space.default))
        n_passes += 1
        print(f"pass {n_passes}: {len(trials.ratios)} of {len(space)}", flush=True)
    ratios = {config: median(every) for config, every in found.items()}
    usable = {config: ratio if isfinite(ratio) else None for config, ratio in ratios.items()}
    passes = max(map(len, found.values()))
    part = f"{len(found)} of {len(space)} configurations, {passes} passes"
    generated = cast("dict[kgt.Config, float | None]", usable)
    return Table(f"{title}; {part}", min(times), generated)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("stencil", choices=STENCILS)
    parser.add_argument("--out", type=Path, required=True, help="where to write the table")
    parser.add_argument("--device", default="cpu", help="as for `controllers run` (default: cpu)")
    parser.add_argument("--size", type=int, help="cells per axis (default: 8192, 384; 16384, 640)")
    parser.add_argument("--dtype", default="float32", help="default: float32")
    parser.add_argument("--seconds", type=float, default=60.0, help="default: 60")
    parser.add_argument("--steps-per-launch", type=int, default=1, metavar="N", help="default: 1")
    options = parser.parse_args()
    (device,) = choose([options.device], find_devices())
    program = STENCILS[options.stencil].program(options.dtype)
    extents = SIZES["cpu" if device.kind == "cpu" else "gpu"]
    usual = next(extent for extent in extents if len(extent) == program.n_axes)
    size = options.size or usual[0]
    domain = Shape.of_extent((size,) * program.n_axes)
    fixed = (False,) * program.n_axes
    box = program.updated(domain, fixed)
    executor = OpenCLExecutor(device)
    geometry = Geometry.dense(domain) if executor.shares_host else Geometry.padded(domain)
    sweep = Sweep.over(program.stages[0], domain, fixed, options.steps_per_launch)
    bench = Bench(executor, program, sweep, (box, {"u": geometry}))
    extent = " x ".join(map(str, domain.extent))
    title = (
        f"{options.stencil}, {options.dtype}, {extent}; {device.name}, {device.platform} "
        f"{device.version}; {time.strftime('%d %B %Y')}"
    )
    table = record(bench, title, options.seconds)
    table.write(options.out)
    print(f"{table.title}: the best takes {table.optimum:.3f} of the default's "
          f"{table.default_seconds * 1e3:.3f} ms")  # fmt: skip


if __name__ == "__main__":
    main()
