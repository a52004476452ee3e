# SPDX-License-Identifier: MIT
"""`controllers devices`: what there is to run on, how to name it, and who uses it."""
from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence

import controllers.arbiter  # what names devices is loaded when it is asked for
from controllers.arbiter import Arbiter, Holder
from controllers.device import Device
from controllers.device.listing import devices
from controllers.device.naming import selectors
from controllers.report.table import format_table
from hitmap.comm import Communicator

HELP = "list the devices of this host"
DESCRIPTION = (
    "List the devices of this host (with MPI, of the host of rank 0), each physical device once. "
    "The first column is a name for --device; a part of the name, vendor or platform will do too. "
    "Then the processes of this user that use or hold devices and cores, as the arbiter knows them."
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
    holders = _holders()
    if options.json:
        rows = [_as_dict(selector, device, holders) for selector, device in listed]
        print(json.dumps(rows), flush=True)
        return
    head = ("selector", "name", "units", "memory", "dtypes", "driver")
    table = [
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
    print(format_table(head, table, left=("selector", "name", "dtypes", "driver")), flush=True)
    if holders:
        print(f"\n{holders_table(holders)}", flush=True)


def holders_table(holders: Sequence[Holder]) -> str:
    """Which process uses or holds which units, for how many seconds, and for what."""
    words = ("units", "state", "for what", "command")
    rows = [
        (
            ", ".join(one.units) or "all",
            one.how,
            one.what,
            one.command,
            str(one.pid),
            f"{max(0.0, time.time() - one.since):.0f} s",
        )
        for one in holders
    ]
    return format_table((*words, "process", "for"), rows, left=words)


def _holders() -> list[Holder]:
    """Who uses what; nobody, with a warning, where the arbiter's folder cannot be used."""
    try:
        with Arbiter() as arbiter:
            return arbiter.holders()
    except OSError as error:
        print(f"warning: who uses devices is not known: {error}", file=sys.stderr)
        return []


def _as_dict(selector: str, device: Device, holders: Sequence[Holder]) -> dict[str, object]:
    unit = controllers.arbiter.unit_of(device)
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
        "processes": [
            {"pid": one.pid, "state": one.how, "since": one.since, "command": one.command}
            for one in holders
            if unit in one.units or not one.units
        ],
    }
