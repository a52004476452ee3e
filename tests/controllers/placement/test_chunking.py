# SPDX-License-Identifier: MIT
"""The steps of a pass over chunks are chosen from estimates, of devices that need not exist."""
from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import pytest

from controllers import Stencil
from controllers.executor.executor import Executor
from controllers.memory.ledger import Ledger
from controllers.placement.chunk_model import (
    cuts_of,
    depth_of,
    ends,
    expected,
    least_skewed,
    n_parts,
    row_nbytes,
)
from controllers.placement.chunking import SPANS, WORTH, Cutting, cuttings
from controllers.placement.far import FarDevice, FarExecutor
from controllers.placement.placement import Placement
from controllers.plan import Location, Plan
from controllers.plan.chunks.chunks import SLOTS
from controllers.plan.chunks.images import IN_MEMORY
from controllers.program.expression import Read, Scalar
from controllers.program.field import Field
from controllers.program.fold import Fold
from controllers.program.program import Program
from controllers.program.scalars import Folded
from controllers.program.segments import with_formers
from controllers.program.stage import Stage
from controllers.settings.execution import Execution
from hitmap import Layout, Shape

GIB = 1 << 30


def star(n_axes: int) -> Program:
    weights = np.zeros((3,) * n_axes)
    for axis in range(n_axes):
        for step in (0, 2):
            weights[tuple(step if at == axis else 1 for at in range(n_axes))] = 1
    return Stencil.of("star", [(-1, 1)] * n_axes, weights.tolist(), 8).program("float32")


def wave() -> Program:
    around = Read("u", (-1, 0)) + Read("u", (1, 0)) + Read("u", (0, -1)) + Read("u", (0, 1))
    updates = {"u": around - Read("before", (0, 0)), "before": Read("u", (0, 0))}
    fields = Field("u", "float32"), Field("before", "float32")
    return Program("wave", fields, (Stage("wave", updates, ((-1, 1),) * 2),))


def planned(program: Program, extent: Sequence[int], kind: str, cap: int) -> tuple[Plan, Placement]:
    """Fields that exist nowhere, on such a device."""
    where = Location(shares_host=False)
    layout = Layout.bands(Shape.of_extent(tuple(extent)), 1)
    plan = Plan(program, layout, (False,) * len(extent), [where])
    device = FarExecutor(FarDevice(kind), Ledger(kind, cap))
    return plan, Placement((where,), {0: cast(Executor, device)})


def chosen(
    program: Program, extent: Sequence[int], per_launch: int, kind: str = "gpu", cap: int = 2 * GIB
) -> Cutting:
    plan, placement = planned(program, extent, kind, cap)
    return next(iter(cuttings(plan, placement, Execution(), IN_MEMORY, None, per_launch)))


@pytest.mark.parametrize("kind", ["gpu", "cpu"])
@pytest.mark.parametrize("per_launch", [1, 2, 4, 5, 7, 8, 12])
def test_kernels_take_clearly_longer_than_the_link_where_there_is_room(
    per_launch: int, kind: str
) -> None:
    for program, side in ((star(2), 46336), (wave(), 32768)):
        found = chosen(program, (side,) * 2, per_launch, kind)
        assert found.pipeline is not None
        assert found.pipeline.kernels_s > 2 * found.pipeline.copies_s, (program.name, found)


@pytest.mark.parametrize("per_launch", [1, 4, 12])
def test_no_pass_of_another_length_would_save_much_and_no_shorter_one_is_as_good(
    per_launch: int,
) -> None:
    """Of skewed chunks, also where rows that are kept leave little room for others."""
    for program, side in ((star(2), 46336), (star(3), 1280), (wave(), 32768)):
        extent = (side,) * program.n_axes
        plan, placement = planned(program, extent, "gpu", 2 * GIB)
        seconds = {}
        for span in (n for n in SPANS if n < per_launch or not n % per_launch):
            least = least_skewed(plan, placement, span, SLOTS)
            if least is not None:
                at_once = max(n for n in range(1, per_launch + 1) if not span % n)
                pipeline = expected(plan, placement, IN_MEMORY, max(least, SLOTS + 1), span,
                                    at_once, skewed=True)  # fmt: skip
                seconds[span] = pipeline.likely_s / span
        found = chosen(program, extent, per_launch)
        assert found.is_skewed
        best = min(seconds.values())
        assert WORTH * seconds[found.span] <= best
        assert all(WORTH * s > best for span, s in seconds.items() if span < found.span)


