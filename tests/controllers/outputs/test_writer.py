# SPDX-License-Identifier: MIT
"""The thread that writes: in order, so many at a time, and what becomes of an error."""
from __future__ import annotations

import threading

import pytest

from controllers.outputs.writer import Writer


def test_work_is_done_in_order_and_little_of_it_waits() -> None:
    writer, done, gate = Writer("a test"), list[int](), threading.Semaphore(0)
    put = list[int]()

    def work(number: int) -> None:
        assert gate.acquire(timeout=300)
        done.append(number)

    def give() -> None:
        for number in range(5):
            writer.put(lambda number=number: work(number))
            put.append(number)

    giver = threading.Thread(target=give)
    giver.start()
    for number in range(5):
        while len(put) < min(5, number + 2):    # one is done, one waits
            assert giver.is_alive() or len(put) == 5
        giver.join(0.05)
        assert len(put) <= number + 2
        gate.release()
        while writer.n_done <= number:
            assert writer.error is None
    writer.wait()
    giver.join()
    assert done == put == [*range(5)] and writer.n_done == 5
    writer.close()


def test_nothing_is_done_after_an_error_and_nobody_waits() -> None:
    writer, done = Writer("a test"), list[int]()

    def fail() -> None:
        raise OSError("full")

    writer.do(lambda: done.append(1))
    writer.do(fail)
    for _ in range(3):
        writer.put(lambda: done.append(2))
    writer.wait()
    assert done == [1] and writer.n_done == 1
    with pytest.raises(OSError, match="full"):
        assert writer.error is not None
        raise writer.error
    writer.close()
