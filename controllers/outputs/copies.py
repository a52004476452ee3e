# SPDX-License-Identifier: MIT
"""Copies of the cells of moments, which stay as they are while steps go on.

Cells in the host's memory are copied there.  Those of devices with memory of their own are copied
within it, and leave it beside the steps; or else, without room for that, before them.
"""
from __future__ import annotations

from collections.abc import Sequence

from controllers.engine import Engine
from controllers.executor.opencl import OpenCLExecutor
from controllers.executor.snapshots import Snapshots
from controllers.memory.buffers import Buffers
from controllers.outputs.variable import Part, Variable
from hitmap.layout import Layout
from hitmap.shape import Shape


class Copies:
    """Those of one series; memory is used again until it is cleared."""

    def __init__(self) -> None:
        self._buffers = Buffers()
        self._snapshots: dict[OpenCLExecutor, Snapshots] = {}
        self._layout: Layout | None = None      # of what was taken last

    def taken(self, variables: Sequence[Variable], engine: Engine) -> list[Part]:
        """All cells of variables that the places of this rank own, as they are now.

        Tiles may change when this returns; copies may be on their way to the host.
        """
        if engine.plan.layout is not self._layout:
            for snapshots in self._snapshots.values():
                snapshots.drop()        # cells lie elsewhere now
            self._layout = engine.plan.layout
        found = [
            self._leaving(one, engine, place, box)
            or one.part(engine, place, box).copied(self._buffers)
            for place in engine.executors
            for one in variables
            for box in [one.owned(engine)[place]] if not box.empty
        ]  # fmt: skip
        for snapshots in self._snapshots.values():
            snapshots.settle()
        return found

    def clear(self) -> None:
        """Give back all memory; none of the copies is in use."""
        for snapshots in self._snapshots.values():
            snapshots.close()
        self._snapshots.clear()
        self._buffers.clear()

    def _leaving(self, one: Variable, engine: Engine, place: int, box: Shape) -> Part | None:
        """A copy that leaves its device beside the steps; None where it cannot."""
        tile, executor = engine.newest(one.field, place), engine.executors[place]
        if tile.host is not None or not isinstance(executor, OpenCLExecutor):
            return None
        if executor not in self._snapshots:
            self._snapshots[executor] = Snapshots(executor)
        snapshots = self._snapshots[executor]
        found = snapshots.take(tile, one.lies(tile, box))
        if found is None:
            return None
        cells, arrival = found
        return Part(one, one.kept(box), cells, arrival, snapshots.buffers)
