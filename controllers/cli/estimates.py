# SPDX-License-Identifier: MIT
"""`controllers estimates`: how long tasks took, and how well that could have been foreseen."""
from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from controllers.cli.outcome import FAILED, USAGE, Failure
from controllers.cli.picture import check_format
from controllers.estimates.estimates import VARIABLE, Estimates, estimates_folder
from controllers.estimates.hindsight import Hindsight, hindsights
from controllers.estimates.history import History
from controllers.estimates.task_key import TaskKey
from controllers.report.table import format_table
from hitmap.files import replacing

HEAD = ("task", "variant", "device", "sizes", "units", "executions", "last", "misjudged by")
_UNITS = (("days", 86400.0), ("h", 3600.0), ("min", 60.0), ("s", 1.0))


@dataclass(frozen=True)
class _Line:
    key: TaskKey
    history: History
    foreseen: list[Hindsight]

    @property
    def error(self) -> float | None:
        return median(one.error for one in self.foreseen) if self.foreseen else None


def command(options: argparse.Namespace) -> None:
    """List, draw, forget."""
    if options.plot is not None:
        check_format(options.plot)
    folder = estimates_folder()
    if folder is None:
        raise Failure(USAGE, f"no times are kept: {VARIABLE} is off; give it a folder, or unset it")
    estimates = Estimates(folder)
    lines = [
        _Line(key, history, hindsights(history))
        for key, history in estimates.all()
        if all(any(word in part for part in key.words) for word in options.words)
    ]
    if options.plot is not None:
        _draw(options.plot, lines)
    if options.json:
        print(json.dumps([*map(_as_dict, lines)]), flush=True)
    else:
        print(_text(lines, folder), flush=True)
    if options.forget:
        _forget(estimates, lines, options.json)


def _text(lines: Sequence[_Line], folder: Path) -> str:
    if not lines:
        return f"nothing is known in {folder}"
    return format_table(HEAD, [*map(_row, lines)], left=HEAD[:3])


def _row(line: _Line) -> tuple[str, ...]:
    cases = line.history.cases
    sizes = {case.size for case in cases}
    units = sorted({case.units for case in cases})
    age = time.time() - max(times.newest for times in cases.values())
    return (
        line.key.task, line.key.variant, line.key.place,
        _range(min(sizes), max(sizes)), ",".join(map(str, units)),
        str(sum(times.count for times in cases.values())), age_text(age),
        "-" if line.error is None else f"{line.error:.1%}",
    )  # fmt: skip


def _range(low: float, high: float) -> str:
    return f"{low:.6g}" if low == high else f"{low:.6g} to {high:.6g}"


def age_text(seconds: float) -> str:
    """In the largest unit of which it has two.

    >>> age_text(200.0), age_text(7000.0), age_text(500000.0), age_text(-5.0)
    ('3 min ago', '116 min ago', '5 days ago', 'now')
    """
    for unit, length in _UNITS:
        if seconds >= 2 * length:
            return f"{int(seconds / length)} {unit} ago"
    return "now"


def _as_dict(line: _Line) -> dict[str, object]:
    cases = [
        {
            **asdict(case), **asdict(times.work), "count": times.count,
            "seconds": median(times.seconds), "last": times.newest,
        }
        for case, times in sorted(line.history.cases.items(), key=lambda one: one[0])
    ]  # fmt: skip
    return {**asdict(line.key), "cases": cases, "error": line.error}


def _forget(estimates: Estimates, lines: Sequence[_Line], is_json: bool) -> None:
    try:
        for line in lines:
            estimates.forget(line.key)
    except OSError as error:
        raise Failure(FAILED, f"cannot forget: {error}; remove the file by hand") from None
    if lines and not is_json:
        print(f"forgotten: {len(lines)}", flush=True)


def _draw(path: Path, lines: Sequence[_Line]) -> None:
    """What sizes took over what was foreseen, both on logarithmic axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 6), layout="constrained")
    axes = figure.add_subplot()
    every = [one for line in lines for one in line.foreseen]
    ends = [seconds for one in every for seconds in (one.seconds, one.foreseen.seconds)]
    if not ends:
        raise Failure(USAGE, "--plot: no task has been executed with two sizes; execute more first")
    for line in lines:
        if line.foreseen:
            foreseen = [one.foreseen for one in line.foreseen]
            below = [one.seconds - one.least_s for one in foreseen]
            above = [one.most_s - one.seconds for one in foreseen]
            axes.errorbar(
                [one.seconds for one in foreseen], [one.seconds for one in line.foreseen],
                xerr=(below, above), fmt="o", markersize=4, linewidth=0.8, label=str(line.key),
            )  # fmt: skip
    axes.plot([min(ends), max(ends)], [min(ends), max(ends)], color="grey", linewidth=0.8)
    axes.set(xscale="log", yscale="log", xlabel="seconds foreseen by other sizes",
             ylabel="seconds measured, the median")  # fmt: skip
    axes.legend(fontsize="small")
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=150)
