# SPDX-License-Identifier: MIT
"""Of a run in which a device becomes slower: when it was fast again, and a picture of its shares.

Rows are those of `measure_balance.py --change`: after which `step`, the `shares` of all places, the
`ms` of a step since the row before, and how many times the last device was `slow`.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any


def recovery(
    rows: Sequence[Mapping[str, Any]], first: int, n: int, decisions: Sequence[int]
) -> str:
    """After how many windows it is as fast as it gets, from row `first` on, where it changes."""
    phase, begin = rows[first : first + n], rows[first - 1]["step"]
    n = len(phase)
    usual = median(row["ms"] for row in phase[-(-2 * n // 3) :])
    smooth = [median(row["ms"] for row in phase[at : at + 3]) for at in range(n)]
    at = next(at for at in range(n) if smooth[at] <= usual / 0.95)
    back = phase[at - 1]["step"] if at else begin
    windows = sum(begin < step <= back for step in decisions)
    return (
        f"from step {begin} on x {phase[0]['slow']}: at 0.95 of the new speed, {usual:.3f} ms a "
        f"step, after {windows} windows, {back - begin} steps (asked: at most 5 windows); "
        f"share {phase[-1]['shares'][-1]:.1%} (right: {1 / (1 + phase[0]['slow']):.1%})"
    )


def draw(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Shares and milliseconds per step over the steps; grey while the last part is slower."""
    from matplotlib.figure import Figure

    sheet = Figure(figsize=(7.5, 4.5), layout="constrained")
    upper, lower = sheet.subplots(2, 1, sharex=True)
    steps = [0, *(row["step"] for row in rows)]
    for number in range(len(rows[0]["shares"])):
        shares = [100 * row["shares"][number] for row in rows]
        upper.stairs(shares, steps, baseline=None, label=f"part {number + 1}", linewidth=2)
    lower.stairs([row["ms"] for row in rows], steps, baseline=None, color="black")
    slow = [(low, row["step"]) for low, row in zip(steps, rows) if row["slow"] > 1]
    for axes in (upper, lower):
        axes.axvspan(slow[0][0], slow[-1][1], color="0.9", zorder=0)
        axes.set_ylim(bottom=0)
    upper.set(ylabel="share in %")
    upper.legend(loc="lower left")
    lower.set(ylabel="ms per step", xlabel="steps; grey: part 2 takes twice as long")
    sheet.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
