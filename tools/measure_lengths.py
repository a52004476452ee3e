# SPDX-License-Identifier: MIT
"""How good the `length` of the strategy "streaming" is that a run takes.

    python tools/measure_lengths.py --device gpu        (some minutes)
    python tools/measure_lengths.py --device cpu --stencils 2d4 --sizes 64 --lengths 8 16

For the stencils and sizes of the benchmark, a half, a quarter and a sixteenth of these: one row
each with the length that a run takes, which the first launches have chosen near that of the model,
the best one of those near it (`--within`), and the speed of the first relative to the second, by
the times of events.  A stencil that is computed a step at a time by default has no length and is
left out.  Last comes the worst row.  The model is in
kgt/strategies/streaming/length.py; with `--within 100` the figures are what to fit it to.
"""
from __future__ import annotations

import argparse
import dataclasses
import statistics
import time
from typing import NamedTuple

import pyopencl as cl
from measure_strategies import Run, Sweeps, measure

from controllers import Computation, kgt
from controllers.bench.problem import SIZES, STENCILS
from controllers.device import Device, choose, find_devices
from controllers.kgt.strategies.streaming import StreamingConfig
from controllers.kgt.strategies.streaming.length import LENGTHS
from controllers.tuning.site import chosen_launches
from hitmap.strided import Geometry

PARTS = (1, 2, 4, 16)       # of the sizes of the benchmark


class Row(NamedTuple):
    """What was measured of one stencil on one size: seconds of a step by length."""

    title: str
    n_cells: int
    default: int
    seconds: dict[int, float]

    @property
    def best(self) -> int:
        return min(self.seconds, key=self.seconds.__getitem__)

    @property
    def ratio(self) -> float:
        """The speed with the default, relative to the best."""
        return self.seconds[self.best] / self.seconds[self.default]


def taken_by_a_run(device: str, sweeps: Sweeps) -> int:
    """The length that a run settles on."""
    with Computation(sweeps.program, sweeps.domain.extent, devices=device) as computation:
        (launches, *_) = chosen_launches(computation._engine)
        executor, (sweep,) = launches.executor, computation.plan.sweeps
        launch = executor.launch_of(sweeps.program, sweep, launches.placed)
        config = executor.choices.configuration(
            executor.offer(sweeps.program, sweep), launch
        )
    assert isinstance(config, StreamingConfig), "several steps on a GPU"
    return config.length


def default_of(device: Device, sweeps: Sweeps) -> StreamingConfig | None:
    """What the model says; None where that is no kernel of several steps."""
    program, (stage,) = sweeps.program, sweeps.program.stages
    n_steps = kgt.usual_steps(program, stage, "gpu")
    if n_steps == 1:
        return None
    where = {"u": Geometry.dense(sweeps.domain).strided(sweeps.box)}
    config = kgt.choose(program, stage, "gpu", kgt.Launch(
        where, True, n_steps, device.local_bytes, device.max_items, device.compute_units,
        "nvidia" in device.vendor.lower(),
    ))  # fmt: skip
    assert isinstance(config, StreamingConfig), "several steps on a GPU"
    return config


def row(device: Device, name: str, size: int, options: argparse.Namespace) -> Row | None:
    """Measure one stencil on one size."""
    assert isinstance(device.handle, cl.Device)
    sweeps = Sweeps(device.handle, STENCILS[name].program(options.dtype), size)
    config = default_of(device, sweeps)
    if config is None:
        return None
    if device.kind == "gpu":
        config = dataclasses.replace(config, length=taken_by_a_run(options.device, sweeps))
    near = [
        n for n in LENGTHS
        if config.length / options.within <= n <= config.length * options.within
    ]  # fmt: skip
    lengths = sorted({config.length, *(options.lengths or near)})
    runs: dict[str, Run] = {
        str(length): sweeps.launches(dataclasses.replace(config, length=length))
        for length in lengths
    }
    times = measure(runs, options.rounds, options.launches * config.steps_per_launch)
    seconds = {int(length): statistics.median(each) for length, each in times.items()}
    title = f"{name} {sweeps.domain}, {config.steps_per_launch} steps"
    return Row(title, sweeps.box.n_cells, config.length, seconds)


def print_row(found: Row) -> None:
    rates = {length: found.n_cells / s / 1e9 for length, s in found.seconds.items()}
    print(
        f"{found.title:44} taken {found.default:3d}: {rates[found.default]:8.2f}   "
        f"best {found.best:3d}: {rates[found.best]:8.2f}   {found.ratio:5.3f}   "
        f"({', '.join(f'{length}: {rate:.4g}' for length, rate in rates.items())})",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--device", default="gpu", help="as for `controllers run` (default: gpu)")
    parser.add_argument("--stencils", nargs="+", choices=STENCILS, default=[*STENCILS])
    parser.add_argument("--sizes", type=int, nargs="+", help="cells per axis")
    parser.add_argument("--lengths", type=int, nargs="+", help="default: those near the default's")
    parser.add_argument("--within", type=float, default=3.0, help="what near is (default: 3)")
    parser.add_argument("--dtype", default="float32", help="default: float32")
    parser.add_argument("--rounds", type=int, default=5, help="default: 5")
    parser.add_argument("--launches", type=int, default=9, help="in a round (default: 9)")
    options = parser.parse_args()
    (device,) = choose([options.device], find_devices())
    units = device.compute_units
    print(f"{device.name}, {device.version}, {units} units; {options.dtype}; Gcell-steps/s; "
          f"{time.strftime('%d %B %Y')}")  # fmt: skip
    rows = []
    for name in options.stencils:
        n_axes = len(STENCILS[name].shape)
        usual = next(extent[0] for extent in SIZES["gpu"] if len(extent) == n_axes)
        for size in options.sizes or [usual // part for part in PARTS]:
            found = row(device, name, size, options)
            if found is None:
                print(f"{name}: a step at a time by default")
                break
            print_row(found)
            rows.append(found)
    if rows:
        worst = min(rows, key=lambda row: row.ratio)
        print(f"worst: {worst.ratio:.3f}, {worst.title}")


if __name__ == "__main__":
    main()
