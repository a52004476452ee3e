# SPDX-License-Identifier: MIT
"""Orders, cuts and sets of devices by tables of links, against all that there are."""
from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from random import Random

import pytest
from sample import sample
from synthetic import SyntheticProgram
from synthetic_links import any_links, nodes_of, shortest

from controllers.links.cuts import cheapest, choose, numbered
from controllers.links.link import Link, Links
from controllers.links.order import MOST_EXACT, best_order
from controllers.links.subset import fastest_subset, together
from controllers.links.traffic import Traffic
from controllers.plan import Location, Plan
from controllers.plan.rate import Rate
from controllers.plan.size import place_sizes
from controllers.program.program import Program
from hitmap import Layout, Shape
from hitmap.topology import factorisations

BOX = SyntheticProgram(8, 1, 1, (256, 256, 256)).program()
SQUARE = SyntheticProgram(8, 1, 2, (4096, 4096)).program()


def traffic_of(program: Program, extent: tuple[int, ...], dims: tuple[int, ...]) -> Traffic:
    layout = Layout.grid(Shape.of_extent(extent), dims)
    return Traffic.of(program, layout, [True] * layout.n_places)


def test_a_link_takes_a_latency_per_message_and_its_bytes() -> None:
    assert Link(1e-5, 1e9).seconds(2e6, 3) == pytest.approx(2.03e-3)
    both = Link(1e-6, 2e9).then(Link(2e-6, 2e9))
    assert (both.latency_s, both.bytes_per_s) == (pytest.approx(3e-6), pytest.approx(1e9))


def test_links_are_a_square() -> None:
    links = any_links(Random(1), 3)
    with pytest.raises(ValueError, match="a square"):
        Links(links.between, (1e9,))


def test_traffic_is_what_the_plan_sends() -> None:
    layout = Layout.grid(Shape.of_extent((64, 64, 64)), (2, 2, 1))
    plan = Plan(BOX, layout, BOX.periodic, [Location(n) for n in range(4)])
    traffic = Traffic.of(BOX, layout, [True] * 4)
    sizes = place_sizes(plan)
    for place, size in enumerate(sizes):
        sent = [of for (source, _), of in traffic.messages.items() if source == place]
        assert sum(n for n, _ in sent) == size.sends
        assert sum(nbytes for _, nbytes in sent) == size.bytes_sent


def test_only_what_is_no_run_of_memory_is_packed() -> None:
    domain = (64, 64, 64)
    assert not any(traffic_of(BOX, domain, (4, 1, 1)).packed)
    rows, columns = (traffic_of(BOX, domain, dims) for dims in ((1, 4, 1), (1, 1, 4)))
    # a row moves the lines that it lies in, a cell a whole line
    assert 0 < 5 * max(rows.packed) < max(columns.packed)


def test_places_of_one_controller_send_each_other_nothing() -> None:
    layout = Layout.bands(Shape.of_extent((64, 64, 64)), 4)
    traffic = Traffic.of(BOX, layout, [True, False], 2)
    assert set(traffic.messages) == {(0, 1), (1, 0)}


