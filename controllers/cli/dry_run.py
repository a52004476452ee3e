# SPDX-License-Identifier: MIT
"""`controllers run --dry-run N`: the plan of a run on N places; loads neither OpenCL nor MPI."""
from __future__ import annotations

import argparse
import json

from controllers.cli.job import Job, boundary_of, check
from controllers.cli.outcome import USAGE, Failure, on_root
from controllers.run.dry_run import DryRun, dry_run
from hitmap.comm import Communicator


def command(options: argparse.Namespace, comm: Communicator) -> None:
    """Plan and print; nothing is computed or written.  Collective."""
    planned = on_root(comm, lambda: _print(check(options), options))
    assert planned is None


def _print(job: Job, options: argparse.Namespace) -> None:
    planned = _planned(job, options)
    print(json.dumps(planned.as_dict()) if options.json else planned, flush=True)


def _planned(job: Job, options: argparse.Namespace) -> DryRun:
    try:
        return dry_run(
            job.stencil.program(job.dtype),
            job.extent,
            options.dry_run,
            partition=options.partition,
            weights=options.weights,
            align=options.align,
            block=options.block,
            boundary=boundary_of(options),
            devices=options.device,
            overlap=options.overlap,
            kernel=job.kernel,
            steps_per_launch=options.steps_per_launch,
            math=options.math,
        )
    except ValueError as error:
        raise Failure(USAGE, str(error)) from None
