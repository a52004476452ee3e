# SPDX-License-Identifier: MIT
"""The options of `controllers run`, and which module does the work; nothing here loads OpenCL."""
from __future__ import annotations

import argparse
import importlib
from typing import get_args

from controllers.cli.outcome import USAGE, Failure
from controllers.cli.outputs import is_in_time
from controllers.cli.report_options import add_report_options
from controllers.cli.verbose import telling
from controllers.cli.words import (
    chunks_or_auto,
    count,
    duration,
    file_name,
    halo_width,
    kernel_word,
    limits,
    memory_cap,
    n_cells,
    n_chunks,
    n_steps,
    often,
    patience,
    place_on_axis,
    watchdog_limit,
    weights,
)
from controllers.memory.ledger import ENVIRONMENT, HOST_ENVIRONMENT
from controllers.program.fusion import Fusing
from controllers.program.program import DTYPES, Math
from controllers.program.storing import Storing
from controllers.settings.checkpoints import RESTARTS
from controllers.settings.division import PARTITIONS
from controllers.settings.execution import Balance, Exchange
from controllers.settings.launches import MOST_STEPS
from hitmap.comm import Communicator

HELP = "apply a stencil to a field, many times; or run a program with other options"
DESCRIPTION = (
    "Apply the stencil of a pattern file to a field, --size or --input, and report what that has "
    "cost: in all, and for each place (share of the field).  Start it with mpiexec to use several "
    "ranks.  The result has the same bits whatever the number of ranks and devices.  Without "
    "--size and --input FILE.py is a program that makes computations (controllers.Computation): it "
    "is executed, and the options hold in place of what it says; its own arguments follow after --."
)
FOR_PATTERNS = ("stencil", "output", "boundary", "dtype", "kernel", "dry_run")


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    _field_options(parser)
    _picture_options(parser)
    _division_options(parser)
    _execution_options(parser)
    _kernel_options(parser)
    _memory_options(parser)
    _balance_option(parser)
    _checkpoint_options(parser)
    _inspection_options(parser)
    add_report_options(parser)


def _field_options(parser: argparse.ArgumentParser) -> None:
    """What is computed, of what, and where the result goes."""
    add = parser.add_argument
    add("pattern", metavar="FILE.py", type=file_name,
        help="pattern file: shape, pattern, factor as literals, which is parsed, never executed; "
        "or, without --size and --input, a program, which is executed")
    add("--stencil", metavar="NAME", help="which one, of a pattern file with several stencils")
    field = parser.add_mutually_exclusive_group()
    field.add_argument("--input", metavar="FILE.npy", type=file_name, help="the initial field")
    field.add_argument(
        "--size", metavar="N", type=n_cells, nargs="+",
        help="extents of the field, boundary cells included; it is filled with a hash of each "
        "cell's index, in [0, 1) or any integer of the dtype, the same for every layout")
    add("--iterations", metavar="N", type=count,
        help="how many steps; needed for a pattern unless it is a --dry-run; of a program, what "
        "each run takes in place of what it says")
    add("--output", metavar="FILE", type=file_name,
        help="FILE.npy: where to write the final field; FILE.zarr: where to write moments while "
        "steps run, the first, the last, and those of --every, also of a program, and of its "
        "second computation to FILE-2.zarr: see controllers docs output")
    add("--boundary", metavar="KIND", nargs="+",
        help="what lies outside, one for all axes or one per axis: fixed (default), cells whose "
        "stencil shape leaves the field keep their value; periodic; mirror, mirror:-1, "
        "fixed:VALUE, extrapolate:ORDER")


def _picture_options(parser: argparse.ArgumentParser) -> None:
    """What is drawn, and how."""
    add = parser.add_argument
    add("--plot", metavar="FILE", type=file_name,
        help="a film of the fields where it ends with .gif, or with .mp4, which needs ffmpeg; else "
        "a picture, .png and so on, of the final fields: lines, images, or the middle slice; of a "
        "program of all that it records (run.record), if it does, and one for each computation, as "
        "it is closed: see controllers docs looking")
    add("--plot-every", metavar="STEPS", type=n_cells,
        help="steps between two frames of a film (default: so many that there are about 100)")
    add("--plot-field", metavar="NAME", action="append", default=[],
        help="which field, or struct; may be repeated (default: up to 6 that steps change)")
    add("--plot-at", metavar="AXIS=NUMBER", type=place_on_axis, action="append", default=[],
        help="where to cut an axis, such as z=10: a coordinate where there is a grid, else an "
        "index; may be repeated (default: the middle, of all axes but two)")
    add("--plot-limits", metavar="LOW,HIGH", type=limits,
        help="values with the first and the last colour (default: least and largest so far)")


