# SPDX-License-Identifier: MIT
"""Figures as pictures, by matplotlib: per device a bar chart of speeds, and a roofline.

The roof is the device's own copy rate.  A point above it computes several steps for each byte that
it moves.
"""
from __future__ import annotations

from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from controllers.bench.results import Case, Figure
from hitmap.files import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MIN_CELLS = 10_000      # smaller fields show what a launch costs, not how fast a kernel is
MARKERS = "osD^vP*X"


def draw(path: Path, cases: Sequence[Case]) -> None:
    """Write a picture with a row per device."""
    from matplotlib.figure import Figure as Sheet

    cases = [case for case in cases if prod(case.extent) >= MIN_CELLS] or cases
    devices = [*dict.fromkeys(case.device for case in cases)]
    width = 7.5 + 0.9 * max(sum(case.device == device for case in cases) for device in devices)
    sheet = Sheet(figsize=(width, 5.6 * len(devices)), layout="constrained")
    grid = sheet.subplots(len(devices), 2, squeeze=False)
    for (bars, roofline), device in zip(grid, devices):
        own = [case for case in cases if case.device == device]
        draw_bars(bars, own)
        draw_roofline(roofline, own)
    with replacing(path) as temporary:
        sheet.savefig(temporary, dpi=130, format=path.suffix[1:].lower())


def draw_bars(axes: Axes, cases: Sequence[Case]) -> None:
    """Cell-steps per second, a group of bars per case; the line is one sweep at the copy rate."""
    names = contestants(cases)
    width = 0.8 / len(names)
    for number, name in enumerate(names):
        found = [(at, one) for at, case in enumerate(cases) if (one := figure_of(case, name))]
        axes.bar(
            [at + (number - (len(names) - 1) / 2) * width for at, _ in found],
            [one.cell_steps_per_s / 1e9 for _, one in found],
            width, label=name, color=f"C{number}",
        )  # fmt: skip
    for at, case in enumerate(cases):
        sweep = case.copy_bytes_per_s / case.bytes_per_cell / 1e9
        label = "one sweep at the copy rate" if at == 0 else "_"
        axes.hlines(sweep, at - 0.45, at + 0.45, colors="black", linestyles=":", label=label)
    titles = [case.title.replace(" x ", "x").replace(" ", "\n") for case in cases]
    axes.set_xticks(range(len(cases)), titles, fontsize=7)
    axes.set(ylabel="10$^9$ cell-steps per second", title=cases[0].device)
    legend_below(axes)


def draw_roofline(axes: Axes, cases: Sequence[Case]) -> None:
    """Operations per second over operations per byte of a single sweep."""
    intensities = [case.flops_per_cell / case.bytes_per_cell for case in cases]
    ends = np.array([min(intensities) / 2, max(intensities) * 2])
    rates = [case.copy_bytes_per_s for case in cases]
    axes.fill_between(
        ends, ends * min(rates) / 1e9, ends * max(rates) / 1e9, color="lightgrey",
        label="copy rate, from the slowest to the fastest case",
    )  # fmt: skip
    axes.plot(ends, ends * max(rates) / 1e9, color="black", linewidth=1)
    for number, name in enumerate(contestants(cases)):
        found = [(x, case, one) for x, case in zip(intensities, cases)
                 if (one := figure_of(case, name))]  # fmt: skip
        axes.plot(
            [x for x, _, _ in found],
            [one.cell_steps_per_s * case.flops_per_cell / 1e9 for _, case, one in found],
            MARKERS[number % len(MARKERS)], color=f"C{number}", markersize=5, label=name,
        )  # fmt: skip
    for x, case in zip(intensities, cases):
        best = max(figure.cell_steps_per_s for figure in case.figures)
        axes.annotate(
            case.stencil, (x, best * case.flops_per_cell / 1e9), fontsize=7,
            xytext=(4, 4), textcoords="offset points",
        )  # fmt: skip
    axes.set(xscale="log", yscale="log", title="roofline",
             xlabel="operations per byte of a single sweep", ylabel="10$^9$ operations per second")
    legend_below(axes)


def legend_below(axes: Axes) -> None:
    """The legend, where it hides no figure: under the labels of the axis."""
    axes.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=2)


def contestants(cases: Sequence[Case]) -> list[str]:
    """The names of all, in order."""
    return [*dict.fromkeys(figure.contestant for case in cases for figure in case.figures)]


def figure_of(case: Case, contestant: str) -> Figure | None:
    """What it reached in a case; None where it did not take part."""
    return next((one for one in case.figures if one.contestant == contestant), None)
