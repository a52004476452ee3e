# SPDX-License-Identifier: MIT
"""Work of the host that threads do while who started it goes on."""
from __future__ import annotations

import gc
import threading

import numpy as np
import pytest
from mpi_jobs import HANGS_S

from controllers.device.event import COMPLETE, UNDER_WAY
from controllers.engine.host_work import Assistants


def test_who_starts_it_goes_on_and_asks_after_it() -> None:
    may_end, done = threading.Event(), list[int]()

    def work() -> None:
        assert may_end.wait(HANGS_S)
        done.append(threading.get_ident())

    command = Assistants(1).command(work)
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

    event = Assistants().command(work)(None)
    with pytest.raises(OSError, match="no such rows"):
        event.wait()


def test_its_thread_ends_with_who_has_it() -> None:
    before = {*threading.enumerate()}
    assistants = Assistants(1)
    assistants.command(lambda: None)(None).wait()
    (thread,) = {*threading.enumerate()} - before
    del assistants
    gc.collect()
    thread.join(HANGS_S)
    assert not thread.is_alive()


@pytest.mark.parametrize("n_threads", [1, 3, 4])
def test_arrays_are_copied_by_several_threads(n_threads: int) -> None:
    """Also those of fewer rows than there are threads, of none, and to memory with gaps."""
    rng = np.random.default_rng(n_threads)
    cells = [rng.random((n_rows, 5)) for n_rows in (0, 1, 2, 7, 40)]
    rooms = [np.zeros((len(some), 8))[:, 1:6] for some in cells]
    Assistants(n_threads).copying([*zip(cells, rooms)])(None).wait()
    assert all(map(np.array_equal, cells, rooms))
