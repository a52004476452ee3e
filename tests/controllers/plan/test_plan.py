# SPDX-License-Identifier: MIT
"""Plans as text and as simulations: neither devices nor MPI."""
from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from plan_simulation import Simulation
from sample import sample

from controllers.language.weights import Stencil
from controllers.plan import Edge, Location, Operation, Plan
from controllers.program.reference import reference_run
from hitmap import Layout, Shape

HEAT = Stencil.of("heat", [(-1, 1), (-1, 1)], [0, 1, 0, 1, 0, 1, 0, 1, 0], 4)
BOX = Stencil.of("box", [(-1, 1), (-1, 1)], [1, 2, 3, 4, 5, 6, 7, 8, 9], 45)
FIXED = (False, False)


def heat_plan(n_places: int, **options: object) -> Plan:
    locations = [Location(rank) for rank in range(n_places)]
    layout = Layout.bands(Shape.of_extent((9, 8)), n_places)
    return Plan(HEAT.program("float32"), layout, FIXED, locations, **options)  # type: ignore[arg-type]


def test_the_plan_of_three_places_reads_as_in_the_docs() -> None:
    page = Path(__file__).parents[3] / "docs" / "plan.md"
    assert str(documented_plan()) in page.read_text("utf-8")


def documented_plan() -> Plan:
    """Three places on two ranks: one in host memory, two on GPUs of the second rank."""
    gpu = Location(1, 0, shares_host=False, device="GPU")
    return Plan(
        HEAT.program("float32"),
        Layout.bands(Shape.of_extent((30, 20)), 3),
        FIXED,
        [Location(0, 0, device="CPU"), gpu, replace(gpu, controller=1)],
        overlap="on",
    )


def random_plan(rng: random.Random) -> Plan:
    n_axes = rng.randint(1, 3)
    shape = [(-rng.randint(0, 2), rng.randint(0, 2)) for _ in range(n_axes)]
    n_weights = int(np.prod([high - low + 1 for low, high in shape]))
    weights = [rng.choice([0, 0, 1, 0.5, -2, 0.3]) for _ in range(n_weights)]
    weights[rng.randrange(n_weights)] = 1.5
    program = Stencil.of("random", shape, weights, rng.choice([1, 4, 3.7])).program("float32")
    n_places = rng.choice([1, 2, 3, 4, 6])
    domain = Shape.of_extent([rng.randint(1, 9) for _ in range(n_axes)])
    layout = rng.choice(
        [
            Layout.bands(domain, n_places),
            Layout.blocks(domain, n_places),
            Layout.weighted(domain, [rng.choice([1, 5, 50]) for _ in range(n_places)]),
        ]
    )
    shares = {(rank, controller): rng.random() < 0.5 for rank in range(3) for controller in (0, 1)}
    homes = sorted((rng.randint(0, 2), rng.randint(0, 1)) for _ in range(n_places))
    locations = [Location(*home, shares_host=shares[home]) for home in homes]
    periodic = tuple(rng.random() < 0.5 for _ in range(n_axes))
    return Plan(program, layout, periodic, locations, overlap=rng.choice(["on", "off", "auto"]))


@pytest.mark.parametrize("seed", sample(range(60), 3))
def test_every_order_that_a_plan_allows_gives_the_bits_of_the_reference(seed: int) -> None:
    rng = random.Random(seed)
    plan = random_plan(rng)
    field = np.random.default_rng(seed).random(plan.layout.domain.extent, np.float32)
    n_steps = rng.randint(0, 5)
    expected = reference_run(plan.program, field, n_steps, plan.periodic)
    for order in range(2):
        got = Simulation(plan, {"u": field}, random.Random(order)).run(n_steps)["u"]
        assert np.array_equal(got, expected), f"order {order} of\n{plan}"


def without(plan: Plan, number: int, edge: Edge) -> tuple[Operation, ...]:
    """The operations, without one edge of operation `number` and of its twin in the other step."""
    twin = number + len(plan.operations) // 2
    position = plan.operations[number].after.index(edge)
    return tuple(
        replace(o, after=o.after[:position] + o.after[position + 1 :])
        if o.number in (number, twin)
        else o
        for o in plan.operations
    )


