# SPDX-License-Identifier: MIT
"""`controllers run`: a stencil from a pattern file on a field from a file, or on a made one."""
from __future__ import annotations

import argparse
import json
import sys

from controllers.checkpoint.error import CheckpointError
from controllers.cli import hash_field
from controllers.cli.checkpoints import checkpoints_of
from controllers.cli.job import Job, check
from controllers.cli.kernels import write_kernels_of
from controllers.cli.outcome import FAILED, NO_DEVICE, USAGE, Failure, on_root
from controllers.cli.outputs import is_in_time, output_of
from controllers.cli.picture import plot_of
from controllers.device import NoDeviceError
from controllers.kernel.build import BuildError
from controllers.kernel.variant import Kernel
from controllers.memory.ledger import MemoryCapError
from controllers.run.computation import Computation
from hitmap.comm import Communicator


def command(options: argparse.Namespace, comm: Communicator) -> None:
    """Check, compute, write, report.  Collective."""
    checkpoints_of(options)     # refused before anything is computed
    job = on_root(comm, lambda: check(options))
    with _computation(job, comm) as computation:
        is_root = comm.rank == 0
        if options.explain:
            text = computation.explain()
            if is_root:
                print(text + "\n", file=sys.stderr if options.json else sys.stdout, flush=True)
        if options.kgt_out is not None:
            write_kernels_of(computation, options.kgt_out)
        _load(options, computation)
        _run(options, computation)
        report = computation.report()
        _write(options, computation)
    if is_root:
        print(json.dumps(report.as_dict()) if options.json else report.table(), flush=True)


def _computation(job: Job, comm: Communicator) -> Computation:
    """Devices opened, field divided; what does not fit together is an error of usage."""
    try:
        return Computation(
            job.program, job.extent, boundary=job.boundary, comm=comm,
            division=job.division, execution=job.execution,
        )  # fmt: skip
    except NoDeviceError as error:
        raise Failure(NO_DEVICE, str(error)) from None
    except (ValueError, MemoryCapError) as error:
        raise Failure(USAGE, str(error)) from None
    except BuildError as error:
        own = isinstance(job.execution.kernel, Kernel)
        raise Failure(USAGE if own else FAILED, str(error)) from None


def _load(options: argparse.Namespace, computation: Computation) -> None:
    """Set the field, from the file or the hash; each rank reads only what it needs.  Collective."""
    if options.input is None:
        computation.load(lambda tile: hash_field.fill(tile.array, tile.box, tile.domain))
        return
    try:
        computation.load_file(options.input)
    except ValueError as error:
        raise Failure(USAGE, f"--input: {error}") from None


def _run(options: argparse.Namespace, computation: Computation) -> None:
    """Run the steps, from a checkpoint on where there is one.  Collective."""
    kept, output = checkpoints_of(options), output_of(options)
    try:
        if kept is None:
            computation.run(
                options.iterations, progress=True, output=output, plot=plot_of(options)
            )
        else:
            computation.run(
                options.iterations, progress=True, output=output,
                checkpoint=(kept.folder, kept.every),
                restart=kept.restart, restart_anyway=kept.anyway,
                plot=plot_of(options),
            )  # fmt: skip
    except CheckpointError as error:
        raise Failure(USAGE, f"--checkpoint: {error}") from None
    except ImportError as error:
        raise Failure(USAGE, f"--output: {error}") from None


def _write(options: argparse.Namespace, computation: Computation) -> None:
    """Write the file, each rank its part, and the timeline.  Collective."""
    if options.trace is not None:
        computation.save_trace(options.trace)
    if options.output is not None and not is_in_time(options):
        computation.save(options.output)
