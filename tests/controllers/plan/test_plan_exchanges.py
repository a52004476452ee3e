# SPDX-License-Identifier: MIT
"""Which versions of fields a plan exchanges, and with how much around them: what readers need."""
from __future__ import annotations

from controllers.plan import Location, Plan
from controllers.program.expression import Read
from controllers.program.program import Field, Program
from controllers.program.stage import Stage
from hitmap import Layout, Shape

U = {at: Read("u", (at, 0)) for at in (-1, 0, 1)}
FIELDS = (Field("u", "float32"), Field("v", "float32"), Field("k", "float32"))


def messages(program: Program) -> dict[str, list[tuple[int, int]]]:
    """By version, the ends of its messages between two bands."""
    layout = Layout.bands(Shape.of_extent((10, 6)), 2)
    plan = Plan(program, layout, (False, False), [Location(n) for n in range(2)])
    return {
        f"{version.field}.{version.number}": [(m.source, m.target) for m in pattern.messages]
        for version, pattern in plan.exchanges.items()
    }


def test_each_version_is_sent_to_those_who_read_it_and_no_further() -> None:
    up = Stage("up", {"u": U[0] + U[1]}, ((0, 1), (0, 0)))      # reads what down makes
    down = Stage("down", {"u": U[0] + U[-1]}, ((-1, 0), (0, 0)))    # reads what up makes
    assert messages(Program("both", FIELDS[:1], (up, down))) == {
        "u.1": [(0, 1)], "u.2": [(1, 0)],
    }  # fmt: skip


def test_what_nobody_reads_around_a_cell_is_not_sent() -> None:
    make = Stage("make", {"v": U[0] * 2}, ((0, 0), (0, 0)))
    use = Stage("use", {"u": Read("v", (0, 0)) + Read("k", (1, 0))}, ((0, 1), (0, 0)))
    found = messages(Program("here", FIELDS, (make, use)))
    assert found == {"k.0": [(1, 0)]}       # once, when it was set


def test_halos_are_filled_in_the_buffers_that_the_next_step_begins_with() -> None:
    near = Stage("near", {"u": U[-1] + U[1]}, ((-1, 1), (0, 0)))
    layout = Layout.bands(Shape.of_extent((10, 6)), 2)
    plan = Plan(Program("one", FIELDS[:1], (near,)), layout, (False, False), [Location()] * 2)
    assert plan.n_phases == len(plan.opening) == 2
    for phase, operations in enumerate(plan.opening):
        written = {access.memory for operation in operations for access in operation.writes}
        assert written == {plan.newest("u", phase, place) for place in plan.places}
