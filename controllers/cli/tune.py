# SPDX-License-Identifier: MIT
"""`controllers tune`: the fastest configurations of a stencil's kernels are found and kept."""
from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from controllers.cli.job import Job, check
from controllers.cli.outcome import FAILED, NO_DEVICE, USAGE, Failure, on_root
from controllers.device import NoDeviceError
from controllers.kernel.build import BuildError
from controllers.kernel.candidate import plain
from controllers.report.table import format_table
from controllers.tuning import Tried, Tuned, tune
from hitmap.comm import Communicator

MAX_LINES = 30      # of a table


def command(options: argparse.Namespace, comm: Communicator) -> None:
    """Check, search, print.  Collective."""
    job = on_root(comm, lambda: check(options))
    found = _tuned(job, options, comm)
    if comm.rank == 0:
        text = "\n\n".join(map(_text, found))
        print(json.dumps([*map(_as_dict, found)]) if options.json else text, flush=True)


def _tuned(job: Job, options: argparse.Namespace, comm: Communicator) -> list[Tuned]:
    try:
        return tune(
            job.program, job.extent, boundary=job.boundary, comm=comm,
            division=job.division, execution=job.execution,
            seconds=options.seconds, search=options.search, seed=options.seed,
        )  # fmt: skip
    except NoDeviceError as error:
        raise Failure(NO_DEVICE, str(error)) from None
    except ValueError as error:
        raise Failure(USAGE, str(error)) from None
    except BuildError as error:
        raise Failure(FAILED, str(error)) from None


def _text(tuned: Tuned) -> str:
    """What was tried for one stage on one device, the default first."""
    cells = " x ".join(map(str, tuned.extent))
    measured = sum(tried.seconds is not None for tried in tuned.tried)
    title = (
        f"rank {tuned.rank}, {tuned.device}: stage {tuned.stage}, {cells} cells; {measured} of "
        f"{tuned.n_configurations} configurations measured in {tuned.seconds:.1f} s"
    )
    if len(tuned.at_once) > 1:
        times = ", ".join(f"{n}: {seconds * 1e3:.4g} ms" for n, seconds in tuned.at_once)
        title += f"\na step, by steps per launch: {times}"
    if len(tuned.tried) < 2:
        return f"{title}; nothing was tried, and nothing changes"
    rows = [_row(tried) for tried in tuned.tried]
    if len(rows) > MAX_LINES:
        rows = [*rows[:MAX_LINES], (f"... {len(rows) - MAX_LINES} more", "", "")]
    table = format_table(("configuration", "time", "of the default's"), rows, ("configuration",))
    where = "kept for later runs" if tuned.kept else "not kept, CONTROLLERS_TUNING is off"
    return "\n".join([title, table, f"{tuned.winner.described()}: {where}"])


def _row(tried: Tried) -> tuple[str, str, str]:
    name = tried.configuration.described()
    if tried.seconds is None or tried.ratio is None:
        return f"{name}: {tried.problem}", "-", "-"
    return name, f"{tried.seconds * 1e3:.4g} ms", f"{tried.ratio:.3f}"


def _as_dict(tuned: Tuned) -> dict[str, object]:
    rows = [{**asdict(t), "configuration": plain(t.configuration)} for t in tuned.tried]
    return {**asdict(tuned), "tried": rows, "winner": plain(tuned.winner)}
