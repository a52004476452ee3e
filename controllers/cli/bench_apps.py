# SPDX-License-Identifier: MIT
"""`controllers bench apps`: applications among the examples, on one device after the other."""
from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence

import controllers
from controllers.bench.applications import APPLICATIONS, Speed, run_application, speeds_table
from controllers.cli.bench_devices import names_alone
from controllers.cli.bench_options import AGAINST, QUICK_SECONDS, SECONDS, STENCILS
from controllers.cli.companions import folder
from controllers.cli.outcome import FAILED, USAGE, Failure
from controllers.device import Device
from controllers.placement.placement import one_device
from hitmap.files import replacing

Extent = tuple[int, ...]


def command(options: argparse.Namespace) -> None:
    """Measure, print, write; the files were checked before."""
    check_usual(options, "apps")
    speeds: list[Speed] = []
    left: list[str] = []
    for selector, device in _places(options.device):
        found: list[Speed] = []
        for name, extent in _wanted(options, device):
            print(f"{name} on {selector} ...", file=sys.stderr, flush=True)
            try:
                found.append(_measured(name, extent, selector, device, options))
            except (ImportError, RuntimeError, ValueError) as error:
                left.append(f"{name} is left out on {selector}: {error}")
        if found:
            print(f"{found[0].device}\n{speeds_table(found)}\n", flush=True)
        speeds += found
    _write(options, speeds)
    if left:
        raise Failure(FAILED, "; ".join(left))


def check_usual(options: argparse.Namespace, what: str) -> None:
    """What only stencils have is not given."""
    usual = {"stencils": [*STENCILS], "dtypes": ["float32"], "against": [*AGAINST], "csv": None}
    for name, value in {**usual, "others": []}.items():
        if getattr(options, name) != value:
            option = "with" if name == "others" else name
            raise Failure(USAGE, f"--{option} is for stencils; leave it out, or the word {what}")


def _places(wanted: Sequence[str]) -> Iterator[tuple[str, Device]]:
    """What computes, and the device whose copy rate counts: the whole one of parts together."""
    for selector in wanted or [""]:
        whole, _, counts = selector.partition("/")
        if "," in counts:
            yield selector, one_device(names_alone([whole])[0])
        else:
            for name in names_alone([selector] if selector else []):
                yield name, one_device(name)


def _wanted(options: argparse.Namespace, device: Device) -> Iterator[tuple[str, Extent]]:
    """Names and extents."""
    kind = "quick" if options.quick else "cpu" if device.kind == "cpu" else "gpu"
    for name in options.apps or APPLICATIONS:
        usual: Extent = getattr(APPLICATIONS[name], kind)
        extents = [one for one in options.sizes or [usual] if len(one) == len(usual)]
        if not extents:
            raise Failure(USAGE, f"--sizes has none of {len(usual)} axes for {name}; give one")
        yield from ((name, extent) for extent in extents)


def _measured(
    name: str, extent: Extent, selector: str, device: Device, options: argparse.Namespace
) -> Speed:
    seconds = options.seconds or (QUICK_SECONDS if options.quick else SECONDS)
    return run_application(name, folder("examples"), extent, selector, device, seconds)


def _write(options: argparse.Namespace, speeds: Sequence[Speed]) -> None:
    """The files, all of each or nothing."""
    if options.json is not None:
        found = [speed.as_dict() for speed in speeds]
        date = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        data = {"version": controllers.__version__, "date": date, "applications": found}
        with replacing(options.json) as temporary:
            temporary.write_text(json.dumps(data, indent=1) + "\n", "utf-8")
    if options.picture is not None and speeds:
        from controllers.bench.application_picture import draw  # loads matplotlib

        draw(options.picture, speeds)
