# SPDX-License-Identifier: MIT
"""A device that is slower than it is: its launches are issued several times, with the same bits."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pyopencl as cl

from controllers.device import Device, choose, find_devices
from controllers.device.event import AllOf, Command, Event
from controllers.executor import transfer
from controllers.executor.opencl import OpenCLExecutor

ENQUEUE_COPY: Callable[..., Event] = cl.enqueue_copy


class Launches(AllOf):
    """Several launches of one in-order queue; who waits for the last one waits for all."""

    def __init__(self, events: Sequence[Event]) -> None:
        super().__init__(events)
        self.last = events[-1]


def as_drivers_know(events: Sequence[Event] | None) -> Sequence[Event] | None:
    """Events of which some are `Launches`, as a driver takes them."""
    return events and [one.last if isinstance(one, Launches) else one for one in events]


def copy_after_launches(
    *args: Any, wait_for: Sequence[Event] | None = None, **kwargs: Any
) -> Event:
    """PyOpenCL's copy, after events of which some are `Launches`."""
    return ENQUEUE_COPY(*args, wait_for=as_drivers_know(wait_for), **kwargs)


class Slowness:
    """How many times the launches of the last part, or of the last device, are issued."""

    def __init__(self, times: int, selectors: Sequence[str]) -> None:
        self.times = times
        self._last = choose(selectors, find_devices())[-1]

    def _slows(self, device: Device) -> bool:
        part = device.part
        return device.handle == self._last.handle if part is None else part.index > 0

    @contextmanager
    def holding(self) -> Iterator[None]:
        """In here computations that are made are slowed."""
        make, copy = OpenCLExecutor.launch_command, OpenCLExecutor.copies_command

        def slowed(executor: OpenCLExecutor, *args: Any, **kwargs: Any) -> Command:
            command = make(executor, *args, **kwargs)

            def several(wait_for: Sequence[Event] | None = None) -> Event:
                first, times = command(as_drivers_know(wait_for)), self.times
                if times == 1 or not self._slows(executor.device):
                    return first
                return Launches([first, *(command(None) for _ in range(times - 1))])

            return several

        def copied(executor: OpenCLExecutor, *args: Any) -> Command:
            command = copy(executor, *args)
            return lambda wait_for: command(as_drivers_know(wait_for))

        with (
            patch.object(OpenCLExecutor, "launch_command", slowed),
            patch.object(OpenCLExecutor, "copies_command", copied),
            patch.object(transfer, "_enqueue_copy", copy_after_launches),
        ):
            yield
