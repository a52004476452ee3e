# SPDX-License-Identifier: MIT
"""Launches of several steps: what they read, what plans exchange for them, how many there are."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from controllers import kgt
from controllers.kernel.registry import GENERIC, SPECIALISED
from controllers.language.weights import Stencil
from controllers.placement.halo_width import plan_of_width
from controllers.placement.temporal import plan_with_steps
from controllers.plan import Location, Plan
from controllers.plan.rounds.paces import Steps
from controllers.program.boundary import Boundary
from controllers.program.expression import Constant, Expression, Index, Read, where
from controllers.program.fold import Fold
from controllers.program.program import Field, Program, Stage
from controllers.program.steps import can_combine, offsets_read, why_single
from controllers.program.sweep import Sweep
from hitmap import Layout, Shape

STAR = Stencil.of("star", [(-1, 1), (-1, 1)], [0, 1, 0, 1, 0, 1, 0, 1, 0], 4)
UPWIND = Stencil.of("upwind", [(-2, 0)], [1, 2, 3], 6)
NEAR = ((-1, 1), (-1, 1))


def read(sweep: Sweep, field: str, over: Shape) -> Shape:
    use = sweep.use(field)
    assert use is not None
    return sweep.read(use, over)


def test_what_is_read_grows_with_the_steps_and_ends_with_the_domain() -> None:
    stage = STAR.program("float32").stages[0]
    sweep = Sweep.over(stage, Shape.of_extent((20, 10)), (False, False), 3)
    assert sweep.cells == Shape((1, 1), (19, 9))
    assert read(sweep, "u", Shape((8, 4), (9, 5))) == Shape((5, 1), (12, 8))
    assert read(sweep, "u", Shape((1, 1), (19, 9))) == Shape((0, 0), (20, 10))
    assert sweep.needed(Shape((1, 4), (9, 5)), 2) == Shape((1, 2), (11, 7))
    assert sweep.needed(Shape((1, 4), (9, 5)), 0) == Shape((1, 4), (9, 5))


def test_a_single_step_needs_no_reads_of_the_own_field() -> None:
    stage = Stage("copy", {"v": Read("u", (0, 1))}, NEAR)
    sweep = Sweep.over(stage, Shape.of_extent((20, 10)), (False, True), 1)
    assert sweep.cells == Shape((1, 0), (19, 10))
    assert read(sweep, "u", Shape((1, 0), (19, 10))) == Shape((1, 1), (19, 11))


def test_a_periodic_axis_has_no_end() -> None:
    stage = STAR.program("float32").stages[0]
    sweep = Sweep.over(stage, Shape.of_extent((20, 10)), (True, False), 2)
    assert sweep.cells == Shape((-2, 1), (22, 9))
    assert read(sweep, "u", Shape((0, 1), (20, 9))) == Shape((-2, 0), (22, 10))


def test_other_fields_are_read_around_all_cells_that_are_computed() -> None:
    expression = Read("u", (0, -1)) * Read("k", (0, 1)) + Read("u", (0, 0))
    stage = Stage("s", {"u": expression}, NEAR)
    sweep = Sweep.over(stage, Shape.of_extent((9, 30)), (False, False), 3)
    over = Shape((4, 10), (5, 11))
    assert read(sweep, "u", over) == Shape((4, 7), (5, 11))
    assert read(sweep, "k", over) == Shape((4, 9), (5, 12))
    assert offsets_read(stage, "u", 3) == Shape((0, -3), (1, 1))
    assert offsets_read(stage, "k", 3) == Shape((0, -1), (1, 2))


def test_programs_of_one_stage_that_reads_what_it_writes_combine_steps() -> None:
    fields = (Field("u", "float32"), Field("v", "float32"))
    own = Stage("own", {"u": Read("u", (0, 1)) + Read("v", (0, 0))}, NEAR)
    other = Stage("other", {"v": Read("u", (0, 1)) + Constant(1)}, NEAR)
    domain = Shape.of_extent((9, 9))
    assert can_combine(Program("p", fields, (own,)), domain)
    assert not can_combine(Program("p", fields, (other,)), domain)
    assert not can_combine(Program("p", fields, (own, other)), domain)
    layout = Layout.bands(Shape.of_extent((9, 9)), 1)
    with pytest.raises(ValueError, match="launches of 2 steps are for programs of one stage"):
        Plan(Program("p", fields, (other,)), layout, (False, False), [Location()],
             steps_per_launch=2)  # fmt: skip


def plan(
    steps_per_launch: Steps, kinds: Sequence[str] = ("cpu", "cpu"),
    extent: tuple[int, ...] = (40, 12),
) -> Plan:  # fmt: skip
    layout = Layout.bands(Shape.of_extent(extent), len(kinds))
    where = [Location(rank, 0, kind == "cpu", kind, kind) for rank, kind in enumerate(kinds)]
    return plan_of_width(None, STAR.program("float32"), layout, (False, False), where,
                         overlap="off", steps_per_launch=steps_per_launch)  # fmt: skip


def test_a_plan_exchanges_halos_of_as_many_times_the_reach_once_per_launch() -> None:
    wide = plan(4)
    assert [str(message) for message in wide.patterns["u"].messages] == [
        "place 1 -> 0: [20:24, 0:12], 48 cells",
        "place 0 -> 1: [16:20, 0:12], 48 cells",
    ]
    launches = [o for o in wide.operations if o.verb == "launch" and o.place == 0]
    assert len(launches) == 2       # one for each of the two time levels
    assert launches[0].writes[0].cells == (Shape((1, 1), (20, 11)),)
    assert launches[0].reads[0].cells == (Shape((0, 0), (24, 12)),)
    assert wide.memory(0).tiles == 2 * 4 * 24 * 12
    assert "launch of 4 steps 0; number 1 is the same" in str(wide)


def test_a_forward_stencil_still_sends_one_way() -> None:
    layout = Layout.bands(Shape.of_extent((30,)), 3)
    where = [Location(rank) for rank in range(3)]
    wide = Plan(UPWIND.program("float32"), layout, (False,), where, steps_per_launch=3)
    assert [str(message) for message in wide.patterns["u"].messages] == [
        "place 0 -> 1: [4:10], 6 cells",
        "place 1 -> 2: [14:20], 6 cells",
    ]


@pytest.fixture
def usual(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels of up to 8 steps for boxes of 9 columns and more, 4 of them on a GPU."""

    def usual_steps(program: Program, stage: Stage, kind: str) -> int:
        return {"cpu": 8, "gpu": 4}.get(kind, 1)

    def choose(program: Program, stage: Stage, kind: str, launch: kgt.Launch) -> None:
        if launch.n_steps > 8 or launch.extent[-1] < 9:
            raise ValueError("no kernel")

    monkeypatch.setattr("controllers.kgt.usual_steps", usual_steps)
    monkeypatch.setattr("controllers.kgt.choose", choose)


