# SPDX-License-Identifier: MIT
"""The launch of a user's kernel by a `Controller`, under inspection.

What it may touch is what it was given: the selections of its tiles, as the roles of its parameters
say.  The launch waits for all that uses these tiles, and is complete when it returns.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from controllers.check.executor import CheckedExecutor
from controllers.check.finding import CheckError, Complaint
from controllers.check.inspection import Inspection, Run, TileUse
from controllers.check.memory import TileMemory
from controllers.controller.access import Access
from controllers.controller.tied_tile import Cells
from controllers.controller.user_launch import Argument, UserLaunch
from controllers.device.event import Command, Event, settle_event
from controllers.executor.opencl import OpenCLExecutor
from controllers.kernel.variant import Kernel
from hitmap.shape import Shape


class CheckedLaunches:
    """Inspects the launches of one controller; `rank` is for messages."""

    def __init__(self, executor: CheckedExecutor, rank: int) -> None:
        self._executor, self._rank = executor, rank
        self._count = 0
        self._built: dict[object, UserLaunch] = {}

    def build(self, kernel: Kernel, n_axes: int, grouped: bool) -> UserLaunch:
        """`kernel` with accessors that look, where it compiles with them."""
        return self._executor.looking(
            lambda: UserLaunch(self._executor, kernel, n_axes, grouped=grouped)
        )

    def command(
        self,
        forward: Command,
        kernel: Kernel,
        over: Shape,
        arguments: Mapping[str, Argument],
        accesses: Sequence[Access],
        grouped: bool,
    ) -> Command:
        """The launch `forward`, inspected when it is called; raises `CheckError`.

        Waits until nobody uses its tiles.
        """
        _settle(accesses)
        uses = _uses(self._executor, accesses, arguments)
        runs = [Run(0, lambda: forward(None)), Run(1, lambda: forward(None))]
        if not grouped and not self._executor.simulated:
            back = self._reversed(kernel, over.n_axes).command(
                over, arguments, kernel.scalars, None
            )
            runs.append(Run(0, lambda: back(None), reversed=True))
        inspection = Inspection(
            kernel.name, uses, runs, lambda: self._executor.heard(kernel.name, over, uses)
        )

        def command(wait_for: Sequence[Event] | None = None) -> Event:
            for event in wait_for or ():
                event.wait()
            self._executor.wait()
            event, complaint = inspection.run([None for _ in uses])
            complaint = complaint or _new_nan(kernel.name, uses, inspection)
            self._count += 1
            if complaint is not None:
                raise CheckError(complaint, self._rank, self._count - 1)
            return event

        return command

    def _reversed(self, kernel: Kernel, n_axes: int) -> UserLaunch:
        key = (kernel.name, kernel.variants, tuple(sorted(kernel.roles.items())), n_axes)
        if key not in self._built:
            with self._executor.reversed():
                self._built[key] = self.build(kernel, n_axes, False)
        return self._built[key]


def launches_of(executor: OpenCLExecutor, rank: int) -> CheckedLaunches | None:
    """What inspects the launches of `executor`; None where they are not to be."""
    return CheckedLaunches(executor, rank) if isinstance(executor, CheckedExecutor) else None


def _settle(accesses: Sequence[Access]) -> None:
    """Block until nobody uses the tiles; whether their users failed is seen by what depends."""
    for access in accesses:
        for event in access.cells.tile.coherence.pending():
            settle_event(event)     # errors are raised by the launch, or by `Controller.wait`


def _uses(
    executor: CheckedExecutor, accesses: Sequence[Access], arguments: Mapping[str, Argument]
) -> list[TileUse]:
    """Each tile once, with all that the launch may do to it."""
    tiles: dict[int, list[Access]] = {}
    for access in accesses:
        tiles.setdefault(id(access.cells.tile), []).append(access)
    uses = []
    for mine in tiles.values():
        tile = mine[0].cells.tile
        assert tile.memory is not None, "a tile with an image on the device"
        memory = TileMemory(executor, tile.memory)
        name = next(n for n, a in arguments.items() if isinstance(a, Cells) and a.tile is tile)
        reads = memory.mask([a.cells.box for a in mine if a.reads])
        writes = memory.mask([a.cells.box for a in mine if a.writes])
        uses.append(TileUse(name, name, memory, reads, writes))
    return uses


def _new_nan(kernel: str, uses: Sequence[TileUse], inspection: Inspection) -> Complaint | None:
    """NaN in what was written, though there was none in anything that could be read."""
    floats = [
        (use, before, after)
        for use, before, after in zip(uses, inspection.before, inspection.after)
        if before.dtype.kind == "f"
    ]
    if any(np.isnan(before[use.reads]).any() for use, before, _ in floats):
        return None
    for use, _, after in floats:
        new = np.isnan(after) & use.writes
        if new.any():
            cell = use.memory.cell(int(np.argmax(new)))
            what = f"kernel {kernel!r} gives cell {cell} of {use.name} NaN, though it reads none"
            return Complaint("nan", what, use.field, cell)
    return None
