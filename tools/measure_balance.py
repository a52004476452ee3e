# SPDX-License-Identifier: MIT
"""How well shares are found: two parts of a device, or two devices, one of which is slowed.

    python tools/measure_balance.py [--device cpu/1,1] [--size 1024] [--cube 100] [--settle 5000]
    python tools/measure_balance.py --change [--out shares.json] [--picture shares.svg]
    python tools/measure_balance.py --device gpu --size 16384 --cube 640      # two GPUs

The last part, or the last of several devices, is slowed by issuing its launches several times,
which changes no bits.  One row per case: by how much it is slowed, then of two runs of `--settle`
steps, the first where nothing is known of the devices, the second with what that one has kept: the
moves, and the overhead, which is what these steps took beyond as many at the speed that was
reached.  That is seen in `--steps` further steps of the second run, nine pieces of which the median
counts: the share of the slow part, the cells per second, and these relative to the sum of what the
kernels of both do while they run (1 is perfect: nobody waits, nothing is exchanged).  All bits are
compared with those of the first device alone.  On two quiet cores it takes some five minutes.

With `--change` the last device becomes slower by 2 in mid-run, with balance="dynamic": the shares
after each run of `--every` steps, as a table, as JSON, and as a picture (by matplotlib).
"""
from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
import pyopencl as cl

import controllers
from controllers.device import Device, choose, find_devices
from controllers.device.event import AllOf, Command, Event
from controllers.estimates.estimates import VARIABLE
from controllers.executor import transfer
from controllers.executor.opencl import OpenCLExecutor
from controllers.report.report import Report

ENQUEUE_COPY: Callable[..., Event] = cl.enqueue_copy
HEAD = (
    "                     nothing known       known before\n"
    "case          slower  moves  overhead  moves  overhead  share  expected    Gcells/s  "
    "of the sum  same bits"
)
PIECES = 9          # of the steps whose speed counts


class Launches(AllOf):
    """Several launches of one in-order queue; who waits for the last one waits for all."""

    def __init__(self, events: Sequence[Event]) -> None:
        super().__init__(events)
        self.last = events[-1]


def copy_after_launches(
    *args: Any, wait_for: Sequence[Event] | None = None, **kwargs: Any
) -> Event:
    """PyOpenCL's copy, after events of which some are `Launches`."""
    events = [one.last if isinstance(one, Launches) else one for one in wait_for or ()]
    return ENQUEUE_COPY(*args, wait_for=events, **kwargs)


class Slowness:
    """How many times the launches of the last part, or of the last device, are issued."""

    def __init__(self, times: int, selector: str) -> None:
        self.times = times
        self._last = choose([selector], find_devices())[-1]

    def _slows(self, device: Device) -> bool:
        part = device.part
        return device.handle == self._last.handle if part is None else part.index > 0

    @contextmanager
    def holding(self) -> Iterator[None]:
        """In here computations that are made are slowed."""
        make = OpenCLExecutor.launch_command

        def slowed(executor: OpenCLExecutor, *args: Any, **kwargs: Any) -> Command:
            command = make(executor, *args, **kwargs)
            if not self._slows(executor.device):
                return command

            def several(wait_for: Sequence[Event] | None = None) -> Event:
                if self.times == 1:
                    return command(wait_for)
                first = command(wait_for)
                return Launches([first, *(command(None) for _ in range(self.times - 1))])

            return several

        with (
            patch.object(OpenCLExecutor, "launch_command", slowed),
            patch.object(transfer, "_enqueue_copy", copy_after_launches),
        ):
            yield


@contextmanager
def nothing_known() -> Iterator[None]:
    """In here no times of devices are kept but those of what runs in here."""
    with TemporaryDirectory() as folder, patch.dict(os.environ, {VARIABLE: folder}):
        yield


def problem(options: argparse.Namespace, n_axes: int, dtype: str) -> tuple[Any, Any]:
    """A star and a field of random numbers."""
    extent = (options.size,) * 2 if n_axes == 2 else (options.cube,) * 3
    pattern = np.zeros((3,) * n_axes, int)
    for axis in range(n_axes):
        for side in (0, 2):
            pattern[tuple(side if a == axis else 1 for a in range(n_axes))] = 1
    weights = pattern.ravel().tolist()
    star = controllers.Stencil.of("star", [(-1, 1)] * n_axes, weights, sum(weights))
    field = np.random.default_rng(0).random(extent).astype(dtype)
    return star.program(dtype), field


@dataclass(frozen=True)
class Found:
    """What a run of `--settle` steps, and some more, has come to.

    settle_s: of the first steps, with all that finding the shares took.  step_s: of a later one.
    of_sum: the later ones beside what the kernels of both would do if they always ran.
    """

    report: Report
    n_steps: int
    settle_s: float
    step_s: float
    of_sum: float
    result: Any

    @property
    def moves(self) -> int:
        """How often the field was divided anew."""
        assert self.report.balance is not None, "two devices"
        return self.report.balance.moves

    def overhead(self, step_s: float) -> float:
        """The part of the first steps beyond as many that take so long."""
        return 1 - self.n_steps * step_s / self.settle_s


def seconds_of(run: controllers.Computation, n_steps: int) -> float:
    """By the clock."""
    start = time.perf_counter()
    run.run(n_steps)
    return time.perf_counter() - start