def _division_options(parser: argparse.ArgumentParser) -> None:
    """Who owns what."""
    add = parser.add_argument
    add("--partition", choices=PARTITIONS,
        help="how the field is cut: bands along axis 0, blocks on all axes, bands or blocks in "
        "proportion to --weights, or blocks of the extent --block that are dealt to the "
        "controllers in turn (default: bands, or a grid where links make that clearly better; "
        "weighted if there are --weights)")
    add("--weights", metavar="W,W,...", type=weights,
        help="the share of each place in order of rank, in any unit, such as 1,3.7; or auto, for "
        "bands and blocks, such that all devices take equally long: see controllers docs balance "
        "(default: auto where devices are unlike and nothing is said on how to cut)")
    add("--align", metavar="N", type=n_cells, nargs="+",
        help="cut the field at multiples of N cells only: one for all axes or one per axis")
    add("--block", metavar="N", type=n_cells, nargs="+",
        help="extent of the blocks of a cyclic partition: one for all axes or one per axis")
    add("--dims", metavar="N", type=n_cells, nargs="+",
        help="how many places there are along each axis, in place of a partition")


def _execution_options(parser: argparse.ArgumentParser) -> None:
    """On which devices, and how."""
    add = parser.add_argument
    add("--device", metavar="SELECTOR", action="append", default=[],
        help="gpu, cpu, accelerator, reference, part of a name such as nvidia, nvidia:1 for the "
        "second of these, cpu/1,1 for parts of a CPU by cores, cpu/1,1:1 for the second; may be "
        "repeated; see the command devices; auto for those that pay, of the others that are named "
        "or of all: see controllers docs balance (default: all GPUs, else the CPU)")
    add("--exclusive", metavar="SECONDS", nargs="?", type=patience,
        help="wait until no other process and no task holds the devices, for so many seconds at "
        "most if that is said, and hold them until the end: see controllers docs arbiter")
    add("--dtype", choices=DTYPES,
        help="type to compute in (default: the input's, else float32); integers wrap")
    add("--overlap", choices=("auto", "on", "off"),
        help="exchange while the inner cells are computed (default: auto, where it pays)")
    add("--exchange", choices=get_args(Exchange),
        help="auto: the first steps try other ways to exchange halos, and go on with the fastest, "
        "which is kept for later runs; the result has the same bits (default: usual)")
    add("--steps-per-launch", metavar="N", type=n_steps,
        help="time steps that one launch computes, with halos of N times the reach and one "
        f"exchange in N steps, at most {MOST_STEPS}; needs a generated kernel, or one that "
        "declares as many; or one number for each place, such as 12,8: see controllers docs halos "
        "(default: what promises to be fast on each device)")
    add("--halo-width", metavar="N", type=halo_width,
        help="time steps between two exchanges of halos, a multiple of the steps per launch where "
        "these are one number; places compute more cells in the meantime; or auto, which finds out "
        "while steps run what is the fastest: see controllers docs halos (default: the steps of "
        "one launch)")


def _kernel_options(parser: argparse.ArgumentParser) -> None:
    """What kernels compute, and how."""
    add = parser.add_argument
    add("--kernel", metavar="KIND", type=kernel_word,
        help="specialised (generated for the stencil, the default), generic (one that takes any "
        "stencil as data), or FILE.cl, one of your own in OpenCL C, which reads what the pattern "
        "declares: see controllers docs kernels")
    add("--math", choices=get_args(Math),
        help="strict (the default): the bits of the NumPy reference; fast, for generated kernels "
        "and float fields: constants are divided beforehand, a product and a sum may be rounded "
        "once; the bits then depend on the device and on how the field is cut")
    add("--stored", choices=get_args(Storing),
        help="what becomes of values that steps mark by stored(): always kept in memory, or never, "
        "but computed again where they are read (default: auto, what promises to be faster)")
    add("--fuse", choices=get_args(Fusing),
        help="never: each stage of a step by itself (default: auto, one sweep for stages in a row "
        "where that moves fewer bytes)")


def _memory_options(parser: argparse.ArgumentParser) -> None:
    """What is where while it does not fit."""
    add = parser.add_argument
    add("--memory-cap", metavar="BYTES", type=memory_cap,
        help="the most that the run may take of the memory of each device, such as 4g or 512m; "
        "fields that do not fit stay on the host and pass through in chunks, or are refused before "
        "anything is allocated: see controllers docs chunks (default: the environment variable "
        f"{ENVIRONMENT}, else all of the device's memory)")
    add("--chunks", metavar="N", type=chunks_or_auto,
        help="parts in which fields that live on the host pass through a device, at least; auto: "
        "these, slots and steps are found meanwhile (default: what memory needs, or none)")
    add("--slots", metavar="N", type=n_chunks,
        help="how many chunks there is room for on a device at once (default: 3)")
    add("--host-memory-cap", metavar="BYTES", type=memory_cap,
        help="the most that fields which pass through in chunks may take of the host's memory, of "
        "each rank; what is beyond lies in files (default: the environment variable "
        f"{HOST_ENVIRONMENT}, else half of the host's memory for its ranks)")
    add("--scratch", metavar="FOLDER", type=file_name,
        help="where these files are made, which have no name and are gone when the run ends "
        "(default: the folder for temporary files, TMPDIR)")


