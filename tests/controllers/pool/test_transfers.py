# SPDX-License-Identifier: MIT
"""How long transfers take is foreseen by those that were."""
from __future__ import annotations

from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest

from controllers.device.listing import devices
from controllers.estimates.estimates import Estimates
from controllers.estimates.task_key import TaskKey
from controllers.pool.executions import Executions
from controllers.pool.transfers import LINK_BYTES_S, LINK_S, SLOW_BYTES_S, Transfers

CPU = next(one for one in devices() if one.kind == "cpu")
NBYTES = 1 << 20


@pytest.fixture
def linked() -> tuple[Transfers, deque[Any]]:
    """Of a device with the memory 1, and what has moved."""
    lanes: Any = [SimpleNamespace(memory=0, device=None), SimpleNamespace(memory=1, device=CPU)]
    moved, known, estimates = deque[Any](), dict[TaskKey, Executions](), Estimates(None)

    def executions_of(key: TaskKey) -> Executions:
        return known.setdefault(key, Executions(estimates, key))

    memories: Any = SimpleNamespace(moved=moved)
    return Transfers(lanes, memories, executions_of), moved


def test_transfers_take_as_long_as_those_before_in_each_direction(linked: Any) -> None:
    transfers, moved = linked
    for _ in range(4):
        moved.append((1, True, NBYTES, 1e-3))
        moved.append((1, False, NBYTES, 2e-3))
    transfers.learn()
    assert transfers.seconds(1, NBYTES, to_device=True) == pytest.approx(1e-3)
    assert transfers.seconds(1, NBYTES, to_device=False) == pytest.approx(2e-3)
    assert transfers.seconds(1, 3 * NBYTES, to_device=True) == pytest.approx(3e-3, rel=0.1)


def test_a_small_transfer_that_took_long_says_little_of_large_ones(linked: Any) -> None:
    transfers, moved = linked
    moved.append((1, True, NBYTES >> 6, 10e-3))     # at 1.6 MB/s
    transfers.learn()
    there_s = transfers.seconds(1, NBYTES, to_device=True)
    assert 10e-3 < there_s < 10e-3 + NBYTES / SLOW_BYTES_S
    moved.append((1, True, NBYTES, 20e-3))      # it is known now
    transfers.learn()
    assert transfers.seconds(1, NBYTES, to_device=True) == pytest.approx(20e-3)


def test_the_estimator_is_not_told_of_transfers_by_who_asks(
    linked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would fit all of them again for each question."""
    transfers, moved = linked
    for n in (4, 16):
        moved.extend((1, True, NBYTES, 1e-3) for _ in range(n))
        transfers.learn()
        assert transfers.seconds(1, NBYTES, to_device=True) == pytest.approx(1e-3)
    told = list[object]()
    monkeypatch.setattr(Estimates, "add", lambda *given: told.append(given))
    for n in range(2, 9):
        moved.append((1, True, NBYTES, 1e-3))
        transfers.learn()
        assert transfers.seconds(1, n * NBYTES, to_device=True) > 1e-3
    assert not told


def test_what_nobody_has_moved_is_foreseen_by_usual_links(linked: Any) -> None:
    transfers, moved = linked
    usual_s = LINK_S + NBYTES / LINK_BYTES_S
    moved.append((1, True, NBYTES, 1e-3))
    moved.append((1, False, 0, 1e-3))       # says nothing
    transfers.learn()
    assert not moved
    assert transfers.seconds(1, NBYTES, to_device=False) == usual_s
    assert transfers.seconds(2, NBYTES, to_device=True) == usual_s, "a memory that no lane has"
    assert transfers.seconds(0, NBYTES, to_device=True) == 0, "what computes in the host's memory"
    assert transfers.seconds(1, NBYTES, to_device=True) == pytest.approx(1e-3)
