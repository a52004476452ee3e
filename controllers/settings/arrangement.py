# SPDX-License-Identifier: MIT
"""Arrangements: the cuts and the order of places that links suggest, where the user left them open.

Weights, blocks dealt in turn and ready layouts say who computes what; so does `partition` of the
cuts.  Where exchanges are so small that latencies alone count, all stays as it is.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from controllers.links.cuts import HEAVY_NBYTES, MOST_PLACES, Choice, choose
from controllers.links.link import Links
from controllers.program.program import Program
from controllers.settings.division import Division
from hitmap.cut import per_axis
from hitmap.layout import Layout


def is_open(
    division: Division, program: Program, layout: Layout, n_controllers: int, n_nodes: int = 1
) -> bool:
    """Whether links may have a say in how `layout`, the division's, is cut or who has its places.

    The same on all ranks: it follows from what all of them hold.
    """
    if division.kind not in ("bands", "blocks", "dims") or layout.topology is None:
        return False
    if n_controllers == 1 or layout.n_places > MOST_PLACES:
        return False
    sent = _most_sent(program, layout)
    return sent >= HEAVY_NBYTES or (n_nodes > 1 and sent > 0)


def arranged(
    division: Division,
    program: Program,
    layout: Layout,
    on_host: Sequence[bool],
    links: Links,
    fits: Callable[[Layout], bool] = lambda layout: True,
) -> tuple[Layout, Choice]:
    """The layout that is clearly better than the division's one, or this, and who has its places.

    on_host: of each controller, whether it computes in the host's memory.
    """
    choice = choose(
        program, layout, links, on_host=on_host, n_each=division.places_per_controller,
        may_cut=division.partition in (None, "blocks") and division.dims is None,
        align=per_axis("align", division.align, layout.domain.n_axes), fits=fits,
    )  # fmt: skip
    if choice.chosen.dims == choice.usual.dims:
        return layout, choice
    return Layout.grid(layout.domain, choice.chosen.dims, division.align), choice


def _most_sent(program: Program, layout: Layout) -> int:
    """Bytes that no place exceeds with what it sends and receives of all fields, about."""
    assert layout.topology is not None, "a grid of places"
    most = [max(box.extent[axis] for box in layout.owned) for axis in range(layout.domain.n_axes)]
    n_cells = 0
    for axis, n_parts in enumerate(layout.topology.dims):
        if n_parts > 1:
            face = int(np.prod([count for other, count in enumerate(most) if other != axis]))
            n_cells += 2 * sum(program.reach[axis]) * face
    return n_cells * sum(program.itemsize(name) for name in program.dtypes)
