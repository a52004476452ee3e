# SPDX-License-Identifier: MIT
"""The places that a division makes of a domain, on the controllers that there are."""
from __future__ import annotations

from collections.abc import Callable, Iterator

from controllers.links.link import Links
from controllers.placement.placement import Controllers, Placement
from controllers.plan.field_layouts import alike
from controllers.program.program import Program
from controllers.settings.arrangement import arranged, is_open
from controllers.settings.division import Division
from hitmap.layout import MAX_BLOCKS, Layout
from hitmap.shape import Shape
from hitmap.strided import Geometry


def divide(
    controllers: Controllers,
    program: Program,
    domain: Shape,
    division: Division,
    links: Callable[[], Links | None] = lambda: None,
) -> tuple[Layout, Placement]:
    """The domain cut into places, and where these are.

    Into more, in equal parts, where a tile would exceed the largest single allocation of a device
    and the division leaves their number open; ValueError where no number of places helps.
    links: between the controllers, collective; asked for where they may have a say.
    """
    n_controllers = len(controllers.locations)
    if division.is_dealt:
        layout = division.layout_of(domain, n_controllers)
        return layout, controllers.in_turn(layout.n_places)
    for finer in _divisions(controllers, program, domain, division):
        several = division.finer(finer)
        layout = several.layout_of(domain, n_controllers)
        if _fits(controllers, program, layout):
            return _arranged(controllers, program, several, layout, links)
    raise ValueError(
        f"no {division.kind} of {domain} have tiles of at most "
        f"{controllers.largest_bytes} bytes, the largest allocation of a device, and at most "
        f"{MAX_BLOCKS} places; use partition='blocks', a smaller field or more devices"
    )


def _arranged(
    controllers: Controllers,
    program: Program,
    division: Division,
    layout: Layout,
    links: Callable[[], Links | None],
) -> tuple[Layout, Placement]:
    """`layout` in the order of ranks, or what the links suggest in place of it."""
    n_each, n_controllers = division.places_per_controller, len(controllers.locations)
    known = None
    if is_open(division, program, layout, n_controllers, controllers.n_nodes):
        known = links()
    if known is None:
        return layout, controllers.consecutive(n_each)
    layout, choice = arranged(
        division, program, layout, [where.shares_host for where in controllers.locations], known,
        lambda other: _fits(controllers, program, other),
    )  # fmt: skip
    return layout, controllers.consecutive(n_each, choice.chosen.order, str(choice))


def _fits(controllers: Controllers, program: Program, layout: Layout) -> bool:
    """Whether no tile exceeds what a device can allocate at once."""
    return largest_tile(program, layout) <= controllers.largest_bytes


def _divisions(
    controllers: Controllers, program: Program, domain: Shape, division: Division
) -> Iterator[int]:
    """Into how many parts to divide each place: 1, then as many as the bytes need at the least."""
    yield 1
    if division.is_exact:
        return
    n_places = division.places_per_controller * len(controllers.locations)
    n_bytes = domain.n_cells * program.largest_itemsize
    finer = max(2, -(-n_bytes // (n_places * controllers.largest_bytes)))
    while finer <= min(max(domain.extent), MAX_BLOCKS // n_places):
        yield finer
        finer += -(-finer // 16)


def largest_tile(program: Program, layout: Layout) -> int:
    """Bytes of the largest tile of a field of `program`.

    With its halo on all sides, and rows that lie as in the memory of a device.
    """
    low, high = zip(*program.reach)
    boundaries, n_axes = program.boundaries.values(), program.n_axes
    points = (any(one.is_half(axis) for one in boundaries) for axis in range(n_axes))
    high = tuple(map(sum, zip(high, points)))
    tiles = [
        alike(owned.grow(low, high), (), owned.lower[-1])
        for owned in layout.owned if not owned.empty
    ]  # fmt: skip
    most = max(Geometry.padded(tile).n_elements for tile in tiles)
    return most * program.largest_itemsize
