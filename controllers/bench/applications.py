# SPDX-License-Identifier: MIT
"""Applications of the literature, measured as their users run them, beside the device's copy rate.

Each is a file of examples/ with a function `computation`, which takes the extent (or one number,
where all axes have the same) and whatever a `Computation` takes.
"""
from __future__ import annotations

import inspect
import runpy
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from controllers.bench.loops import BufferCopy, Buffers, KernelCopy
from controllers.bench.problem import Problem
from controllers.bench.rounds import Entrant, interleaved, ratio
from controllers.device import Device
from controllers.plan import Plan
from controllers.program.pieces import nbytes
from controllers.report.report import Report, format_table
from controllers.run.computation import Computation
from hitmap.comm import SerialCommunicator

ROW, MOST_ROWS = 1024, 65536    # of the field that is copied: a step's bytes, 256 MiB at the most


@dataclass(frozen=True)
class Application:
    """What is measured where nobody says more: extents by kind of device.

    flops: operations for each cell by the benchmark's own convention, and whose that is; 0 for
    those of its formulas.
    """

    quick: tuple[int, ...]
    cpu: tuple[int, ...]
    gpu: tuple[int, ...]
    flops: int = 0
    source: str = "its formulas"


APPLICATIONS = {
    "himeno": Application((32, 32, 64), (128, 128, 256), (256, 256, 512), 34, "himenoBMT"),
    "swim": Application((128,) * 2, (2048,) * 2, (8192,) * 2),
    "hyperthermia": Application((32,) * 3, (160,) * 3, (384,) * 3),
    "tricubic": Application((32,) * 3, (160,) * 3, (384,) * 3),
    "life": Application((256,) * 2, (8192,) * 2, (16384,) * 2),
    "reverse_edge": Application((200,) * 2, (4096,) * 2, (16384,) * 2),
    "lattice_gas": Application((256,) * 2, (4096,) * 2, (8192,) * 2),
    "compressible": Application((24, 12, 12), (96,) * 3, (256,) * 3),
    "seismic": Application((100, 200), (2048,) * 2, (8192,) * 2),
}


@dataclass(frozen=True)
class Speed:
    """How fast one application is on a device, or on several parts of it.

    cell_steps_per_s: of cells that are computed; the median of the rounds.
    copy_bytes_per_s: the device's own, read and written.
    bytes_per_cell: each field read once and written once in a step.
    of_copy: these per second, as a fraction of the copy rate; over 1 where several steps are
        computed at once.
    swept: the same of the bytes that its sweeps move, of which there may be several.
    flops_per_cell: as `flops_by` counts.
    exchange: the part of the time in which places computed nothing while halos were on their way.
    """

    application: str
    device: str
    extent: tuple[int, ...]
    cell_steps_per_s: float
    copy_bytes_per_s: float
    bytes_per_cell: int
    of_copy: float
    swept: float
    flops_per_cell: int
    flops_by: str
    exchange: float

    @property
    def flops_per_s(self) -> float:
        """Operations per second."""
        return self.cell_steps_per_s * self.flops_per_cell

    def as_dict(self) -> dict[str, object]:
        """Plain data, for JSON."""
        return {**asdict(self), "flops_per_s": self.flops_per_s}


def sizes_of(computation: Callable[..., Computation], extent: Sequence[int]) -> tuple[int, ...]:
    """What a `computation` is called with for an extent; ValueError where it has no such one.

    >>> sizes_of(lambda n, **options: None, (9, 9)), sizes_of(lambda y, x: None, (9, 8))
    ((9,), (9, 8))
    """
    taken = [one for one in inspect.signature(computation).parameters.values()
             if one.kind is one.POSITIONAL_OR_KEYWORD]  # fmt: skip
    if len(taken) == len(extent):
        return tuple(extent)
    if len(taken) == 1 and len({*extent}) == 1:
        return (extent[0],)
    text = "x".join(map(str, extent))
    raise ValueError(f"all axes have the same number of cells, got {text}; give such a size")


def run_application(
    name: str, path: Path, extent: tuple[int, ...], selector: str, device: Device, seconds: float
) -> Speed:
    """Measure the application of a file for about `seconds`; `device` is what is copied on.

    ValueError or RuntimeError where it cannot be computed, ImportError where it needs more than
    there is.
    """
    computation = runpy.run_path(str(path))["computation"]
    sizes = sizes_of(computation, extent)
    with computation(*sizes, devices=selector, comm=SerialCommunicator()) as run:
        computed = run.program.updated(run.domain, run.plan.periodic) & run.domain
        sweeping = computed.n_cells * swept_bytes(run.plan)
        rows = min(max(sweeping // (2 * 4 * ROW), 2), MOST_ROWS)
        copied = Problem("2d4", "float32", (rows, ROW))
        buffers = Buffers(device, copied)
        copies = [BufferCopy(buffers), KernelCopy(buffers)]
        for copy in copies:
            copy.prepare(copied)
        n_at_once = run.plan.steps_per_launch
        entrants = [*(_warmed(copy.run, 1) for copy in copies), _warmed(run.run, n_at_once)]
        *of_copies, own = interleaved(entrants, seconds)
        copy_s = min(of_copies, key=statistics.median)
        relative = ratio(copy_s, own) / (2 * copied.nbytes) * computed.n_cells
        known = APPLICATIONS[name]
        return Speed(
            name, f"{device.name}, {selector}" if "," in selector else device.name, extent,
            computed.n_cells / statistics.median(own),
            2 * copied.nbytes / statistics.median(copy_s),
            run.program.bytes_per_cell, relative * run.program.bytes_per_cell,
            relative * swept_bytes(run.plan),
            known.flops or run.plan.program.flops_per_cell, known.source, exposed(run.report()),
        )  # fmt: skip


def swept_bytes(plan: Plan) -> int:
    """Bytes that the sweeps of a step move for a cell, each field of one read and written once.

    Those of a few cells that complete others are left out.
    """
    stages = (sweep.stage for sweep in plan.sweeps if not sweep.completes)
    return sum(nbytes(plan.program, stage) for stage in stages)


def exposed(report: Report) -> float:
    """The part of the time, 0 to 1, that places on average stood still for halos."""
    if not report.seconds:
        return 0.0
    return sum(one.exposed_s for one in report.places) / len(report.places) / report.seconds


def speeds_table(speeds: Sequence[Speed]) -> str:
    """For people."""
    head = ("", "cells", "Gcell-steps/s", "copy GB/s", "of copy", "swept", "GFLOP/s",
            "flops/cell", "by", "exchange")  # fmt: skip
    rows = [
        (one.application, "x".join(map(str, one.extent)), f"{one.cell_steps_per_s / 1e9:.4g}",
         f"{one.copy_bytes_per_s / 1e9:.3g}", f"{one.of_copy:.2f}", f"{one.swept:.2f}",
         f"{one.flops_per_s / 1e9:.4g}", str(one.flops_per_cell), one.flops_by,
         f"{one.exchange:.0%}")
        for one in speeds
    ]  # fmt: skip
    return format_table(head, rows, left=("", "cells", "by"))


def _warmed(run: Callable[[int], Any], n_at_once: int) -> Entrant:
    run(n_at_once)
    start = time.perf_counter()
    run(n_at_once)
    return Entrant(run, n_at_once, (time.perf_counter() - start) / n_at_once)
