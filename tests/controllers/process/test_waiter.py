# SPDX-License-Identifier: MIT
"""Whoever waits for several things goes on when the first of them has ended."""
from __future__ import annotations

import gc
import threading
from collections.abc import Callable

import pytest
from mpi_jobs import HANGS_S

from controllers.process.waiter import FirstOf


class Ends:
    """Something that ends when it is told to."""

    def __init__(self, status: int = 0) -> None:
        self._told, self._status = threading.Event(), status
        self.n_waits = 0

    def end(self) -> None:
        self._told.set()

    @property
    def command_execution_status(self) -> int:
        return self._status if self._told.is_set() else 1

    def wait(self) -> None:
        self.n_waits += 1
        assert self._told.wait(HANGS_S)
        if self._status:
            raise RuntimeError("it has failed")


def later(work: Callable[[], None]) -> None:
    threading.Timer(0.05, work).start()


def waiters() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "waiter"}


def assert_ended(threads: set[threading.Thread]) -> None:
    """They have done all that they were told to before they were told to end."""
    gc.collect()    # of whoever had them
    for thread in threads:
        thread.join(HANGS_S)
        assert not thread.is_alive()


def test_the_first_end_is_enough_and_the_other_wait_goes_on() -> None:
    before = waiters()
    first_of, slow = FirstOf(), Ends()
    for _ in range(3):
        quick = Ends()
        later(quick.end)
        first_of.wait([slow, quick])
        assert slow.command_execution_status > 0
    later(slow.end)
    first_of.wait([slow])
    kept = waiters() - before
    del first_of
    assert_ended(kept)
    assert slow.n_waits == 1, "who waits for it already is not told again"


def test_a_wait_may_end_before_anything_does() -> None:
    before = waiters()
    first_of, slow = FirstOf(), Ends()
    for _ in range(3):
        first_of.wait([slow], 1e-4)
        assert slow.command_execution_status > 0
    slow.end()
    kept = waiters() - before
    del first_of
    assert_ended(kept)
    assert slow.n_waits == 1, "the thread that waits goes on"


def test_threads_are_used_again_and_end_with_who_has_them() -> None:
    before = waiters()
    first_of = FirstOf()
    for _ in range(5):
        pair = Ends(), Ends()
        for one in pair:
            later(one.end)
        first_of.wait(pair)
        for one in pair:
            first_of.wait([one])
    kept = waiters() - before
    assert len(kept) == 2
    del first_of
    assert_ended(kept)


@pytest.mark.parametrize("already", [False, True])
def test_a_failure_is_an_end(already: bool) -> None:
    first_of, failing = FirstOf(), Ends(-5)
    failing.end() if already else later(failing.end)
    first_of.wait([Ends(), failing])
    assert failing.command_execution_status == -5


class Unknown(Ends):
    """Nobody can wait for it."""

    def wait(self) -> None:
        raise RuntimeError("no such event")


def test_a_wait_that_fails_before_the_end_is_told() -> None:
    with pytest.raises(RuntimeError, match="no such event"):
        FirstOf().wait([Ends(), Unknown()])
