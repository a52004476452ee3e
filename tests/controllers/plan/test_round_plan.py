# SPDX-License-Identifier: MIT
"""Plans of rounds: boxes shrink from launch to launch, and messages leave after the last one."""
from __future__ import annotations

import pytest

from controllers import Stencil
from controllers.plan import HostTask, Location, RoundPlan
from controllers.program.sweep import Version
from hitmap import Layout, Shape

MEAN = Stencil.of("mean", [(-1, 1)], [1, 0, 1], 2).program("float32")
LAYOUT = Layout.bands(Shape.of_extent((30,)), 3)
RANKS = [Location(rank) for rank in range(3)]


def plan_of(n_launches: int, periodic: bool = False) -> RoundPlan:
    return RoundPlan(MEAN, LAYOUT, (periodic,), RANKS, n_launches=n_launches)


def test_boxes_shrink_by_the_reach() -> None:
    plan = plan_of(3)
    boxes = [str(plan.computed(0, phase, 1)) for phase in range(3)]
    assert boxes == ["[8:22]", "[9:21]", "[10:20]"]
    assert [str(plan.computed(0, phase, 0)) for phase in range(3)] == ["[1:12]", "[1:11]", "[1:10]"]


def test_on_a_ring_they_go_on_beyond_its_ends() -> None:
    assert str(plan_of(3, periodic=True).computed(0, 0, 0)) == "[-2:12]"


def test_messages_leave_after_the_last_launch_alone() -> None:
    plan = plan_of(4)
    assert plan.n_phases == 4 and plan.halo_width == 4
    sends = [operation for operation in plan.operations if operation.verb == "send"]
    assert len(sends) == 4 and {operation.phase for operation in sends} == {3}
    (pattern,) = plan.exchanges.values()
    assert {message.n_cells for message in pattern.messages} == {4}
    assert str(plan.full("u", 1)) == "[6:24]"


def test_the_period_is_that_of_the_buffers_and_of_the_round() -> None:
    assert plan_of(3).n_phases == 6     # two buffers, three launches


def test_a_field_that_is_read_at_the_cell_alone_is_not_exchanged() -> None:
    plan = plan_of(2)
    assert [*plan.exchanges] == [Version("u", 1)]


def test_what_the_host_changes_after_each_step_is_refused() -> None:
    task = HostTask("look", lambda cells: None, ("u",))
    with pytest.raises(ValueError, match="tasks of the host .* leave the halo width out"):
        RoundPlan(MEAN, LAYOUT, (False,), RANKS, n_launches=2, host_tasks=[task])
