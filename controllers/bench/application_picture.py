# SPDX-License-Identifier: MIT
"""Applications as a picture, by matplotlib: a roofline for each device, under its copy rate."""
from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from controllers.bench.applications import Speed
from controllers.bench.picture import MARKERS
from hitmap.files import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw(path: Path, speeds: Sequence[Speed]) -> None:
    """Write a picture with a roofline per device."""
    from matplotlib.figure import Figure

    devices = [*dict.fromkeys(one.device for one in speeds)]
    sheet = Figure(figsize=(7.5, 5 * len(devices)), layout="constrained")
    for axes, device in zip(sheet.subplots(len(devices), squeeze=False)[:, 0], devices):
        draw_roofline(axes, [one for one in speeds if one.device == device])
    with replacing(path) as temporary:
        sheet.savefig(temporary, dpi=130, format=path.suffix[1:].lower())


def draw_roofline(axes: Axes, speeds: Sequence[Speed]) -> None:
    """Operations per second over operations per byte that a step needs."""
    intensity = [one.flops_per_cell / one.bytes_per_cell for one in speeds]
    rates = [one.copy_bytes_per_s / 1e9 for one in speeds]
    ends = np.array([min(intensity) / 2, max(intensity) * 2])
    axes.fill_between(
        ends, ends * min(rates), ends * max(rates), color="lightgrey",
        label="copy rate, from the slowest to the fastest case",
    )  # fmt: skip
    for number, (x, one) in enumerate(zip(intensity, speeds)):
        label = f"{one.application} {'x'.join(map(str, one.extent))}"
        axes.plot(x, one.flops_per_s / 1e9, MARKERS[number % len(MARKERS)], label=label)
    axes.set(xscale="log", yscale="log", title=speeds[0].device,
             xlabel="operations per byte, each field read and written once",
             ylabel="10$^9$ operations per second")
    axes.legend(fontsize=7)
