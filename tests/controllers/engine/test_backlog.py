# SPDX-License-Identifier: MIT
"""How many launches of a device are under way where one thread drives several."""
from __future__ import annotations

from controllers import Stencil, dry_run
from controllers.device.event import COMPLETE, UNDER_WAY, HostEvent, Profile
from controllers.engine.backlog import BETWEEN, MARKS, Backlog, backlogs_of
from controllers.engine.course import Course
from controllers.engine.place import PlaceRun
from controllers.engine.task import Task
from controllers.plan import Operation
from hitmap.comm import SerialCommunicator

cross = Stencil.of("cross", [(-1, 1)] * 2, [0, 1, 0, 1, 4, 1, 0, 1, 0], 8)


class UnderWay(HostEvent):
    def __init__(self) -> None:
        super().__init__(0, 0)
        self.command_execution_status = UNDER_WAY


class Listening:
    def add(self, step: int, operation: Operation, profile: Profile) -> None:
        pass


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


def test_one_device_has_a_backlog_where_its_thread_brings_messages() -> None:
    assert not backlogs_of(["gpu"], has_messages=False)
    assert [*backlogs_of(["gpu"], has_messages=True)] == ["gpu"]
    assert len(backlogs_of(["gpu", "other"], has_messages=False)) == 2


def test_a_run_begins_without_what_the_one_before_has_left() -> None:
    backlog = Backlog()
    for _ in range(BETWEEN * MARKS):
        backlog.add(UnderWay())
    backlog.forget()
    assert backlog.blocker() is None


def test_a_place_starts_no_more_launches_than_that() -> None:
    """Others of the same device find the backlog as it was left."""
    plan = dry_run(cross.program("float32"), (40, 20), 1).plan
    launch = next(one for one in plan.operations if one.verb == "launch" and not one.phase)
    tasks = [Task(launch, lambda wait_for: UnderWay()) for _ in range(2 * BETWEEN * MARKS)]
    course, backlog = Course(SerialCommunicator()), Backlog()
    place = PlaceRun(tasks, [[]] * plan.n_phases, course, backlog=backlog)
    course.begin(0, 0)
    place.begin(0, {0: [Listening()]})      # whoever is free is not listened to
    place.advance()
    assert sum(task.step == 0 for task in tasks) == BETWEEN * MARKS
    assert place.blockers and all(one is place.blockers[0] for one in place.blockers)
