# SPDX-License-Identifier: MIT
"""Arrays that do not fit, through their devices: with and without a pipeline, beside the ideal.

As in table 1 of COSP (Sabne, Sakdhnagool, Eigenmann 2013): of each benchmark the time of copies and
kernels in turn, that with a pipeline, and the least that is possible; and that with one slot, in
which a chunk's way back and the next one's way up overlap alone.
"""
# docs/decisions/0067-calls-pass-through-in-chunks.md
from __future__ import annotations

import runpy
import statistics
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from controllers.bench.rounds import Entrant, interleaved
from controllers.bench.stream_cases import STREAMS, Call
from controllers.bench.stream_steps import StepSpeed, measured
from controllers.device.event import Profile
from controllers.engine import Runner
from controllers.plan import Operation
from controllers.plan.chunks.pipeline import Pipeline
from controllers.report.table import format_table
from controllers.space.workspace import Workspace

BYTES = {"quick": 1 << 20, "cpu": 1 << 26, "gpu": 1 << 29}      # of all arrays
SHARE = 4       # of which the cap is one part
TIMED = 3       # calls whose copies and kernels are timed one by one
WAYS = {"upload": "link, up", "launch": "kernels", "download": "link, down"}


@dataclass(frozen=True)
class StreamSpeed:
    """One benchmark on a device: seconds of a call, the medians.

    one_slot_s, pipelined_s: with one slot, and with as many as by default.  up_s, kernel_s, down_s:
    sums of those of copies and kernels, with one slot.  ideal_s: by COSP's equation 2.  chunks,
    least: how many there are, and how many are needed.  bound: what the ideal time is bound by.
    """

    benchmark: str
    device: str
    nbytes: int
    cap_bytes: int
    chunks: int
    least: int
    slots: int
    one_slot_s: float
    pipelined_s: float
    up_s: float
    kernel_s: float
    down_s: float
    ideal_s: float
    bound: str

    @property
    def achieved(self) -> float:
        """The ideal time over that with a pipeline."""
        return self.ideal_s / self.pipelined_s

    @property
    def in_turn_s(self) -> float:
        """Copies and kernels one after another: without a pipeline."""
        return self.up_s + self.kernel_s + self.down_s

    @property
    def speed_up(self) -> float:
        """By the pipeline."""
        return self.in_turn_s / self.pipelined_s

    def as_dict(self) -> dict[str, object]:
        """Plain data, for JSON."""
        more = {name: getattr(self, name) for name in ("in_turn_s", "achieved", "speed_up")}
        return {**asdict(self), **more}


class _Log:
    """Sums up how long the copies and kernels of calls take."""

    def __init__(self) -> None:
        self.found: list[tuple[Operation, Profile]] = []

    def steps(self, first: int, last: int) -> Iterable[int]:
        return range(first, last + 1)

    def add(self, step: int, operation: Operation, profile: Profile) -> None:
        self.found.append((operation, profile))

    def within(self, engine: Runner, step: int) -> _Log:
        return self

    def seconds(self, verb: str) -> float:
        return sum((one.end - one.start) * 1e-9 for operation, one in self.found
                   if operation.verb == verb)  # fmt: skip


def run_stream(
    name: str, examples: Path, kind: str, selector: str, device: str, seconds: float,
    chunks: int | Literal["auto"] | None = None,
) -> StreamSpeed:  # fmt: skip
    """Measure a benchmark for about `seconds`; `kind` says how much data it has (`BYTES`).

    chunks: of the way with a pipeline, at least; "auto": they and slots are looked for beforehand,
    for as long again.  RuntimeError where both ways give unlike results.
    """
    case = STREAMS[name]
    example = runpy.run_path(str(examples / f"{name}.py"))
    rows = max(BYTES[kind] // case.row_nbytes, case.fewest)
    nbytes = rows * case.row_nbytes
    cap = nbytes // SHARE
    options: dict[str, Any] = {
        "devices": selector, "dtype": "float32", "zero_copy": False, "memory_cap": cap
    }
    if case.prepare is None:
        found = measured(name, case, example, rows, options, seconds, chunks)
        return _of_steps(name, device, nbytes, cap, found)
    with Workspace(slots=1, **options) as single, Workspace(chunks=chunks, **options) as several:
        calls = [case.prepare(example, on, rows) for on in (single, several)]
        one, other = (np.asarray(call()) for call in calls)
        if not np.array_equal(one, other, equal_nan=True):
            raise RuntimeError(f"{name}: unlike results with one slot and with several")
        del one, other
        if chunks == "auto":
            _repeated(calls[1], seconds)
        log = single.streams.log = _Log()
        for _ in range(TIMED):
            calls[0]()
        single.streams.log = None
        alone, pipelined = map(statistics.median, interleaved([*map(_warmed, calls)], seconds))
        figures = max(several.streams.report, key=lambda one: one.calls)
        spent = {way: log.seconds(verb) / TIMED for verb, way in WAYS.items()}
    up_s, kernel_s, down_s = spent.values()
    return StreamSpeed(
        name, device, nbytes, cap, figures.chunks, figures.least, figures.slots, alone, pipelined,
        up_s, kernel_s, down_s, Pipeline(up_s, down_s, kernel_s).ideal_s(figures.chunks),
        max(spent, key=lambda way: spent[way]),
    )  # fmt: skip


def _of_steps(name: str, device: str, nbytes: int, cap: int, found: StepSpeed) -> StreamSpeed:
    """Of a benchmark whose steps are several passes, what is known of them together."""
    seen = found.seen
    up_s, kernel_s, down_s, ideal_s = (
        one / seen.passes for one in (seen.up_s, seen.kernels_s, seen.down_s, seen.ideal_s)
    )
    spent = dict(zip(WAYS.values(), (up_s, kernel_s, down_s)))
    return StreamSpeed(
        name, device, nbytes, cap, found.chunks, found.least, found.slots, found.alone_s,
        found.pipelined_s, up_s, kernel_s, down_s, ideal_s, max(spent, key=lambda way: spent[way]),
    )  # fmt: skip


def streams_table(speeds: Sequence[StreamSpeed]) -> str:
    """For people."""
    head = ("", "MiB", "cap MiB", "chunks", "least", "slots", "in turn ms", "1 slot ms",
            "pipelined ms", "ideal ms", "achieved", "speed-up", "bound")  # fmt: skip
    rows = [
        (one.benchmark, f"{one.nbytes / 2**20:.4g}", f"{one.cap_bytes / 2**20:.4g}",
         str(one.chunks), str(one.least), str(one.slots), *(f"{s * 1e3:.4g}" for s in
         (one.in_turn_s, one.one_slot_s, one.pipelined_s, one.ideal_s)),
         f"{one.achieved:.2f}", f"{one.speed_up:.2f}", one.bound)
        for one in speeds
    ]  # fmt: skip
    mean = statistics.mean(one.speed_up for one in speeds)
    table = format_table(head, rows, left=("", "bound"))
    return f"{table}\nthe pipeline makes them {mean:.2f} times faster on average"


def _repeated(call: Call, seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        call()


def _warmed(call: Call) -> Entrant:
    def run(count: int) -> None:
        for _ in range(count):
            call()

    run(1)
    start = time.perf_counter()
    run(1)
    return Entrant(run, 1, time.perf_counter() - start)
