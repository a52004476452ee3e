# SPDX-License-Identifier: MIT
"""Which axes are cut, how often, and which controller computes which part: by what links cost.

A cut across the first axis sends runs of memory, cuts across several axes send less: how much each
counts depends on the links.  What is done without a model, bands or blocks in the order of ranks,
stays unless another way is clearly better.  All of it follows from what all ranks hold.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from controllers.links.link import Links
from controllers.links.order import MOST_EXACT, best_order, quick_seconds
from controllers.links.traffic import Traffic
from controllers.program.program import Program
from hitmap.layout import Layout
from hitmap.shape import Shape
from hitmap.topology import factorisations

CLEARLY = 0.8           # of what is usual: what models and measurements of links can tell apart
LEAST_GAIN_S = 20e-6    # per exchange
LEAST_SHARE = 0.05      # ... and of what computing a step takes, about
HEAVY_NBYTES = 1 << 20  # of messages of one place: below latencies count, which cuts add to
MOST_GRIDS = 4          # that are looked at closely, with more places than orders are searched for
MOST_SEARCHED = 2       # ... of which for the best an order is searched
MOST_PLACES = 256       # ... and with more places none: that would take seconds

Dims = tuple[int, ...]


@dataclass(frozen=True)
class Cuts:
    """How places are cut, and who has them.

    order: the controller of each position, as in `Traffic`.  seconds: of an exchange, at the
    slowest controller.
    """

    dims: Dims
    order: tuple[int, ...]
    seconds: float

    def __str__(self) -> str:
        dims, usual = " x ".join(map(str, self.dims)), tuple(range(len(self.order)))
        order = "in order of rank" if self.order == usual else f"by {numbered(self.order)}"
        return f"{dims} places {order}"


@dataclass(frozen=True)
class Choice:
    """What was chosen, and what else there was: the usual way, and the next best grid."""

    chosen: Cuts
    usual: Cuts
    next_best: Cuts | None

    def __str__(self) -> str:
        usual_ms, chosen_ms = 1e3 * self.usual.seconds, 1e3 * self.chosen.seconds
        if self.chosen == self.usual:
            lines = [f"placement: {self.usual}, as usual: an exchange takes {usual_ms:.3g} ms"]
        else:
            lines = [
                f"placement: {self.chosen}: an exchange takes {chosen_ms:.3g} ms",
                f"  usual: {self.usual}, {usual_ms:.3g} ms",
            ]
        if self.next_best is not None:
            next_s = self.next_best.seconds
            little = ", too little to be gained" * (next_s < self.chosen.seconds)
            lines.append(f"  next best: {self.next_best}, {1e3 * next_s:.3g} ms{little}")
        return "\n".join([*lines, "  at the slowest place, by the links between controllers"])


def cheapest(
    traffics: Mapping[Dims, Traffic], links: Links, below: float = math.inf
) -> list[Cuts]:
    """The best order of each grid that has one below a limit, or below all before it; best first.

    Of equals the first.
    """
    found: list[Cuts] = []
    if links.n_controllers > MOST_EXACT:    # searching an order takes long then
        quick = {dims: quick_seconds(traffic, links) for dims, traffic in traffics.items()}
        best = sorted(traffics, key=quick.__getitem__)[:MOST_SEARCHED]
        traffics = {dims: traffics[dims] for dims in best}
    for dims, traffic in traffics.items():
        order = best_order(traffic, links, below)
        if order is not None:
            found.insert(0, Cuts(dims, order.controllers, order.seconds))
            below = order.seconds
    return found


def choose(
    program: Program,
    usual: Layout,
    links: Links,
    *,
    on_host: Sequence[bool],
    n_each: int = 1,
    may_cut: bool = True,
    align: Sequence[int] = (),
    fits: Callable[[Layout], bool] = lambda layout: True,
) -> Choice:
    """The cuts and the order that are clearly better than the usual ones, or these.

    on_host: of each controller, whether it computes in the host's memory.  n_each: places on each
    controller.  may_cut: whether other grids than that of `usual` may be taken, of those that fit.
    """
    if len(on_host) != links.n_controllers:
        raise ValueError(
            f"links: {len(on_host)} controllers need as many, got those of {links.n_controllers}; "
            f"leave them out, or give those between the controllers of this run"
        )
    assert usual.topology is not None, "a grid of places"
    dims, domain = usual.topology.dims, usual.domain
    traffic = Traffic.of(program, usual, on_host, n_each)
    before = Cuts(dims, tuple(range(len(on_host))), traffic.seconds(links))
    layouts = {dims: usual}
    if may_cut:
        grids = _grids(usual, tuple(align) or (1,) * domain.n_axes)
        layouts |= {dims: layout for dims, layout in grids if fits(layout)}
    traffics = {
        dims: traffic if layout is usual else Traffic.of(program, layout, on_host, n_each)
        for dims, layout in layouts.items()
    }
    gain_s = max(LEAST_GAIN_S, LEAST_SHARE * _computing_s(program, usual, links))
    goal = min(CLEARLY * before.seconds, before.seconds - gain_s)
    better = cheapest(traffics, links, goal)
    chosen = better[0] if better else before
    as_numbered = [Cuts(d, before.order, t.seconds(links)) for d, t in traffics.items()]
    told = [(one.dims, one.order) for one in (chosen, before)]
    others = [one for one in (*better, *as_numbered) if (one.dims, one.order) not in told]
    return Choice(chosen, before, min(others, key=lambda one: one.seconds, default=None))


def _computing_s(program: Program, usual: Layout, links: Links) -> float:
    """What a step takes if each byte is moved once, as fast as the slowest controller packs."""
    most = max(box.n_cells for box in usual.owned)
    return most * program.bytes_per_cell / min(links.packing)


def _grids(usual: Layout, align: Sequence[int]) -> Iterator[tuple[Dims, Layout]]:
    """The grids of as many places, each with cells, those with the smallest cuts first."""
    domain, n_places = usual.domain, usual.n_places
    most = [-(-count // step) for count, step in zip(domain.extent, align)]
    every = (
        dims for dims in factorisations(n_places, domain.n_axes, frozenset(range(domain.n_axes)))
        if all(n <= limit for n, limit in zip(dims, most))
    )  # fmt: skip
    ordered = sorted(every, key=lambda dims: (_area(dims, domain), [-n for n in dims]))
    for dims in ordered if n_places <= MOST_EXACT else ordered[:MOST_GRIDS]:
        yield dims, Layout.grid(domain, dims, align)


def _area(dims: Dims, domain: Shape) -> int:
    """The cells on both sides of a place inside the grid, for a reach of 1."""
    return sum(
        min(2, n - 1) * math.prod(
            -(-count // parts)
            for other, (count, parts) in enumerate(zip(domain.extent, dims)) if other != axis
        )
        for axis, n in enumerate(dims)
    )  # fmt: skip


def numbered(order: Sequence[int]) -> str:
    """The numbers of controllers, runs of them together.

    >>> numbered((3, 2, 4, 5, 6, 0))
    'controllers 3, 2, 4-6, 0'
    """
    runs: list[list[int]] = []
    for number in order:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return "controllers " + ", ".join(
        f"{run[0]}-{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs
    )
