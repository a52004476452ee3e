# SPDX-License-Identifier: MIT
"""Devices that compute as the reference does, and say that this took as long as a test likes.

Nothing depends on how fast the machine is.  `seconds_per_cell` may change while steps run.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from controllers.device import Device
from controllers.device.device import WITHOUT_OPENCL, reference_device
from controllers.device.event import Command, Event, HostEvent
from controllers.executor.executor import Folding
from controllers.executor.reference import ReferenceExecutor
from controllers.memory.tile import Tile
from controllers.placement.opening import OPEN
from controllers.program.program import Program
from controllers.program.surroundings import Surroundings
from controllers.program.sweep import Sweep
from controllers.settings.execution import Execution
from hitmap import Shape


class TimedExecutor(ReferenceExecutor):
    """`seconds_per_cell`, by the kind of the device."""

    seconds_per_cell: Mapping[str, float] = {}

    def launch_command(
        self, program: Program, sweep: Sweep, reads: Mapping[str, Tile],
        writes: Mapping[str, Tile], over: Shape, around: Surroundings,
        folding: Folding | None = None, part: int = 0,
    ) -> Command:  # fmt: skip
        launch = super().launch_command(program, sweep, reads, writes, over, around, folding, part)

        def timed(wait_for: Sequence[Event] | None = None) -> Event:
            start = launch(wait_for).profile.start
            seconds = TimedExecutor.seconds_per_cell[self.device.kind] * over.n_cells
            return HostEvent(start, start + round(seconds * 1e9))

        return timed


def timed_devices(speeds: Mapping[str, float]) -> None:
    """From now on these words select devices, each with its seconds per cell."""
    TimedExecutor.seconds_per_cell = dict(speeds)
    for kind in speeds:
        WITHOUT_OPENCL[kind] = lambda kind=kind: _device(kind)  # type: ignore[misc]
        OPEN[kind] = _opened


def without_timed_devices() -> None:
    """They are forgotten."""
    for kind in TimedExecutor.seconds_per_cell:
        del WITHOUT_OPENCL[kind], OPEN[kind]
    TimedExecutor.seconds_per_cell = {}


def _device(kind: Any) -> Device:
    return replace(reference_device(), name=f"a {kind} one", kind=kind)


def _opened(device: Device, program: Program, execution: Execution) -> TimedExecutor:
    return TimedExecutor(device, memory_cap=execution.memory_cap)
