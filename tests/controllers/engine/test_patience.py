# SPDX-License-Identifier: MIT
"""How the thread that drives an engine waits while large messages are under way."""
from __future__ import annotations

import threading

import pytest
from mpi_jobs import HANGS_S

from controllers.device.event import COMPLETE, UNDER_WAY, HostEvent
from controllers.engine.patience import Patience
from controllers.engine.task import Awaited

MOST_ASKED = 5000   # a piece takes a few


class OfDevice(HostEvent):
    """Ends when it is told to, of which one must hear before one has asked very often."""

    def __init__(self) -> None:
        super().__init__(0, 0)
        self._n_asked, self._ended = 0, threading.Event()

    @property
    def command_execution_status(self) -> int:  # type: ignore[override]
        self._n_asked += 1
        assert self._n_asked < MOST_ASKED, "nobody brings the message"
        return COMPLETE if self._ended.is_set() else UNDER_WAY

    def over(self) -> None:
        self._ended.set()

    def wait(self) -> None:
        assert self._ended.wait(HANGS_S)


class Message(HostEvent):
    """Has so many pieces, each of which comes by a look; the last one ends the device."""

    def __init__(self, n_pieces: int, device: OfDevice) -> None:
        super().__init__(0, 0)
        self.left, self._device = n_pieces, device

    @property
    def command_execution_status(self) -> int:  # type: ignore[override]
        self.left = max(0, self.left - 1)
        if not self.left:
            self._device.over()
        return UNDER_WAY if self.left else COMPLETE


@pytest.mark.parametrize("beside_cpu", [False, True])
def test_messages_come_while_devices_are_waited_for(beside_cpu: bool) -> None:
    """The device ends only when all of the message is here."""
    device = OfDevice()
    message = Message(50, device)
    blockers = [Awaited(device)]
    Patience(beside_cpu).until_any(blockers, [Awaited(message, blocks=False)])
    assert blockers[0].event is None and not message.left