@pytest.mark.parametrize("number", sample(range(30), 10))
def test_cuts_and_order_are_the_optimum_of_all(number: int) -> None:
    random = Random(number)
    n = (*range(2, MOST_EXACT), *[MOST_EXACT] * 4)[number % 10]
    links = any_links(random, n) if number % 3 else nodes_of(2, n // 2, random)
    n = links.n_controllers
    program, extent = (BOX, (256,) * 3) if number % 2 else (SQUARE, (4096,) * 2)
    grids = factorisations(n, len(extent), frozenset(range(len(extent))))
    traffics = {dims: traffic_of(program, extent, dims) for dims in grids}
    best, *_ = cheapest(traffics, links)
    assert best.seconds == pytest.approx(min(shortest(t, links) for t in traffics.values()))
    assert traffics[best.dims].seconds(links, best.order) == pytest.approx(best.seconds)


def test_of_equal_orders_the_usual_one_is_taken() -> None:
    links = Links.uniform(8, Link(1e-5, 1e9), 1e11)
    order = best_order(traffic_of(BOX, (256,) * 3, (2, 2, 2)), links)
    assert order is not None and order.controllers == tuple(range(8))


def test_no_order_below_a_limit_is_none() -> None:
    traffic, links = traffic_of(BOX, (256,) * 3, (8, 1, 1)), any_links(Random(0), 8)
    best = best_order(traffic, links)
    assert best is not None
    assert best_order(traffic, links, best.seconds) is None


@pytest.mark.parametrize("n_nodes", sample([3, 4, 8], 3))
def test_neighbours_are_put_in_one_node_beyond_what_can_be_enumerated(n_nodes: int) -> None:
    n = 4 * n_nodes
    traffic = traffic_of(SQUARE, (4096,) * 2, (n, 1))
    found = best_order(traffic, nodes_of(n_nodes, 4, Random(n)))
    assert found is not None and n > MOST_EXACT
    # a place with one neighbour far away is the slowest, as in the order of nodes
    assert found.seconds == pytest.approx(traffic.seconds(nodes_of(n_nodes, 4)))


def test_a_slow_link_is_at_an_end_of_the_row() -> None:
    fast, slow = Link(1e-6, 1e10), Link(1e-6, 1e9)
    rows = tuple(tuple(slow if 1 in (a, b) else fast for b in range(4)) for a in range(4))
    found = best_order(traffic_of(SQUARE, (4096,) * 2, (4, 1)), Links(rows, (1e11,) * 4))
    assert found is not None and found.controllers.index(1) in (0, 3)


def chosen(extent: tuple[int, ...], links: Links, **options: bool) -> tuple[tuple[int, ...], str]:
    n, program = links.n_controllers, BOX if len(extent) == 3 else SQUARE
    usual = Layout.bands(Shape.of_extent(extent), n)
    choice = choose(program, usual, links, on_host=[True] * n, **options)
    return choice.chosen.dims, str(choice)


def test_a_long_domain_is_cut_where_it_is_long() -> None:
    links = Links.uniform(4, Link(1e-6, 1e9), 1e10)
    dims, text = chosen((256, 1 << 18), links)
    assert dims == (1, 4)
    assert text.splitlines()[0].startswith("placement: 1 x 4 places in order of rank: an exchange")
    assert "usual: 4 x 1 places in order of rank, " in text and "next best: 2 x 2 places" in text


def test_surface_counts_where_many_share_a_volume_and_latency_where_it_is_small() -> None:
    links = Links.uniform(4, Link(1e-6, 1e9), 1e11)
    assert chosen((512, 512, 512), links)[0] == (2, 2, 1)
    slow = Links.uniform(4, Link(1e-2, 1e9), 1e11)
    dims, text = chosen((512, 512, 512), slow)
    assert dims == (4, 1, 1) and ", as usual: an exchange takes" in text


def test_what_computing_takes_long_for_is_cut_as_usual() -> None:
    dims, text = chosen((512, 512, 512), Links.uniform(4, Link(1e-6, 1e9), 1e9))
    assert dims == (4, 1, 1)
    assert "as usual" in text and "2 x 2 x 1 places in order of rank, " in text
    assert ", too little to be gained" in text


def test_cuts_that_were_asked_for_stay_and_the_order_may_change() -> None:
    links = nodes_of(2, 4, Random(2))
    dims, text = chosen((4096, 4096), links, may_cut=False)
    assert dims == (8, 1) and "placement: 8 x 1 places by controllers" in text


def test_a_gain_within_the_errors_of_links_is_none() -> None:
    random = Random(3)
    rows = [[Link(1e-6, 1e9 * random.uniform(0.9, 1.1)) for _ in range(4)] for _ in range(4)]
    links, extent = Links(tuple(map(tuple, rows)), (1e14,) * 4), (1 << 16, 1 << 16)
    traffic = traffic_of(SQUARE, extent, (4, 1))
    best = best_order(traffic, links)
    assert best is not None and best.seconds < 0.95 * traffic.seconds(links)
    dims, text = chosen(extent, links, may_cut=False)
    assert dims == (4, 1) and "in order of rank, as usual" in text


def test_runs_of_controllers_are_written_together() -> None:
    assert numbered(range(8)) == "controllers 0-7"
    assert numbered((1, 0, 2, 3)) == "controllers 1, 0, 2, 3"


def test_a_device_that_costs_more_than_it_computes_is_left_out() -> None:
    rates, n_cells = [Rate(1e-5, 1e-11), Rate(2e-5, 6e-10)], 10**8
    alone = rates[0].seconds(n_cells)
    both = fastest_subset(rates, n_cells, lambda devices: 1e-6 * (len(devices) > 1))
    assert both.devices == (0, 1) and 0.98 * alone < both.seconds < alone
    assert sum(both.cells) == pytest.approx(n_cells) and both.cells[1] > 0
    one = fastest_subset(rates, n_cells, lambda devices: 1e-4 * (len(devices) > 1))
    assert (one.devices, one.seconds) == ((0,), alone)


def test_shares_end_together_and_who_is_late_gets_none() -> None:
    rates = [Rate(1e-5, 1e-9), Rate(2e-5, 3e-9), Rate(1.0, 1e-12)]
    found = together(rates, (0, 1, 2), 10**5, lambda devices: 0.0)
    assert found.cells[2] == 0
    times = [rate.seconds(cells) for rate, cells in zip(rates, found.cells[:2])]
    assert times == pytest.approx([found.seconds] * 2)


@pytest.mark.parametrize("number", sample(range(20), 10))
def test_the_set_is_never_slower_than_any_other(number: int) -> None:
    random = Random(number)
    n = random.randint(1, 6)
    rates = [Rate(10 ** random.uniform(-6, -4), 10 ** random.uniform(-11, -8)) for _ in range(n)]
    links, n_cells = any_links(random, n), 10 ** random.randint(4, 8)

    def exchange(devices: Sequence[int]) -> float:
        pairs = zip(devices, devices[1:])
        return max((links.between[a][b].seconds(1 << 16) for a, b in pairs), default=0.0)

    best = fastest_subset(rates, n_cells, exchange)
    for count in range(1, n + 1):
        for some in combinations(range(n), count):
            assert best.seconds <= together(rates, some, n_cells, exchange).seconds


def test_many_devices_are_added_one_by_one() -> None:
    rates = [Rate(1e-5, 1e-9)] * 14 + [Rate(1e-5, 1e-7)]
    found = fastest_subset(rates, 10**7, lambda devices: 1e-5 * len(devices))
    assert 14 not in found.devices and len(found.devices) > 1
