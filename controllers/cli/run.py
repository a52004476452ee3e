# SPDX-License-Identifier: MIT
"""`controllers run`: a stencil from a pattern file on a field from a file, or on a made one."""
from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path

from controllers.check.setting import VARIABLE
from controllers.cli import hash_field
from controllers.cli.files import check_target, open_field
from controllers.cli.outcome import NO_DEVICE, USAGE, Failure, on_root
from controllers.cli.picture import check_format, draw, sampled
from controllers.cli.progress import Progress
from controllers.computation import Computation
from controllers.device import NoDeviceError
from controllers.ledger import ENVIRONMENT, MemoryCapError, parse_cap
from controllers.partition import BOUNDARIES, PARTITIONS
from controllers.pattern_file import read_patterns
from controllers.program import DTYPES
from controllers.registry import GENERIC, SPECIALISED, KernelChoice
from controllers.stencil import Stencil
from controllers.variant import Kernel
from hitmap.comm import Communicator

HELP = "apply a stencil to a field, many times"
DESCRIPTION = (
    "Apply the stencil of a pattern file to a field, and report what that has cost: in all, and "
    "for each place (share of the field).  Start it with mpiexec to use several ranks.  The result "
    "has the same bits whatever the number of ranks and devices."
)


@dataclass(frozen=True)
class Job:
    """What is to be run, checked: the same on all ranks."""

    stencil: Stencil
    kernel: KernelChoice
    dtype: str
    extent: tuple[int, ...]


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    add = parser.add_argument
    add("pattern", metavar="PATTERN.py", type=Path,
        help="pattern file: shape, pattern, factor as literals; it is parsed, never executed")
    add("--stencil", metavar="NAME", help="which one, of a pattern file with several stencils")
    field = parser.add_mutually_exclusive_group(required=True)
    field.add_argument("--input", metavar="FILE.npy", type=Path, help="the initial field")
    field.add_argument(
        "--size", metavar="N", type=_positive, nargs="+",
        help="extents of the field, boundary cells included; it is filled with a hash of each "
        "cell's index, in [0, 1) or any integer of the dtype, the same for every layout")
    add("--iterations", metavar="N", type=_count, required=True, help="how many steps")
    add("--output", metavar="FILE.npy", type=Path, help="where to write the final field")
    add("--plot", metavar="FILE.png", type=Path,
        help="where to draw the final field: a line, an image, or the middle slice")
    add("--boundary", metavar="KIND", nargs="+", default=["fixed"],
        help=f"{' or '.join(BOUNDARIES)}: one for all axes or one per axis (default: fixed, cells "
        "whose stencil shape leaves the field keep their value)")
    add("--partition", choices=PARTITIONS,
        help="how the field is cut: bands along axis 0, blocks on all axes, bands or blocks in "
        "proportion to --weights, or blocks of the extent --block that are dealt to the "
        "controllers in turn (default: bands; weighted if there are --weights)")
    add("--weights", metavar="W,W,...", type=_weights,
        help="the share of each place in order of rank, in any unit, such as 1,3.7")
    add("--align", metavar="N", type=_positive, nargs="+", default=[1],
        help="cut the field at multiples of N cells only: one for all axes or one per axis")
    add("--block", metavar="N", type=_positive, nargs="+",
        help="extent of the blocks of a cyclic partition: one for all axes or one per axis")
    add("--device", metavar="SELECTOR", action="append", default=[],
        help="gpu, cpu, accelerator, reference, part of a name such as nvidia, nvidia:1 for the "
        "second of these, cpu/1,1 for parts of a CPU by cores; may be repeated; see the command "
        "devices (default: all GPUs, else the CPU)")
    add("--dtype", choices=DTYPES,
        help="type to compute in (default: the input's, else float32); integers need whole weights "
        "and wrap")
    add("--kernel", metavar="KIND", type=_kernel_word, default=SPECIALISED,
        help="specialised (generated for the stencil, the default), generic (one that takes any "
        "stencil as data), or FILE.cl, one of your own in OpenCL C, which reads what the pattern "
        "declares: see docs/kernels.md")
    add("--overlap", choices=("auto", "on", "off"), default="auto",
        help="exchange while the inner cells are computed (default: auto, where it pays)")
    add("--memory-cap", metavar="BYTES", type=_memory_cap,
        help="the most that the run may take of the memory of each device, such as 4g or 512m; a "
        "field that does not fit is refused before anything is allocated (default: the "
        f"environment variable {ENVIRONMENT}, else all of the device's memory)")
    add("--check", choices=("on", "oclgrind"), nargs="?", const="on",
        help="watch every access, and end with an error that names field, cell, rank and step "
        "where one is wrong: a stale or unwritten cell, an order that nothing enforces, a kernel "
        "that does other than it declares, a NaN; --check=oclgrind also runs all kernels under "
        "Oclgrind, which finds races and divergent barriers; slow, for small fields: see "
        f"docs/checking.md (default: the environment variable {VARIABLE}, else off)")
    add("--json", action="store_true", help="print one line of JSON instead of the table")