@pytest.mark.usefixtures("usual")
@pytest.mark.parametrize(("kinds", "extent", "expected"), [
    (["cpu"], (400, 12), 8),
    (["cpu"], (400, 10), 1),                # its rows of 8 cells have no such kernel
    (["reference"], (400, 12), 1),
    (["cpu", "gpu"], (400, 12), 8),         # ... on the CPU, two of 4 on the GPU meanwhile
    (["cpu", "cpu"], (64, 12), 4),          # a halo is at most a quarter of what a place owns
    (["cpu"] * 4, (16, 12), 1),
])  # fmt: skip
def test_the_number_of_steps_suits_all_places(
    kinds: list[str], extent: tuple[int, ...], expected: int
) -> None:
    def make(n: Steps) -> Plan:
        return plan(n, kinds, extent)

    assert plan_with_steps(make, SPECIALISED).steps_per_launch == expected
    assert plan_with_steps(make, GENERIC).steps_per_launch == 1
    assert plan_with_steps(make, SPECIALISED, watched=True).steps_per_launch == 1
    small = plan_with_steps(make, SPECIALISED, fits=lambda plan: plan.steps_per_launch <= 2)
    assert small.steps_per_launch == min(expected, 2)


@pytest.mark.usefixtures("usual")
def test_a_number_that_is_wanted_is_taken_or_refused() -> None:
    assert plan_with_steps(plan, SPECIALISED, 5).steps_per_launch == 5
    assert plan_with_steps(plan, GENERIC, 1, watched=True).steps_per_launch == 1
    for wanted, choice_, watched, why in (
        (0, SPECIALISED, False, "a launch computes at least 1 step, got 0"),
        (2, GENERIC, False, "launches of 2 steps need kernels that are generated"),
        (3, SPECIALISED, True, "the checked mode looks at every step, got launches of 3 steps"),
        (9, SPECIALISED, False, "no kernel"),
        (257, SPECIALISED, False, "at most 256 steps, got 257; use fewer"),
        (10**9, SPECIALISED, False, "at most 256 steps, got 1000000000; use fewer"),
        (10**999, SPECIALISED, False, "at most 256 steps, got a whole number of 3319 bits"),
    ):
        with pytest.raises(ValueError, match=why):
            plan_with_steps(plan, choice_, wanted, watched=watched)


def test_several_steps_are_refused_where_they_would_be_wrong() -> None:
    domain, mirror = Shape((0, 0), (9, 9)), Boundary.of("mirror", 2)
    here, beside = Read("u", (0, 0)), Read("u", (0, 1)) + Read("u", (0, -1))
    fields = (Field("u", "float32", mirror), Field("a", "float32"))

    def why(tree: Expression, **more: Any) -> str:
        stage = Stage("s", {"u": tree}, ((0, 0), (-1, 1)), **more)
        return why_single(Program("p", fields, (stage,)), domain)

    assert why(beside + Read("a", (0, 0))) == ""
    assert why(beside + Read("a", (0, 1))) == "cells beside a mirror on axis 1 keep their value"
    assert why(beside, folds={"some": Fold("sum", where(Index(0) > 2, here, 0))}) == ""
    assert "does not read" in why(Read("a", (0, 0)), folds={"some": Fold("sum", here)})
    look = Stage("look", {}, ((0, 0), (0, 0)), {"some": Fold("sum", here)})
    assert "updates no field" in why_single(Program("p", fields, (look,)), domain)
