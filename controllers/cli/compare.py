# SPDX-License-Identifier: MIT
"""`controllers compare`: what differs between two results, read by parts."""
from __future__ import annotations

import argparse
import json
from itertools import takewhile
from pathlib import Path

from controllers.cli.companions import show
from controllers.cli.files import reason
from controllers.cli.outcome import FAILED, USAGE, Failure
from controllers.contents.comparison import Comparison, Difference
from controllers.contents.content import Content
from controllers.contents.opening import opened

MOST = 20       # differences that are listed


def command(options: argparse.Namespace) -> None:
    """Say what differs; `Failure` where anything does."""
    one, other = _opened(options.one), _opened(options.other)
    try:
        comparison = Comparison(one, other, options.field or ())
        found = comparison.differences()
        first = next(found, None)
        every = [] if first is None else [first, *(
            found if options.all
            else takewhile(lambda later: later.instant == first.instant, found)
        )]  # fmt: skip
    except (OSError, ValueError) as error:
        raise Failure(
            USAGE, f"{options.one} and {options.other} cannot be compared: {reason(error)}"
        ) from None
    told = _as_dict(comparison, every) if options.json else _text(comparison, every, options.all)
    show(told)
    if every:
        raise Failure(FAILED, f"{options.one} and {options.other} differ")


def _opened(path: Path) -> Content:
    try:
        return opened(path)
    except (ImportError, OSError, ValueError) as error:
        raise Failure(USAGE, f"{path}: {reason(error)}") from None


def _as_dict(comparison: Comparison, found: list[Difference]) -> str:
    return json.dumps({
        "same": not found, "fields": [*comparison.fields], "steps": len(comparison.steps),
        "alone": comparison.alone, "differences": [one.as_dict() for one in found],
    })  # fmt: skip


def _text(comparison: Comparison, found: list[Difference], is_all: bool) -> str:
    count = len(comparison.steps)
    what = f"{', '.join(comparison.fields)} at {count} step{'s' * (count != 1)}"
    lines = [*map(str, found[:MOST])]
    if len(found) > MOST:
        lines.append(f"... {len(found) - MOST} more")
    if not found:
        lines.append(f"the same bits: {what}")
    elif not is_all and count > 1:
        lines.append(f"compared: {what}, to the first that differs")
    return "\n".join([*lines, *comparison.alone])
