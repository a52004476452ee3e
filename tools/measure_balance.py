# SPDX-License-Identifier: MIT
"""How well shares are found: two parts of a device, or two devices, one of which is slowed.

    python tools/measure_balance.py [--device cpu/1,1] [--size 2048] [--cube 160] [--steps 400]
    python tools/measure_balance.py --change [--out shares.json] [--picture shares.svg]
    python tools/measure_balance.py --device gpu --size 16384 --cube 640      # two GPUs

The last part, or the last of several devices, is slowed by issuing its launches several times,
which changes no bits.  One row per case: by how much it is slowed, moves in `--settle` steps and
what they took, the share of the slow part, then of `--steps` further steps the cells per second,
and those relative to the sum of what the kernels of both do while they run (1 is perfect: nobody
waits, nothing is exchanged).  All bits are compared with those of the first device alone.

With `--change` the last device becomes slower by 2 in mid-run, with balance="dynamic": the shares
after each run of `--every` steps, as a table, as JSON, and as a picture (by matplotlib).
"""
from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyopencl as cl

import controllers
from controllers.device import Device, choose, find_devices
from controllers.device.event import AllOf, Command, Event
from controllers.executor import transfer
from controllers.executor.opencl import OpenCLExecutor

ENQUEUE_COPY: Callable[..., Event] = cl.enqueue_copy
HEAD = "case          slower  moves  took/s  share  expected    Gcells/s  of the sum  same bits"


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


def measure(options: argparse.Namespace, n_axes: int, dtype: str, times: int) -> str:
    """One row."""
    program, field = problem(options, n_axes, dtype)
    with Slowness(times, options.device).holding(), controllers.Computation(
        program, field, devices=options.device, weights="auto", balance="start",
        steps_per_launch=options.steps_per_launch,
    ) as run:  # fmt: skip
        run.run(options.settle)
        before = run.report().seconds
        run.run(options.steps)
        report, result = run.report(), run.gather()
        balance, total = report.balance, run.step
    assert balance is not None, "two devices"
    whole, of_parts, _ = options.device.partition("/")
    first = whole if of_parts else f"{whole}:0"
    with controllers.Computation(program, field, devices=first) as alone:
        alone.run(total)
        right = alone.gather()
    assert result is not None and right is not None, "one rank"
    same = np.array_equal(result, right)
    rate = field.size * options.steps / (report.seconds - before)
    share = 1 - report.places[0].share
    of_sum = rate / sum(place.cells_per_s for place in report.places)
    case = f"{n_axes}d {dtype}"
    return (
        f"{case:12}  {times:6}  {balance.moves:5}  {balance.spent_s:6.2f}  {share:5.1%}  "
        f"{1 / (1 + times):8.1%}  {rate / 1e9:10.3f}  {of_sum:10.3f}  {'yes' if same else 'NO':>9}"
    )


def follow(options: argparse.Namespace) -> None:
    """The shares while a part becomes slower, and as fast as before again."""
    program, field = problem(options, 2, "float32")
    slowness, rows = Slowness(1, options.device), []
    print("steps   share of the last part  ms/step")
    with slowness.holding(), controllers.Computation(
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
    parser.add_argument("--size", type=int, default=2048, help="of the square")
    parser.add_argument("--cube", type=int, default=160)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--settle", type=int, default=1500, help="steps before these")
    parser.add_argument("--steps-per-launch", type=int, default=1)
    parser.add_argument("--slower", type=int, nargs="+", default=[1, 2, 3, 5])
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
    for n_axes in (2, 3):
        for dtype in options.dtypes:
            for times in options.slower:
                print(measure(options, n_axes, dtype, times), flush=True)


if __name__ == "__main__":
    main()