def _balance_option(parser: argparse.ArgumentParser) -> None:
    """Whether shares change."""
    parser.add_argument(
        "--balance", choices=get_args(Balance),
        help="move the cuts between devices so that all take equally long: start, in the first "
        "steps, dynamic, always, as devices may become slower, or off; the result has the same "
        "bits (default: start with --weights auto, else off)")


def _checkpoint_options(parser: argparse.ArgumentParser) -> None:
    """What is kept of a run that may be ended."""
    add = parser.add_argument
    add("--checkpoint", metavar="DIR", type=file_name,
        help="the folder in which the state of the run is kept, and from which the same command, "
        "given again, goes on, on as many ranks and devices as there are then; of a program, of "
        "its second computation in DIR-2, and so on.  SIGTERM, SIGUSR1 and Ctrl-C end the run "
        "after a checkpoint, the first two with the exit code 75: see controllers docs checkpoints")
    add("--every", metavar="N", type=often,
        help="how often a moment of --output FILE.zarr is written: after so many steps, or 60s for "
        "seconds, 0.1t for the time of steps; without such an output, after how many seconds a "
        "checkpoint is written")
    add("--checkpoint-every", metavar="SECONDS", type=duration,
        help="how often a checkpoint is written, of which the last two are kept (default: 600)")
    add("--restart", choices=RESTARTS,
        help="auto (the default): go on from the newest checkpoint, if there is one; require: "
        "there must be one; no: begin anew")
    add("--restart-anyway", action="store_true",
        help="go on from a checkpoint of a run with other parameters or records, with those of now")


def _inspection_options(parser: argparse.ArgumentParser) -> None:
    """What is watched while it runs."""
    add = parser.add_argument
    add("--check", choices=("on", "oclgrind"), nargs="?", const="on",
        help="watch every access, and end with an error that names field, cell, rank and step "
        "where one is wrong: a stale or unwritten cell, an order that nothing enforces, a kernel "
        "that does other than it declares, a NaN; --check=oclgrind also runs all kernels under "
        "Oclgrind, which finds races and divergent barriers; slow, for small fields: see "
        "controllers docs checking (default: the environment variable CONTROLLERS_CHECK, else off)")
    add("--verify-messages", action="store_true", default=None,
        help="send checksums with halo messages, and end the run where one was altered on its way")
    add("--digest-every", metavar="N", type=n_cells,
        help="after so many steps take the digest of each field, a number of all its bits, and "
        "count its NaNs, for the report: see controllers docs integrity")
    add("--watchdog", metavar="SECONDS", type=watchdog_limit,
        help="end the job when no step, nor writing or set-up, has ended for so long; each rank "
        "first says where it is (default: the variable CONTROLLERS_WATCHDOG, else never: after "
        "30 s they say it once, and go on)")
    add("--tune", metavar="SECONDS", type=duration,
        help="for so long, let the first steps of the run try other configurations of the kernels "
        "and go on with the fastest, which is kept for later runs; the result has the same bits: "
        "see controllers docs tuning (default: 0, take what was kept by such a run or by the "
        "command tune, else what is good in general)")


def command(options: argparse.Namespace, comm: Communicator) -> None:
    """Do what the options ask for.  Collective."""
    for name in ("plot_every", "plot_field", "plot_at", "plot_limits"):
        if getattr(options, name) and options.plot is None:
            option = name.replace("_", "-")
            raise Failure(USAGE, f"--{option} is of pictures; give --plot FILE, too")
    is_program = options.input is None and options.size is None
    if is_program:
        _check_program(options)
    elif options.arguments:
        raise Failure(USAGE, "what follows after -- is for programs, which have no --size, --input")
    elif options.dry_run is None and options.iterations is None:
        raise Failure(USAGE, "the following arguments are required: --iterations")
    name = "run" if options.dry_run is None else "dry_run"
    module = "program" if is_program else name
    with telling(comm, options.verbose):
        importlib.import_module(f"controllers.cli.{module}").command(options, comm)


def _check_program(options: argparse.Namespace) -> None:
    given = [
        name for name in FOR_PATTERNS
        if getattr(options, name) is not None and not (name == "output" and is_in_time(options))
    ]  # fmt: skip
    if given:
        option = given[0].replace("_", "-")
        raise Failure(
            USAGE,
            f"--{option} is for a pattern, which needs --size or --input; a program says that "
            f"itself",
        )
