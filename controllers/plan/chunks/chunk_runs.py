# SPDX-License-Identifier: MIT
"""Runs: chunks of a device that follow one another, and in which order they are computed.

Every other run is *backward*, from its highest rows to its lowest.  So neighbours come to the rows
between them at the same time, and each has what the other one made of them in the pass before long
before it needs it.
"""
# docs/decisions/0101-neighbours-meet-at-the-same-time.md
from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from controllers.plan.operation import Location
from hitmap.layout import Layout
from hitmap.shape import Shape


def runs_of(layout: Layout, locations: Sequence[Location]) -> tuple[tuple[int, ...], ...]:
    """The places of each run as they are computed; runs by their rows.

    >>> devices = [Location(controller=number) for number in (0, 0, 0, 1, 1, 0)]
    >>> runs_of(Layout.bands(Shape.of_extent((12, 4)), 6), devices)
    ((0, 1, 2), (4, 3), (5,))
    """
    found: dict[tuple[int, int], list[list[int]]] = {}
    for place, where in enumerate(locations):
        runs, box = found.setdefault((where.rank, where.controller), []), layout.owned[place]
        if box.empty:
            continue
        if not runs or layout.owned[runs[-1][-1]].upper[0] != box.lower[0]:
            runs.append([])
        runs[-1].append(place)
    every = sorted(chain(*found.values()), key=lambda run: layout.owned[run[0]].lower)
    return tuple(tuple(run[:: -1 if number % 2 else 1]) for number, run in enumerate(every))


def is_backward(run: Sequence[int]) -> bool:
    """Whether a run is computed from its highest rows to its lowest."""
    return run[0] > run[-1]


def kept(box: Shape, own: Shape, moved: int) -> Iterator[Shape]:
    """The rows of a window that a chunk does not own, in parts that can be moved in this order.

    moved: by how many rows the window has moved; each part is moved by as many the other way, and
    does not lie over what it becomes.

    >>> box, own = Shape((2,), (10,)), Shape((7,), (10,))
    >>> [str(part) for part in kept(box, own, 3)]
    ['[2:5]', '[5:7]']
    """
    if moved > 0:
        for low in range(box.lower[0], own.lower[0], moved):
            yield box.slab(0, low, min(low + moved, own.lower[0]))
    elif moved:
        for high in range(box.upper[0], own.upper[0], moved):
            yield box.slab(0, max(high + moved, own.upper[0]), high)
