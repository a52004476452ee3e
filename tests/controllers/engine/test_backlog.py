# SPDX-License-Identifier: MIT
"""How many launches of a device are under way where one thread drives several."""
from __future__ import annotations

from controllers.device.event import COMPLETE, UNDER_WAY, HostEvent
from controllers.engine.backlog import BETWEEN, MARKS, Backlog


class UnderWay(HostEvent):
    def __init__(self) -> None:
        super().__init__(0, 0)
        self.command_execution_status = UNDER_WAY


def test_few_launches_are_under_way_until_the_first_ones_are_complete() -> None:
    backlog, events = Backlog(), list[UnderWay]()
    while backlog.blocker() is None:
        events.append(UnderWay())
        backlog.add(events[-1])
    assert len(events) == BETWEEN * MARKS
    first = backlog.blocker()
    assert first is not None and first.event is events[BETWEEN - 1]
    events[BETWEEN - 1].command_execution_status = COMPLETE
    for _ in range(BETWEEN):
        assert backlog.blocker() is None
        backlog.add(UnderWay())
    assert backlog.blocker() is not None


def test_a_run_begins_without_what_the_one_before_has_left() -> None:
    backlog = Backlog()
    for _ in range(BETWEEN * MARKS):
        backlog.add(UnderWay())
    backlog.forget()
    assert backlog.blocker() is None
