# SPDX-License-Identifier: MIT
"""How long transfers take is learnt as they go on, as times of tasks are."""
from __future__ import annotations

from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest

from controllers.device.listing import devices
from controllers.estimates.estimates import Estimates
from controllers.estimates.task_key import TaskKey
from controllers.pool.executions import Executions
from controllers.pool.transfers import LINK_BYTES_S, LINK_S, Transfers

CPU = next(one for one in devices() if one.kind == "cpu")
NBYTES = 1 << 20


@pytest.fixture
def linked() -> tuple[Transfers, deque[Any], dict[Executions, None]]:
    """Of a device with the memory 1, what has moved, and what is to be learnt from."""
    lanes: Any = [SimpleNamespace(memory=0, device=None), SimpleNamespace(memory=1, device=CPU)]
    moved, due, known = deque[Any](), dict[Executions, None](), dict[TaskKey, Executions]()
    estimates = Estimates(None)

    def executions_of(key: TaskKey) -> Executions:
        return known.setdefault(key, Executions(estimates, key))

    memories: Any = SimpleNamespace(moved=moved)
    return Transfers(lanes, memories, executions_of, due), moved, due


def test_transfers_that_become_slower_are_foreseen_so(linked: Any) -> None:
    transfers, moved, due = linked
    for number in range(80):
        moved.append((1, True, NBYTES, 1e-3 if number < 40 else 4e-3))
        transfers.learn()
        while due:
            due.popitem()[0].refresh()
    assert transfers.seconds(1, NBYTES, to_device=True) == pytest.approx(4e-3)
    assert transfers.seconds(1, 3 * NBYTES, to_device=True) == pytest.approx(12e-3, rel=0.1)


def test_what_nobody_has_moved_is_foreseen_by_usual_links(linked: Any) -> None:
    transfers, moved, _ = linked
    usual_s = LINK_S + NBYTES / LINK_BYTES_S
    moved.append((1, True, NBYTES, 1e-3))
    moved.append((1, False, 0, 1e-3))       # says nothing
    transfers.learn()
    assert not moved
    assert transfers.seconds(1, NBYTES, to_device=False) == usual_s
    assert transfers.seconds(2, NBYTES, to_device=True) == usual_s, "a memory that no lane has"
    assert transfers.seconds(1, NBYTES, to_device=True) == pytest.approx(1e-3)