def test_ways_that_follow_the_first_one_are_shorter_and_slower() -> None:
    plan, placement = planned(wave(), (32768,) * 2, "gpu", 2 * GIB)
    found = [*cuttings(plan, placement, Execution(), IN_MEMORY, None, 1)]
    spans = [one.span for one in found]
    each = [one.pipeline.likely_s / one.span for one in found if one.pipeline is not None]
    assert spans == sorted(spans, reverse=True) and spans[-1] == 1
    assert each == sorted(each) and len(each) == len(found)


def test_no_way_where_not_even_a_row_fits_and_the_steps_that_are_asked_for() -> None:
    plan, placement = planned(wave(), (32768,) * 2, "gpu", 1 << 20)
    assert not [*cuttings(plan, placement, Execution(), IN_MEMORY, None, 1)]
    plan, placement = planned(wave(), (32768,) * 2, "gpu", 2 * GIB)
    assert {one.span for one in cuttings(plan, placement, Execution(), IN_MEMORY, 20, 4)} == {20}


def test_a_chunk_with_rows_of_a_neighbour_owns_fewer() -> None:
    for most in range(1, 40):
        for around in ((0, 0), (0, 7), (12, 0), (9, 9)):
            cuts = cuts_of(150, n_parts(150, most, around), around)
            rows = [high - low for low, high in zip(cuts, cuts[1:])]
            assert min(rows) > 0 and sum(rows) == 150
            inner = rows[bool(around[0]) : len(rows) - bool(around[1])]
            assert max(inner) <= most
            assert rows[0] + around[0] <= max(most, around[0] + 1)
            assert rows[-1] + around[1] <= max(most, around[1] + 1)


def test_rows_come_from_where_another_device_or_a_ring_goes_on() -> None:
    layout = Layout.bands(Shape.of_extent((120, 40)), 4)
    where = [Location(controller=number, shares_host=False) for number in (0, 0, 1, 1)]
    for ring, outer in ((False, 0), (True, 5)):
        plan = Plan(star(2), layout, (ring, False), where)
        assert ends(plan, 5) == [(outer, 0), (0, 5), (5, 0), (0, outer)]


def test_rooms_are_those_that_any_part_of_a_step_needs() -> None:
    """A window has the buffers of one part after another, by the names of their pools."""
    u, old, v = Read("u", (0, 0)), Read("old", (0, 0)), Read("v", (0, 0))
    push = Stage("push", {"u": u - Read("old", (1, 0))}, ((0, 1),) * 2, {"most": Fold("max", u)})
    turn = Stage("turn", {"v": v + Scalar("most") * old}, ((0, 0),) * 2)
    fields = tuple(Field(name, "float32") for name in ("u", "old", "v"))
    scalars = {"most": Folded()}
    program = Program("late", fields, (push, turn), renames={"old": "u"}, scalars=scalars)
    plan, placement = planned(with_formers(program), (60, 40), "gpu", 24_000)
    assert plan.n_rooms == {"u": 3, "v": 1, "former_1": 1}
    assert plan.n_buffers == {"u": 3, "v": 1}
    assert row_nbytes(plan, 0, 1) == 5 * 160
    # in parcels four fields come and four leave, and rows are kept in all buffers
    kept = depth_of(plan, 1)
    rows = (24_000 - kept * 5 * 160) // ((5 + 4 + 4) * 160)
    assert kept == 1 and least_skewed(plan, placement, 1, SLOTS) == -(-60 // rows)
