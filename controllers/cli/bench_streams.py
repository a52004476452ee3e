# SPDX-License-Identifier: MIT
"""`controllers bench streams`: COSP's benchmarks, a quarter of whose data fits on the device."""
from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence

import controllers
from controllers.bench.stream_cases import STREAMS
from controllers.bench.streams import StreamSpeed, run_stream, streams_table
from controllers.cli.bench_apps import check_usual
from controllers.cli.bench_devices import names_alone
from controllers.cli.bench_options import QUICK_SECONDS, STREAM_SECONDS
from controllers.cli.companions import folder
from controllers.cli.outcome import FAILED, USAGE, Failure
from controllers.placement.placement import one_device
from hitmap.files import replacing


def command(options: argparse.Namespace) -> None:
    """Measure, print, write; the files were checked before."""
    check_usual(options, "streams")
    if options.apps or options.sizes or options.picture is not None:
        raise Failure(USAGE, "bench streams takes --device, --seconds, --chunks, --quick and "
                      "--json alone")  # fmt: skip
    speeds: list[StreamSpeed] = []
    left: list[str] = []
    for selector in names_alone(options.device):
        device = one_device(selector)
        kind = "quick" if options.quick else "cpu" if device.kind == "cpu" else "gpu"
        seconds = options.seconds or (QUICK_SECONDS if options.quick else STREAM_SECONDS)
        found: list[StreamSpeed] = []
        for name in STREAMS:
            print(f"{name} on {selector} ...", file=sys.stderr, flush=True)
            try:
                found.append(run_stream(
                    name, folder("examples"), kind, selector, device.name, seconds, options.chunks
                ))  # fmt: skip
            except (MemoryError, RuntimeError, ValueError) as error:
                left.append(f"{name} is left out on {selector}: {error}")
        if found:
            print(f"{device.name}\n{streams_table(found)}\n", flush=True)
        speeds += found
    _write(options, speeds)
    if left:
        raise Failure(FAILED, "; ".join(left))


def _write(options: argparse.Namespace, speeds: Sequence[StreamSpeed]) -> None:
    if options.json is not None:
        date = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        data = {"version": controllers.__version__, "date": date,
                "streams": [one.as_dict() for one in speeds]}  # fmt: skip
        with replacing(options.json) as temporary:
            temporary.write_text(json.dumps(data, indent=1) + "\n", "utf-8")
