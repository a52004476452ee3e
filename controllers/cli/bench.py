# SPDX-License-Identifier: MIT
"""`controllers bench`: cases are made of the options, measured one by one, and written down."""
from __future__ import annotations

import argparse
import csv
import io
import json
import sys
import time
from collections.abc import Iterator

import controllers
from controllers.bench import SIZES, STENCILS, Case, Comparator, Problem, comparators_of, run_case
from controllers.bench.results import COLUMNS, as_json, rows
from controllers.cli import bench_apps, bench_streams
from controllers.cli.bench_devices import names_alone
from controllers.cli.bench_options import QUICK_SECONDS, SECONDS
from controllers.cli.files import check_targets
from controllers.cli.outcome import FAILED, USAGE, Failure
from controllers.cli.picture import check_format
from controllers.device import Device
from controllers.placement.placement import one_device
from hitmap.comm import Communicator
from hitmap.files import replacing

LAUNCHES = Problem("2d4", "float32", (64, 64))      # so small that a step is a launch


def command(options: argparse.Namespace, comm: Communicator) -> None:
    """Measure, print, write."""
    if comm.size > 1:
        raise Failure(USAGE, f"bench measures in one process, got {comm.size} ranks; start one")
    _check_files(options)
    if options.chunks is not None and options.what != "streams":
        raise Failure(USAGE, "--chunks is an option of bench streams; write streams before it")
    if options.what:
        {"apps": bench_apps, "streams": bench_streams}[options.what].command(options)
        return
    if options.apps:
        raise Failure(USAGE, "--apps is an option of bench apps; write apps before it")
    others = _others(options)
    cases: list[Case] = []
    for selector in names_alone(options.device):
        device = one_device(selector)
        for problem in _problems(options, device):
            cases.append(_measured(problem, selector, device, options, others))
            print(cases[-1].table() + "\n", flush=True)
    _write(options, cases)
    wrong = [f"{name} ({case.title})" for case in cases for name in case.wrong]
    if wrong:
        raise Failure(FAILED, f"wrong results: {', '.join(wrong)}")


def _check_files(options: argparse.Namespace) -> None:
    targets = {"--json": options.json, "--csv": options.csv, "--picture": options.picture}
    check_targets(targets, {f"--with {path}": path for path in options.others})
    if options.picture is not None:
        check_format(options.picture, "--picture")


def _others(options: argparse.Namespace) -> list[Comparator]:
    try:
        return [one for path in options.others for one in comparators_of(path)]
    except (OSError, ValueError) as error:
        raise Failure(USAGE, f"--with: {error}") from None


def _problems(options: argparse.Namespace, device: Device) -> Iterator[Problem]:
    kind = "quick" if options.quick else "cpu" if device.kind == "cpu" else "gpu"
    for dtype in options.dtypes:
        if dtype not in device.dtypes:
            raise Failure(USAGE, f"{device.name} does not compute in {dtype}; leave it out")
        for name in options.stencils:
            n_axes = STENCILS[name].n_axes
            extents = [one for one in options.sizes or SIZES[kind] if len(one) == n_axes]
            if not extents:
                raise Failure(USAGE, f"--sizes has none of {n_axes} axes for {name}; give one")
            yield from (Problem(name, dtype, extent) for extent in extents)
    if not options.sizes and LAUNCHES.stencil in options.stencils:
        yield LAUNCHES


def _measured(
    problem: Problem,
    selector: str,
    device: Device,
    options: argparse.Namespace,
    others: list[Comparator],
) -> Case:
    print(f"{problem} on {device.name} ...", file=sys.stderr, flush=True)
    seconds = options.seconds or (QUICK_SECONDS if options.quick else SECONDS)
    if problem == LAUNCHES:     # of interest is what a launch costs
        against = [name for name in options.against if name in ("cell", "hand-written")]
        return run_case(problem, selector, device, seconds, against)
    return run_case(problem, selector, device, seconds, options.against, others)


def _write(options: argparse.Namespace, cases: list[Case]) -> None:
    """The files, all of each or nothing."""
    if options.json is not None:
        date = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        with replacing(options.json) as temporary:
            data = as_json(cases, controllers.__version__, date)
            temporary.write_text(json.dumps(data, indent=1) + "\n", "utf-8")
    if options.csv is not None:
        text = io.StringIO()
        writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows(cases))
        with replacing(options.csv) as temporary:
            temporary.write_text(text.getvalue(), "utf-8")
    if options.picture is not None:
        from controllers.bench.picture import draw  # loads matplotlib

        draw(options.picture, cases)
