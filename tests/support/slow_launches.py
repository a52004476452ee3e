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


def copy_after_launches(
    *args: Any, wait_for: Sequence[Event] | None = None, **kwargs: Any
) -> Event:
    """PyOpenCL's copy, after events of which some are `Launches`."""
    events = [one.last if isinstance(one, Launches) else one for one in wait_for or ()]
    return ENQUEUE_COPY(*args, wait_for=events, **kwargs)


class Slowness:
    """How many times the launches of the last part, or of the last device, are issued."""

    def __init__(self, times: int, selector: str) -> None:
        self.times = times
        self._last = choose([selector], find_devices())[-1]

    def _slows(self, device: Device) -> bool:
        part = device.part
        return device.handle == self._last.handle if part is None else part.index > 0

    @contextmanager
    def holding(self) -> Iterator[None]:
        """In here computations that are made are slowed."""
        make = OpenCLExecutor.launch_command

        def slowed(executor: OpenCLExecutor, *args: Any, **kwargs: Any) -> Command:
            command = make(executor, *args, **kwargs)
            if not self._slows(executor.device):
                return command

            def several(wait_for: Sequence[Event] | None = None) -> Event:
                if self.times == 1:
                    return command(wait_for)
                first = command(wait_for)
                return Launches([first, *(command(None) for _ in range(self.times - 1))])

            return several

        with (
            patch.object(OpenCLExecutor, "launch_command", slowed),
            patch.object(transfer, "_enqueue_copy", copy_after_launches),
        ):
            yield
