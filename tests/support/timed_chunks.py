# SPDX-License-Identifier: MIT
"""Chunks on devices that are made up: how long passes take, by the links and kernels they have.

Nothing is known here of how sizes are searched: each copy and launch of a pass is timed.
"""
from __future__ import annotations

import random
from dataclasses import dataclass

from controllers.plan.chunks.pipeline import Kind, Pipeline

SPANS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
PASSES = 4


@dataclass
class Machine:
    """A device and a field.  Times in seconds, rates of rows.

    rows: of the field.  room: rows that the device has room for.  up_s, down_s, cell_s: of a row,
    over the link and in a launch.  copy_s, launch_s: of each, beside its rows.  reach: rows that a
    step reads around.  shared: how much longer a copy takes while the other way is busy.
    """

    rows: int
    room: int
    up_s: float
    down_s: float
    cell_s: float
    copy_s: float
    launch_s: float
    reach: int
    is_skewed: bool
    shared: float
    kind: Kind = "neither"      # of what was timed last

    def least(self, span: int, slots: int) -> int | None:
        """By COSP's equation 1."""
        if self.is_skewed:
            parcels = max(1, slots // 2)
            rows = (2 * self.room - 2 * (span + 1) * self.reach) // (2 + 2 * parcels)
        else:
            rows = self.room // slots - 2 * span * self.reach
        return -(-self.rows // rows) if rows >= 1 else None

    def step_s(self, span: int, chunks: int, slots: int) -> float:
        """Of many passes in a row, each copy and launch after what it waits for."""
        around = 0 if self.is_skewed else 2 * span * self.reach
        rows = self.rows / chunks
        up_s = (self.copy_s + (rows + around) * self.up_s) * self.shared
        down_s = (self.copy_s + rows * self.down_s) * self.shared
        kernels_s = span * (self.launch_s + (rows + around / 2) * self.cell_s)
        if self.is_skewed:      # rows that are kept are copied within the device
            kernels_s += 2 * self.launch_s + (rows + 2 * span * self.reach) * self.cell_s / 2
        ends: list[tuple[float, float, float]] = []
        for chunk in range(PASSES * chunks):
            up, computed, down = ends[-1] if ends else (0.0, 0.0, 0.0)
            back = max(1, slots // 2) if self.is_skewed else slots
            before = ends[chunk - back] if chunk >= back else (0.0, 0.0, 0.0)
            # a parcel is free once it was taken from, a slot once what it held has left
            up = max(up, before[1] if self.is_skewed else before[2]) + up_s
            computed = max(computed, up, before[2]) + kernels_s
            ends.append((up, computed, max(down, computed) + down_s))
        self.kind = Pipeline(up_s, down_s, kernels_s).kind
        return (ends[-1][1] - ends[chunks - 1][1]) / (PASSES - 1) / span


def made_machine(seed: int) -> Machine:
    """One of many: links and kernels that are slow or fast beside each other."""
    rng = random.Random(seed)
    rows = rng.randint(2_000, 50_000)
    up_s = 10 ** rng.uniform(-7, -5)
    return Machine(
        rows, int(rows / rng.uniform(2, 20)), up_s, up_s * rng.uniform(0.5, 2),
        up_s * 10 ** rng.uniform(-2.5, 0.5), 10 ** rng.uniform(-6, -4), 10 ** rng.uniform(-6, -5),
        rng.choice((1, 1, 2, 4)), bool(seed % 2), rng.uniform(1, 1.3),
    )  # fmt: skip