def command(options: argparse.Namespace, comm: Communicator) -> None:
    """Check, compute, write, report.  Collective."""
    job = on_root(comm, lambda: _check(options))
    with _computation(job, options, comm) as computation:
        _load(options, computation)
        is_root = comm.rank == 0
        computation.run(options.iterations, Progress(sys.stderr) if is_root else None)
        report = computation.report()
        _write(options, computation)
    if is_root:
        print(json.dumps(report.as_dict()) if options.json else report.table(), flush=True)


def _check(options: argparse.Namespace) -> Job:
    """What can be found wrong before anything is computed; runs on one rank."""
    stencil = _stencil(options)
    if options.output is not None:
        check_target("--output", options.output)
    if options.plot is not None:
        check_target("--plot", options.plot)
        check_format(options.plot)
    if options.input is None:
        dtype, extent = options.dtype or "float32", tuple(options.size)
    else:
        field = open_field(options.input)
        dtype, extent = options.dtype or field.dtype.name, field.shape
        if dtype not in DTYPES:
            raise Failure(
                USAGE,
                f"--input {options.input}: holds {dtype}, but fields are {', '.join(DTYPES)}; "
                f"convert it while reading, with --dtype float64 for example",
            )
    return Job(stencil, _kernel(options.kernel), dtype, extent)


def _kernel(wanted: str) -> KernelChoice:
    """The kernel of --kernel; its file is read on one rank."""
    if not wanted.endswith(".cl"):
        return SPECIALISED if wanted == SPECIALISED else GENERIC
    try:
        return Kernel.of(Path(wanted).stem, Path(wanted))
    except OSError as error:
        raise Failure(USAGE, f"--kernel {wanted}: {error.strerror}; give a .cl file") from None
    except ValueError as error:     # empty, or not UTF-8
        raise Failure(USAGE, f"--kernel {wanted}: {error}") from None


def _stencil(options: argparse.Namespace) -> Stencil:
    try:
        stencils = {stencil.name: stencil for stencil in read_patterns(options.pattern)}
    except OSError as error:
        raise Failure(USAGE, f"{options.pattern}: {error.strerror}") from None
    except ValueError as error:
        raise Failure(USAGE, str(error)) from None
    if options.stencil is None and len(stencils) == 1:
        return next(iter(stencils.values()))
    if options.stencil not in stencils:
        wanted = f"there is no stencil {options.stencil!r}" if options.stencil else "say which one"
        raise Failure(
            USAGE,
            f"{options.pattern}: {wanted}, with --stencil NAME; it has {', '.join(stencils)}",
        )
    return stencils[options.stencil]


def _computation(job: Job, options: argparse.Namespace, comm: Communicator) -> Computation:
    """Devices opened, field divided; what does not fit together is an error of usage."""
    try:
        return Computation(
            job.stencil.program(job.dtype),
            job.extent,
            partition=options.partition,
            weights=options.weights,
            align=options.align,
            block=options.block,
            boundary=[word for text in options.boundary for word in text.split(",")],
            devices=options.device,
            comm=comm,
            overlap=options.overlap,
            kernel=job.kernel,
            memory_cap=options.memory_cap,
            check=options.check,
        )
    except NoDeviceError as error:
        raise Failure(NO_DEVICE, str(error)) from None
    except (ValueError, MemoryCapError) as error:
        raise Failure(USAGE, str(error)) from None


def _load(options: argparse.Namespace, computation: Computation) -> None:
    """Set the field, from the file or the hash; each rank reads only what it needs.  Collective."""
    if options.input is None:
        computation.load(lambda tile: hash_field.fill(tile.array, tile.shape, tile.domain))
        return
    try:
        computation.load_file(options.input)
    except ValueError as error:
        raise Failure(USAGE, f"--input: {error}") from None


def _write(options: argparse.Namespace, computation: Computation) -> None:
    """Write the file, each rank its part, and draw the picture.  Collective."""
    if options.output is not None:
        computation.save(options.output)
    if options.plot is not None:
        sample = sampled(computation)
        if sample is not None:
            steps = "1 step" if options.iterations == 1 else f"{options.iterations} steps"
            title = f"{computation.program.name}: {steps}"
            draw(options.plot, sample, computation.domain.extent, title)


def _kernel_word(text: str) -> str:
    if text not in (SPECIALISED, GENERIC) and not text.endswith(".cl"):
        raise argparse.ArgumentTypeError(
            f"{SPECIALISED}, {GENERIC} or the name of a .cl file, got {text!r}"
        )
    return text


def _memory_cap(text: str) -> int:
    try:
        return parse_cap(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _positive(text: str) -> int:
    value = _count(text)
    if value == 0:
        raise argparse.ArgumentTypeError("at least 1 cell, got 0")
    return value


def _count(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = -1
    if value < 0:
        raise argparse.ArgumentTypeError(f"a whole number that is not negative, got {text!r}")
    return value


def _weights(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"numbers between commas, such as 1,3.7, got {text!r}"
        ) from None
