# SPDX-License-Identifier: MIT
from __future__ import annotations

import numpy as np
import pytest

from controllers.device.event import (
    COMPLETE,
    Command,
    CommandFailed,
    Event,
    HostEvent,
    in_order,
    is_complete,
)


class Reporting(HostEvent):
    def __init__(self, status: int) -> None:
        super().__init__(0, 0)
        self.command_execution_status = status


def test_the_event_of_the_host_s_own_work_is_complete_and_timed() -> None:
    event: Event = HostEvent(3, 8)
    event.wait()
    assert is_complete(event) and event.command_execution_status == COMPLETE
    assert event.profile.end - event.profile.start == 5


@pytest.mark.parametrize("status", [1, 2, 3])
def test_queued_submitted_and_running_commands_are_not_complete(status: int) -> None:
    assert not is_complete(Reporting(status))


def test_a_command_that_failed_raises_its_error_code() -> None:
    with pytest.raises(CommandFailed, match="-5"):
        is_complete(Reporting(-5))


def test_opencl_s_constants_are_the_ones_that_are_used() -> None:
    cl = pytest.importorskip("pyopencl")
    assert cl.command_execution_status.COMPLETE == COMPLETE
    assert cl.command_execution_status.QUEUED > COMPLETE


def test_an_opencl_event_is_an_event() -> None:
    cl = pytest.importorskip("pyopencl")
    from controllers.device import choose, find_devices
    from controllers.executor.opencl import OpenCLExecutor

    controller = OpenCLExecutor(choose([], find_devices())[0], zero_copy=False)
    source = controller.device_staging(10, np.dtype("float32"))
    event: Event = cl.enqueue_fill_buffer(controller.compute, source, np.uint8(0), 0, 40)
    event.wait()
    assert is_complete(event)
    assert event.profile.end >= event.profile.start > 0
    user = cl.UserEvent(controller.context)
    assert not is_complete(user)
    user.set_status(-7)
    with pytest.raises(CommandFailed, match="-7"):
        is_complete(user)


def test_events_of_several_commands_are_kept_until_these_are_given_anew() -> None:
    dropped: list[str] = []

    class Dropped(HostEvent):
        """As PyOpenCL's of a copy with host memory, which waits as it is dropped."""

        def __init__(self, name: str) -> None:
            super().__init__(0, 0)
            self.name = name

        def __del__(self) -> None:
            dropped.append(self.name)

    def named(name: str) -> Command:
        turns = iter("12")
        return lambda wait_for: Dropped(name + next(turns))

    command = in_order([named("a"), named("b"), named("c")])
    event = command(None)
    assert isinstance(event, Dropped) and event.name == "c1" and not dropped
    again = command(None)
    assert isinstance(again, Dropped) and again.name == "c2" and sorted(dropped) == ["a1", "b1"]
