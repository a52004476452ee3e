# SPDX-License-Identifier: MIT
"""`controllers devices`: what there is to run on, and how to name it."""
from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

from controllers.device import Device
from controllers.device.listing import devices
from controllers.report.table import format_table
from hitmap.comm import Communicator

HELP = "list the devices of this host"
DESCRIPTION = (
    "List the devices of this host (with MPI, of the host of rank 0), each physical device once. "
    "The first column is a name for --device; a part of the name, vendor or platform will do too."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    parser.add_argument("--json", action="store_true", help="print one line of JSON, a list")


def command(options: argparse.Namespace, comm: Communicator) -> None:
    """Print the devices, on rank 0."""
    if comm.rank != 0:
        return
    found = devices()
    listed = list(zip(selectors(found), found))
    if options.json:
        print(json.dumps([_as_dict(selector, device) for selector, device in listed]), flush=True)
        return
    head = ("selector", "name", "units", "memory", "dtypes", "driver")
    rows = [
        (
            selector,
            device.name,
            str(device.compute_units),
            f"{device.memory_bytes / 2**30:.1f} GiB",
            " ".join(device.dtypes),
            f"{device.platform} {device.version}",
        )
        for selector, device in listed
    ]
    print(format_table(head, rows, left=("selector", "name", "dtypes", "driver")), flush=True)


def selectors(found: Sequence[Device]) -> list[str]:
    """For each device its kind, with its position where there are several of the kind."""
    kinds = [device.kind for device in found]
    return [
        f"{kind}:{kinds[:number].count(kind)}" if kinds.count(kind) > 1 else kind
        for number, kind in enumerate(kinds)
    ]


def _as_dict(selector: str, device: Device) -> dict[str, object]:
    return {
        "selector": selector,
        "name": device.name,
        "kind": device.kind,
        "vendor": device.vendor,
        "platform": device.platform,
        "version": device.version,
        "compute_units": device.compute_units,
        "memory_bytes": device.memory_bytes,
        "max_allocation_bytes": device.max_allocation_bytes,
        "dtypes": list(device.dtypes),
        "shares_host": device.shares_host,
    }