def balanced(options: argparse.Namespace, program: Any, field: Any) -> Found:
    """One run."""
    with controllers.Computation(
        program, field, devices=options.device, weights="auto", balance="start",
        steps_per_launch=options.steps_per_launch,
    ) as run:  # fmt: skip
        if run.layout.n_places < 2:
            sys.exit(f"{options.device} is one device; name one in parts, as cpu/1,1, or two")
        settle_s = seconds_of(run, options.settle)
        count, seconds, parts = max(1, options.steps // PIECES), list[float](), list[float]()
        report = run.report()
        for _ in range(PIECES):
            before = [place.compute_s for place in report.places]
            seconds.append(seconds_of(run, count))
            report = run.report()
            busy = [now.compute_s - was for now, was in zip(report.places, before, strict=True)]
            at_best = sum(place.cells / s for place, s in zip(report.places, busy, strict=True))
            parts.append(field.size / seconds[-1] / at_best)
        step_s = median(seconds) / count
        return Found(report, options.settle, settle_s, step_s, median(parts), run.gather())


def measure(options: argparse.Namespace, n_axes: int, dtype: str, times: int) -> str:
    """One row."""
    program, field = problem(options, n_axes, dtype)
    with nothing_known(), Slowness(times, options.device).holding():
        cold, warm = (balanced(options, program, field) for _ in range(2))
    whole, of_parts, _ = options.device.partition("/")
    with controllers.Computation(
        program, field, devices=whole if of_parts else f"{whole}:0"
    ) as alone:  # fmt: skip
        alone.run(warm.report.steps)
        right = alone.gather()
    assert warm.result is not None and right is not None, "one rank"
    same = np.array_equal(warm.result, right) and np.array_equal(cold.result, right)
    share, best_s = 1 - warm.report.places[0].share, min(cold.step_s, warm.step_s)
    return (
        f"{n_axes}d {dtype:9}  {times:6}  {cold.moves:5}  {cold.overhead(best_s):8.1%}  "
        f"{warm.moves:5}  {warm.overhead(best_s):8.1%}  {share:5.1%}  "
        f"{1 / (1 + times):8.1%}  {field.size / warm.step_s / 1e9:10.3f}  {warm.of_sum:10.3f}  "
        f"{'yes' if same else 'NO':>9}"
    )


def follow(options: argparse.Namespace) -> None:
    """The shares while a part becomes slower, and as fast as before again."""
    program, field = problem(options, 2, "float32")
    slowness, rows = Slowness(1, options.device), []
    print("steps   share of the last part  ms/step")
    with nothing_known(), slowness.holding(), controllers.Computation(
        program, field, devices=options.device, weights="auto", balance="dynamic",
        steps_per_launch=options.steps_per_launch,
    ) as run:  # fmt: skip
        for number in range(3 * options.runs):
            slowness.times = 2 if number // options.runs == 1 else 1
            start, before = time.perf_counter(), run.step
            run.run(options.every)
            ms = (time.perf_counter() - start) / (run.step - before) * 1e3
            shares = [place.share for place in run.report().places]
            rows.append({"step": run.step, "shares": shares, "ms": ms, "slow": slowness.times})
            print(f"{run.step:5}  {shares[-1]:22.1%}  {ms:7.2f}", flush=True)
        print(run.report().balance)
    if options.out is not None:
        options.out.write_text(json.dumps(rows))
    if options.picture is not None:
        draw(options.picture, rows)


def draw(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Shares and milliseconds per step over the steps; grey while the last part is slower."""
    from matplotlib.figure import Figure

    sheet = Figure(figsize=(7.5, 4.5), layout="constrained")
    upper, lower = sheet.subplots(2, 1, sharex=True)
    steps = [0, *(row["step"] for row in rows)]
    for number in range(len(rows[0]["shares"])):
        shares = [100 * row["shares"][number] for row in rows]
        upper.stairs(shares, steps, baseline=None, label=f"part {number + 1}", linewidth=2)
    lower.stairs([row["ms"] for row in rows], steps, baseline=None, color="black")
    slow = [(low, row["step"]) for low, row in zip(steps, rows) if row["slow"] > 1]
    for axes in (upper, lower):
        axes.axvspan(slow[0][0], slow[-1][1], color="0.9", zorder=0)
        axes.set_ylim(bottom=0)
    upper.set(ylabel="share in %")
    upper.legend(loc="lower left")
    lower.set(ylabel="ms per step", xlabel="steps; grey: part 2 takes twice as long")
    sheet.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cpu/1,1", help="a device in two parts, or two")
    parser.add_argument("--size", type=int, default=1024, help="of the square")
    parser.add_argument("--cube", type=int, default=100)
    parser.add_argument("--steps", type=int, default=900, help="whose speed counts")
    parser.add_argument("--settle", type=int, default=5000, help="steps before these")
    parser.add_argument("--axes", type=int, nargs="+", choices=(2, 3), default=[2, 3])
    parser.add_argument("--steps-per-launch", type=int, default=1)
    parser.add_argument("--slower", type=int, nargs="+", default=[2, 3, 5])
    parser.add_argument("--dtypes", nargs="+", default=["float32", "float64"])
    parser.add_argument("--change", action="store_true", help="follow a change in mid-run")
    parser.add_argument("--every", type=int, default=50, help="steps of a run, with --change")
    parser.add_argument("--runs", type=int, default=12, help="before each change")
    parser.add_argument("--out", type=Path, help="where to write the shares as JSON")
    parser.add_argument("--picture", type=Path, help="where to draw them, as .svg or .png")
    options = parser.parse_args()
    if options.change:
        follow(options)
        return
    print(HEAD)
    for n_axes in options.axes:
        for dtype in options.dtypes:
            for times in options.slower:
                print(measure(options, n_axes, dtype, times), flush=True)


if __name__ == "__main__":
    main()
