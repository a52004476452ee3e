# SPDX-License-Identifier: MIT
"""What an exchange costs, from made-up times of the operations of real plans."""
from __future__ import annotations

from collections.abc import Mapping

import pytest

from controllers.engine import Timed
from controllers.language.weights import Stencil
from controllers.plan import ExchangeEnds, Location, Overlap, Plan
from controllers.report.exchange_time import PlaceTime, place_times
from hitmap import Layout, Shape

CROSS = Stencil.of("cross", [(-1, 1), (-1, 1)], [0, 1, 0, 1, 0, 1, 0, 1, 0], 4)
FORWARD = Stencil.of("forward", [(-1, 0), (0, 0)], [1, 1], 2)
Times = Mapping[str, tuple[int, int]]


def plan_of(
    n_places: int, overlap: Overlap, stencil: Stencil = CROSS, *, one_device: bool = False
) -> Plan:
    layout = Layout.bands(Shape.of_extent((30, 20)), n_places)
    where = [Location(0 if one_device else rank, 0) for rank in range(n_places)]
    only_rank = None if one_device else 1
    program = stencil.program("float32")
    return Plan(program, layout, (False, False), where, overlap=overlap, only_rank=only_rank)


def timed(plan: Plan, step: int, times: Times) -> list[Timed]:
    """The operations of one step; launches are `border`, `inner`, others `verb from place`."""
    found: list[Timed] = []
    for operation in plan.operations:
        if operation.phase != step % 2:
            continue
        name = operation.verb
        if operation.verb == "launch":
            (box,) = operation.writes[0].cells
            name = f"{'inner' if box.extent[0] > 1 else 'border'} {operation.place}"
        elif operation.bundle is not None:
            name = f"{name} {plan.bundles[operation.bundle].source}"
        if name in times:
            found.append((operation, *times[name]))
    return found


def measured(plan: Plan, *steps: Times) -> dict[int, PlaceTime]:
    pair = tuple(timed(plan, number, times) for number, times in enumerate(steps))
    return place_times(plan, ExchangeEnds(plan), [pair])


def test_without_overlap_the_gap_between_two_kernels_is_exchange_and_not_hidden() -> None:
    plan = plan_of(3, "off")
    times = measured(
        plan,
        {"inner 1": (0, 100), "receive 0": (10, 130), "receive 2": (10, 90)},
        {"inner 1": (150, 250)},
    )[1]
    assert (times.compute_ns, times.n_steps, times.n_exchanges) == (200, 2, 1)
    assert times.exchange_ns == times.exposed_ns == 50
    assert times.waits_ns == {0: 30, 2: 0}      # the second came while the kernel ran


def test_with_overlap_what_lies_beside_inner_kernels_is_hidden() -> None:
    plan = plan_of(3, "on")
    first = {"border 1": (0, 10), "inner 1": (12, 100), "receive 0": (5, 130), "receive 2": (5, 90)}
    times = measured(plan, first, {"inner 1": (105, 120), "border 1": (140, 150)})[1]
    # from 10 to 140, kernels from 12 to 100 and from 105 to 120
    assert times.exchange_ns == 130
    assert times.exposed_ns == 130 - 88 - 15
    assert times.waits_ns == {0: 5 + 10, 2: 0}  # 100 to 105 and 120 to 130


def test_a_place_that_only_receives_may_begin_when_its_halo_is_free() -> None:
    plan = plan_of(2, "off", FORWARD)
    times = measured(plan, {"inner 1": (0, 100), "receive 0": (0, 104)}, {"inner 1": (110, 200)})[1]
    assert (times.exchange_ns, times.exposed_ns, times.waits_ns) == (10, 10, {0: 4})


def test_kernels_of_other_places_of_the_device_hide_an_exchange_too() -> None:
    plan = plan_of(2, "off", one_device=True)
    times = measured(
        plan,
        {"inner 0": (0, 10), "inner 1": (10, 30)},
        {"inner 0": (35, 45), "inner 1": (45, 60)},
    )
    assert (times[0].exchange_ns, times[0].exposed_ns) == (25, 5)
    assert (times[1].exchange_ns, times[1].exposed_ns) == (15, 5)
    assert times[0].waits_ns == {}      # no neighbour on another controller


def test_a_single_place_exchanges_nothing() -> None:
    plan = plan_of(1, "off", one_device=True)
    times = measured(plan, {"inner 0": (0, 10)}, {"inner 0": (30, 40)})[0]
    assert (times.n_exchanges, times.compute_ns) == (1, 20)
    assert (times.exchange_ns, times.exposed_ns, times.waits_ns) == (0, 0, {})


def test_a_last_step_alone_counts_for_computing_only() -> None:
    times = measured(plan_of(3, "off"), {"inner 1": (0, 10)})[1]
    assert (times.n_steps, times.n_exchanges, times.compute_ns) == (1, 0, 10)
    assert times.exchange_ns == 0


@pytest.mark.parametrize("overlap", ["on", "off"])
def test_ends_of_exchanges_are_the_kernels_at_the_border_and_what_fills_halos(
    overlap: Overlap,
) -> None:
    plan = plan_of(3, overlap)
    ends = ExchangeEnds(plan)
    by_number = {operation.number: operation for operation in plan.operations}
    rows = {by_number[n].writes[0].cells[0].extent[0] for n in ends.producers}
    assert rows == ({1} if overlap == "on" else {10})
    assert ends.producers == ends.consumers
    assert sorted(ends.arrivals.values()) == [(1, 0), (1, 0), (1, 2), (1, 2)]
    assert {by_number[n].verb for n in ends.arrivals} == {"receive"}


def test_on_a_device_cells_have_arrived_when_they_are_uploaded_or_unpacked() -> None:
    layout = Layout.blocks(Shape.of_extent((30, 20)), 4)
    where = [Location(rank, 0, shares_host=False) for rank in range(4)]
    plan = Plan(CROSS.program("float32"), layout, (False, False), where)
    by_number = {operation.number: operation for operation in plan.operations}
    arrivals = ExchangeEnds(plan).arrivals
    assert {by_number[n].verb for n in arrivals} == {"upload", "unpack"}
    for number, (place, neighbour) in arrivals.items():
        bundle = by_number[number].bundle
        assert bundle is not None
        assert (plan.bundles[bundle].target, plan.bundles[bundle].source) == (place, neighbour)
