# SPDX-License-Identifier: MIT
"""Work of the host that a thread does while who started it goes on."""
from __future__ import annotations

import gc
import threading

import pytest
from mpi_jobs import HANGS_S

from controllers.device.event import COMPLETE, UNDER_WAY
from controllers.engine.host_work import Assistant


def test_who_starts_it_goes_on_and_asks_after_it() -> None:
    may_end, done = threading.Event(), list[int]()

    def work() -> None:
        assert may_end.wait(HANGS_S)
        done.append(threading.get_ident())

    command = Assistant().command(work)
    for number in range(1, 3):
        may_end.clear()
        event = command(None)
        profile = event.profile
        assert event.command_execution_status == UNDER_WAY and len(done) == number - 1
        may_end.set()
        event.wait()
        assert event.command_execution_status == COMPLETE and len(done) == number
        assert profile.end >= profile.start
    assert set(done) != {threading.get_ident()} and len(set(done)) == 1


def test_what_it_raises_is_raised_by_who_asks() -> None:
    def work() -> None:
        raise OSError("no such rows")

    event = Assistant().command(work)(None)
    with pytest.raises(OSError, match="no such rows"):
        event.wait()


def test_its_thread_ends_with_who_has_it() -> None:
    before = {*threading.enumerate()}
    assistant = Assistant()
    assistant.command(lambda: None)(None).wait()
    (thread,) = {*threading.enumerate()} - before
    del assistant
    gc.collect()
    thread.join(HANGS_S)
    assert not thread.is_alive()