def follows_from_other_ranks(plan: Plan, number: int, edge: Edge) -> bool:
    """Whether the messages of other ranks happen to imply an edge; a rank cannot know."""
    operations = without(plan, number, edge)
    sends = {(o.bundle, o.phase): o.number for o in operations if o.verb == "send"}
    steps = 4 * plan.n_phases
    todo, seen = [(steps, number)], set()
    while todo:
        step, current = todo.pop()
        if step < 0 or (step, current) in seen:
            continue
        seen.add((step, current))
        operation = operations[current]
        todo += [(step - e.steps_back, e.number) for e in operation.after]
        if operation.verb == "receive":
            todo.append((step, sends[operation.bundle, operation.phase]))
    return (steps - edge.steps_back, edge.number) in seen


def local_edges() -> list[object]:
    plan = documented_plan()
    return [
        pytest.param(o.number, e, id=f"{o.number} {o.verb} after {e.number}, {e.steps_back} back")
        for o in plan.operations
        if o.phase == 0
        for e in o.after
        if not follows_from_other_ranks(plan, o.number, e)
    ]


@pytest.mark.parametrize(("number", "edge"), local_edges())
def test_no_edge_of_a_plan_can_be_left_out(number: int, edge: Edge) -> None:
    plan = documented_plan()
    plan.operations = without(plan, number, edge)
    field = np.random.default_rng(0).random((30, 20), np.float32)
    expected = reference_run(plan.program, field, 8, FIXED)
    fields = {"u": field}
    results = (Simulation(plan, fields, random.Random(n)).run(8)["u"] for n in range(200))
    assert any(not np.array_equal(got, expected) for got in results)


def test_only_a_ranks_own_operations_are_recorded_for_it() -> None:
    layout = Layout.blocks(Shape.of_extent((12, 12)), 4)
    locations = [Location(rank) for rank in range(4)]
    program = BOX.program("float32")
    whole = Plan(program, layout, FIXED, locations)
    for rank in range(4):
        part = Plan(program, layout, FIXED, locations, only_rank=rank)
        mine = [o for o in whole.operations if o.place == rank]
        assert [(o.verb, o.reads, o.writes) for o in part.operations] == [
            (o.verb, o.reads, o.writes) for o in mine
        ]
        assert [len(o.after) for o in part.operations] == [len(o.after) for o in mine]


def test_a_single_place_does_nothing_but_launch() -> None:
    assert [operation.verb for operation in heat_plan(1).operations] == ["launch", "launch"]


def test_contiguous_rows_in_host_memory_are_sent_without_packing() -> None:
    verbs = [o.verb for o in heat_plan(3).operations if o.phase == 0]
    assert sorted(set(verbs)) == ["launch", "receive", "send"]
    assert verbs.count("send") == verbs.count("receive") == 4


@pytest.mark.parametrize("overlap", ["on", "off"])
def test_borders_are_launched_first_when_overlap_is_on(overlap: str) -> None:
    launches = [
        o for o in heat_plan(2, overlap=overlap).operations if o.verb == "launch" and o.phase == 0
    ]
    boxes = [str(o.writes[0].cells[0]) for o in launches if o.place == 0]
    expected = {"on": ["[4:5, 1:7]", "[1:4, 1:7]"], "off": ["[1:5, 1:7]"]}
    assert boxes == expected[overlap]


def test_automatic_overlap_leaves_small_fields_alone_and_columns_on_cores() -> None:
    def n_launches(extent: tuple[int, int], shares_host: bool, axis: int = 0) -> int:
        layout = Layout.blocks(Shape.of_extent(extent), 2, (axis,))
        locations = [Location(rank, shares_host=shares_host) for rank in range(2)]
        plan = Plan(HEAT.program("float32"), layout, FIXED, locations)
        return sum(o.verb == "launch" and o.phase == 0 for o in plan.operations)

    assert n_launches((1024, 1024), shares_host=True) == 2
    assert n_launches((16384, 16384), shares_host=True) == 4
    assert n_launches((16384, 16384), shares_host=True, axis=1) == 2
    assert n_launches((16384, 16384), shares_host=False, axis=1) == 4
    assert n_launches((64, 64), shares_host=False) == 2
    assert n_launches((16384, 16384), shares_host=False) == 4


def test_a_plan_needs_one_location_per_place() -> None:
    layout = Layout.bands(Shape.of_extent((9, 8)), 3)
    with pytest.raises(ValueError, match="3 places but 1 locations"):
        Plan(HEAT.program("float32"), layout, FIXED, [Location()])
