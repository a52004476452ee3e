# SPDX-License-Identifier: MIT
"""Applications of the literature, measured as their users run them, beside the device's copy rate.

Each is a file of examples/: a pattern, a program, or one with a function `computation`, which takes
the extent (or one number, where all axes have the same) and whatever a `Computation` takes.
"""
from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from controllers.bench.loops import BufferCopy, Buffers, KernelCopy
from controllers.bench.problem import Problem
from controllers.bench.program_file import computation_of
from controllers.bench.rounds import Entrant, interleaved, ratio
from controllers.device import Device
from controllers.plan import Plan
from controllers.program.pieces import nbytes
from controllers.report.report import Report
from controllers.report.table import format_table

ROW, MOST_ROWS = 1024, 65536    # of the field that is copied: a step's bytes, 256 MiB at the most


@dataclass(frozen=True)
class Application:
    """What is measured where nobody says more: extents by kind of device.

    flops: operations for each cell by the benchmark's own convention, and whose that is; 0 for
    those of its formulas.  file: among the examples, where it is called otherwise.  options: of its
    execution.  instead: other words of its text.
    """

    quick: tuple[int, ...]
    cpu: tuple[int, ...]
    gpu: tuple[int, ...]
    flops: int = 0
    source: str = "its formulas"
    file: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    instead: Mapping[str, str] = field(default_factory=dict)


# of patterns by their number of axes: as EPSILOD's are, each by two kernels
_LINE = ((10**5,), (2**26,), (2**28,))
_PLANE, _VOLUME = ((256,) * 2, (8192,) * 2, (16384,) * 2), ((32,) * 3, (384,) * 3, (640,) * 3)
_FOUR = ((12,) * 4, (80,) * 4, (128,) * 4)
PATTERNS = {
    "jacobi_1d2": _LINE, "mean_1d4": _LINE, "jacobi_2d4": _PLANE, "compact_2d9c": _PLANE,
    "star_2d9s": _PLANE, "drift_2d5a": _PLANE, "jacobi_3d6": _VOLUME, "heat_3d7": _VOLUME,
    "mean_3d12": _VOLUME, "smooth_3d27": _VOLUME, "jacobi_4d8": _FOUR,
}  # fmt: skip
GENERIC = "-generic"
APPLICATIONS = {
    "himeno": Application((32, 32, 64), (128, 128, 256), (256, 256, 512), 34, "himenoBMT"),
    "swim": Application((128,) * 2, (2048,) * 2, (8192,) * 2),
    "hyperthermia": Application((32,) * 3, (160,) * 3, (384,) * 3),
    "tricubic": Application((32,) * 3, (160,) * 3, (384,) * 3),
    "life": Application((256,) * 2, (8192,) * 2, (16384,) * 2),
    "reverse_edge": Application((200,) * 2, (4096,) * 2, (16384,) * 2),
    "lattice_gas": Application((256,) * 2, (4096,) * 2, (8192,) * 2),
    "compressible": Application((24, 12, 12), (96,) * 3, (256,) * 3),
    "diffusion_3d": Application((32,) * 3, (256,) * 3, (512,) * 3),
    "seismic": Application((100, 200), (2048,) * 2, (8192,) * 2),
    "wave": Application((300, 400), (4096,) * 2, (8192,) * 2),
    "wave-2": Application((300, 400), (4096,) * 2, (8192,) * 2, file="wave",
                          instead={"accuracy=8": "accuracy=2"}),
    "acoustic": Application((96,) * 2, (2048,) * 2, (8192,) * 2),
    "gray_scott": Application((256,) * 2, (4096,) * 2, (8192,) * 2),
    "shallow_water": Application((200,) * 2, (2048,) * 2, (8192,) * 2),
    "rayleigh_taylor": Application((150, 50), (2048,) * 2, (8192,) * 2),
    "cavity": Application((48,) * 2, (512,) * 2, (4096,) * 2),
    "lattice_boltzmann": Application((64,) * 2, (1024,) * 2, (4096,) * 2),
    **{name: Application(*each, file=f"patterns/{name}") for name, each in PATTERNS.items()},
    **{name + GENERIC: Application(*each, file=f"patterns/{name}", options={"kernel": "generic"})
       for name, each in PATTERNS.items()},
}  # fmt: skip


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


def run_application(
    name: str, examples: Path, extent: tuple[int, ...], selector: str, device: Device,
    seconds: float,
) -> Speed:  # fmt: skip
    """Measure an application for about `seconds`; `device` is what is copied on.

    ValueError or RuntimeError where it cannot be computed, ImportError where it needs more than
    there is.
    """
    known = APPLICATIONS[name]
    options = {"devices": selector, **known.options}
    path = examples / f"{known.file or name}.py"
    with computation_of(path, extent, options, known.instead) as run:
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
        done = dict(run.repeats)
        relative = ratio(copy_s, own) / (2 * copied.nbytes) * computed.n_cells
        return Speed(
            name, f"{device.name}, {selector}" if "," in selector else device.name, extent,
            computed.n_cells / statistics.median(own),
            2 * copied.nbytes / statistics.median(copy_s),
            run.program.bytes_per_cell, relative * run.program.bytes_per_cell,
            relative * swept_bytes(run.plan, done),
            known.flops or flops_per_cell(run.plan, done), known.source, exposed(run.report()),
        )  # fmt: skip


def swept_bytes(plan: Plan, done: Mapping[str, int] | None = None) -> int:
    """Bytes that the sweeps of a step move for a cell, each field of one read and written once.

    Those of a few cells that complete others are left out.  done: how often each repeat was done
    in the step, by its name; else once.
    """
    return sum(
        nbytes(part.program, sweep.stage) * n
        for part, n in _parts(plan, done or {})
        for sweep in part.sweeps
        if not sweep.completes
    )


def flops_per_cell(plan: Plan, done: Mapping[str, int]) -> int:
    """Operations for a cell in a step, each repeat as often as it was done."""
    return sum(part.program.flops_per_cell * n for part, n in _parts(plan, done))


def _parts(plan: Plan, done: Mapping[str, int]) -> Iterator[tuple[Plan, int]]:
    """What a step consists of, and how often each part was done in it."""
    if not plan.parts:
        yield plan, 1
    for part in plan.parts:
        yield part.plan, 1 if part.repeat is None else done.get(part.repeat.name, 1)


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
