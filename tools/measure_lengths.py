# SPDX-License-Identifier: MIT
"""How good the default `length` of the strategy "streaming" is, and the tails of its model.

    python tools/measure_lengths.py --device gpu        (some minutes)
    python tools/measure_lengths.py --device cpu --stencils 2d4 --sizes 64 --lengths 8 16

For the stencils and sizes of the benchmark, a half, a quarter and a sixteenth of these: one row
each with the length that a run takes, the best one of those near it (`--within`), and the speed of
the first relative to the second, by the times of events.  A stencil that is computed a step at a
time by default has no length and is left out.  Last come the tails (controllers/kgt/length.py) with
which the worst row would be best: of groups of one warp, and of larger ones.
"""
from __future__ import annotations

import argparse
import dataclasses
import time
from collections.abc import Sequence
from typing import NamedTuple

import pyopencl as cl
from measure_strategies import Run, Sweeps, measure

from controllers import kgt
from controllers.bench.problem import SIZES, STENCILS
from controllers.device import Device, choose, find_devices
from controllers.kgt.length import GROUP_TAIL, LENGTHS, WARP_TAIL, best_length
from controllers.kgt.pipeline import Pipeline
from controllers.kgt.streaming import StreamingConfiguration
from controllers.kgt.tile import WARP, Tile
from hitmap.strided import Geometry

PARTS = (1, 2, 4, 16)       # of the sizes of the benchmark
TAILS = [number / 10 for number in range(0, 300, 2)]


class Row(NamedTuple):
    """What was measured of one stencil on one size: seconds of a step by length."""

    title: str
    tile: Tile
    extent: tuple[int, ...]
    n_lost: int
    units: int
    default: int
    seconds: dict[int, float]

    @property
    def best(self) -> int:
        return min(self.seconds, key=self.seconds.__getitem__)

    def ratio(self, length: int) -> float:
        """The speed with the measured length nearest to this one, relative to the best."""
        nearest = min(self.seconds, key=lambda measured: abs(measured - length))
        return self.seconds[self.best] / self.seconds[nearest]

    def with_tail(self, tail: float) -> float:
        """The same with the length that the model takes with another tail."""
        units, tails = self.units, (tail, tail)
        return self.ratio(best_length(self.tile, self.extent, self.n_lost, units, tails=tails))


def default_of(device: Device, sweeps: Sweeps) -> StreamingConfiguration | None:
    """What a run takes; None where that is no kernel of several steps."""
    program, (stage,) = sweeps.program, sweeps.program.stages
    n_steps = kgt.usual_steps(program, stage, "gpu")
    if n_steps == 1:
        return None
    where = {"u": Geometry.dense(sweeps.domain).strided(sweeps.box)}
    made = kgt.choose(program, stage, "gpu", kgt.Launch(
        where, True, n_steps, device.local_bytes, device.max_items, device.compute_units,
        "nvidia" in device.vendor.lower(),
    ))  # fmt: skip
    assert isinstance(made, StreamingConfiguration), "several steps on a GPU"
    return made


def row(device: Device, name: str, size: int, options: argparse.Namespace) -> Row | None:
    """Measure one stencil on one size."""
    assert isinstance(device.handle, cl.Device)
    sweeps = Sweeps(device.handle, STENCILS[name].program(options.dtype), size)
    made = default_of(device, sweeps)
    if made is None:
        return None
    (stage,), within = sweeps.program.stages, options.within
    near = [n for n in LENGTHS if made.length / within <= n <= made.length * within]
    lengths = sorted({made.length, *(options.lengths or near)})
    runs: dict[str, Run] = {
        str(length): sweeps.launches(dataclasses.replace(made, length=length)) for length in lengths
    }
    times = measure(runs, options.rounds, options.launches * made.steps_per_launch)
    tile = Tile.of(stage, made)
    n_lost = made.steps_per_launch * (tile.low[0] + Pipeline.of(stage, True).lag)
    seconds = {int(length): sorted(each)[len(each) // 2] for length, each in times.items()}
    title = f"{name} {sweeps.domain}, {made.steps_per_launch} steps"
    return Row(title, tile, sweeps.box.extent, n_lost, device.compute_units, made.length, seconds)


def print_row(found: Row) -> None:
    n_cells = 1
    for cells in found.extent:
        n_cells *= cells
    rates = {length: n_cells / s / 1e9 for length, s in found.seconds.items()}
    print(
        f"{found.title:44} default {found.default:3d}: {rates[found.default]:8.2f}   "
        f"best {found.best:3d}: {rates[found.best]:8.2f}   {found.ratio(found.default):5.3f}   "
        f"({', '.join(f'{length}: {rate:.4g}' for length, rate in rates.items())})",
        flush=True,
    )


def print_fit(rows: Sequence[Row]) -> None:
    """The tail of each kind of groups with which the worst row is best."""
    for name, used, is_warp in (
        ("WARP_TAIL", WARP_TAIL, True), ("GROUP_TAIL", GROUP_TAIL, False)
    ):  # fmt: skip
        own = [row for row in rows if (row.tile.n_items <= WARP) == is_warp]
        if own:
            worst = {tail: min(row.with_tail(tail) for row in own) for tail in (used, *TAILS)}
            fit = max(worst, key=worst.__getitem__)
            print(f"{name} {used}: worst {worst[used]:.3f}; with {fit}: {worst[fit]:.3f}")


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
    print_fit(rows)


if __name__ == "__main__":
    main()
