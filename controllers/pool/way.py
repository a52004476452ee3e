# SPDX-License-Identifier: MIT
"""A way to do a task: one of its variants, in one of the pool's lanes."""
from __future__ import annotations

import platform

import numpy as np

from controllers.estimates.task_key import TaskKey
from controllers.pool.lane import Lane
from controllers.pool.task import Variant


class Way:
    """A variant in a lane, and under which key its times are kept.

    tried: whether the forecast has sent a job there already.
    """

    __slots__ = ("variant", "lane", "key", "tried")

    def __init__(self, task: str, variant: Variant, lane: Lane) -> None:
        self.variant, self.lane, self.tried = variant, lane, False
        if lane.device is not None:
            self.key = TaskKey.of(task, variant.name, lane.device)
        else:
            host = f"the host {platform.node()}"
            self.key = TaskKey(task, variant.name, host, f"NumPy {np.__version__}")

    def __str__(self) -> str:
        return f"{self.variant.name} on {self.lane.name}"
