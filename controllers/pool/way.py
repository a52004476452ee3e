# SPDX-License-Identifier: MIT
"""A way to do a task: one of its variants, in one of the pool's lanes."""
from __future__ import annotations

import platform
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from controllers.estimates.task_key import TaskKey, Work
from controllers.language.each import Each
from controllers.pool.budget import Claim
from controllers.pool.data import Touch
from controllers.pool.executions import Executions
from controllers.pool.lane import Lane
from controllers.pool.variant import Variant
from controllers.program.items import items_of

Taken: TypeAlias = Any  # of controllers.pool.share, which knows of ways


class Way:
    """A variant in a lane, and under which key its times are kept.

    among: the lanes of the devices of which a function is given some.
    tried: whether the forecast has sent a job there already.  executions: what it knows of it.
    choices: of how many cores and which of those lanes it was last asked about, and as how many
        units these count.  now: what a kernel gets there, when it was asked for.
    """

    __slots__ = (
        "variant", "lane", "key", "tried", "among", "claim", "name", "executions", "choices", "now"
    )  # fmt: skip

    def __init__(
        self, task: str, variant: Variant, lane: Lane, among: tuple[Lane, ...] = ()
    ) -> None:
        self.variant, self.lane, self.tried, self.among = variant, lane, False, among
        self.name = f"{variant.name} on {lane.name}"
        self.executions: Executions | None = None
        self.choices: list[tuple[int, tuple[Lane, ...], int]] = []
        self.now: Taken | None = None
        if lane.device is not None:
            self.key = TaskKey.of(task, variant.name, lane.device)
            self.claim = Claim(0, 0, (lane,), 1, 1)
        else:
            names = sorted({one.device.name for one in among if one.device is not None})
            host = with_devices(f"the host {platform.node()}", names)
            self.key = TaskKey(task, variant.name, host, f"NumPy {np.__version__}")
            self.claim = Claim(variant.least, variant.most, among, *variant.devices)

    def units(self, cores: int, n_devices: int) -> int:
        """What an execution there counts as, for estimates: devices that a function has, or cores.
        """
        if self.among:
            return max(n_devices, self.variant.devices[0])
        return cores if self.lane.device is None else max(1, self.lane.cores)

    def work(
        self, touches: Sequence[Touch], rows: tuple[int, int] | None = None
    ) -> Work | None:
        """What a kernel reads and writes of arrays, and what it does, where it is traced.

        A function of the host says nothing of it.  rows: of a part of a task.
        """
        if self.lane.device is None:
            return None
        nbytes = sum(
            one.box.n_cells * one.datum.dtype.itemsize * (one.reads + one.writes)
            for one in touches
        )
        body = self.variant.body
        flops = _flops(body, touches, rows) if isinstance(body, Each) else 0
        return Work(float(nbytes), float(flops))

    def words(self, cores: int, lanes: Sequence[Lane]) -> str:
        """It with so many cores, and the devices of these lanes, for people."""
        where = with_devices(self.name, [lane.name for lane in lanes]) if lanes else self.name
        return f"{where} x {cores}" if cores > 1 else where


def _flops(
    function: Each, touches: Sequence[Touch], rows: tuple[int, int] | None
) -> int:
    """Arithmetic operations of a function of items; 0 for what it cannot be traced with."""
    named = {one.name: one for one in touches}
    try:
        made = function.lowered({name: named[name].kind for name in function.parameters.uses})
        items = items_of(made.program.stages[0])
        assert items is not None, "a program of items"
        return items.flops * (items.count if rows is None else rows[1] - rows[0])
    except Exception:   # a user's: it is raised where the task is done, too, which tells of it
        return 0


def with_devices(where: str, names: Sequence[str]) -> str:
    """Where functions are done, and on which devices.

    >>> with_devices("the host", []), with_devices("the host", ["a GPU", "another"])
    ('the host', 'the host with a GPU, another')
    """
    return f"{where} with {', '.join(names)}" if names else where
