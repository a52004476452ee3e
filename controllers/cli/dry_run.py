# SPDX-License-Identifier: MIT
"""`controllers run --dry-run N`: the plan of a run on N places; loads neither OpenCL nor MPI."""
from __future__ import annotations

import argparse
import json

from controllers.cli.job import Job, check
from controllers.cli.outcome import USAGE, Failure, on_root
from controllers.run.dry_run import DryRun, dry_run
from hitmap.comm import Communicator


def command(options: argparse.Namespace, comm: Communicator) -> None:
    """Plan and print; nothing is computed or written.  Collective."""
    planned = on_root(comm, lambda: _print(check(options), options))
    assert planned is None


def _print(job: Job, options: argparse.Namespace) -> None:
    planned = _planned(job, options.dry_run)
    print(json.dumps(planned.as_dict()) if options.json else planned, flush=True)


def _planned(job: Job, n_controllers: int) -> DryRun:
    try:
        return dry_run(
            job.program, job.extent, n_controllers, boundary=job.boundary,
            division=job.division, execution=job.execution,
        )  # fmt: skip
    except ValueError as error:
        raise Failure(USAGE, str(error)) from None
