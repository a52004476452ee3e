# SPDX-License-Identifier: MIT
"""How many cells places must receive at least, by what their cells depend on.

Halos of several steps are boxes of several times the reach; what the steps read within them is
less for most stencils.  The excess that is printed is over that.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from controllers.plan.chunks.chunks import ChunkOutline
from controllers.program.steps import own_reach
from controllers.program.sweep import Sweep, Version
from hitmap.region import Region
from hitmap.shape import Shape

if TYPE_CHECKING:
    from controllers.plan.plan import Plan


def cells_needed(plan: Plan, version: Version) -> int:
    """Cells of `version` that all places together must receive per step of the plan.

    >>> from controllers import Stencil
    >>> from controllers.run.dry_run import dry_run
    >>> corners = Stencil.of("c", [(-1, 1), (-1, 1)], [1, 0, 1, 0, 0, 0, 1, 0, 1], 4)
    >>> plan = dry_run(corners.program("float32"), (4, 4), 2, steps_per_launch=2).plan
    >>> [(pattern.n_cells, cells_needed(plan, one)) for one, pattern in plan.exchanges.items()]
    [(16, 12)]
    """
    count = plan.steps_per_launch
    if count == 1 or plan.n_launches > 1 or isinstance(plan, ChunkOutline):
        return plan.exchanges[version].n_cells_needed
    (sweep,) = plan.sweeps
    computed, field = sweep.cells, version.field
    low, high = (tuple(count * cells for cells in end) for end in zip(*own_reach(sweep.stage)))
    # what is outside the domain is made, not received
    beyond = [tuple(n * wraps for n, wraps in zip(end, plan.periodic)) for end in (low, high)]
    sent = plan.layout.domain.grow(*beyond)
    found: dict[tuple[Shape, Shape, Shape], int] = {}       # most places are alike
    total = 0
    for owned in plan.layout.owned:
        if not owned.empty:
            back = tuple(-first for first in owned.lower)
            around = owned.grow(low, high)
            key = owned.shift(back), (computed & around).shift(back), (sent & around).shift(back)
            if key not in found:
                found[key] = _needed(sweep, field, *key)
            total += found[key]
    return total


def _needed(
    sweep: Sweep, field: str, owned: Shape, computed: Shape, sent: Shape
) -> int:
    """Cells of `sent` beside `owned` that the sweep's steps read; those `computed` change."""
    around: dict[str, list[tuple[int, ...]]] = {}
    own = sweep.leader
    for read in sweep.stage.reads:
        around.setdefault(read.field, []).append(read.offset)
    values = Region.of([owned])     # that must be known after the steps that are still left
    read_at_all = Region.of([])
    for _ in range(sweep.count):
        changed = values & computed
        read_at_all = read_at_all | _moved(changed, around.get(field, []))
        values = (values - computed) | _moved(changed, around[own])
    return (((values if field == own else read_at_all) & sent) - owned).n_cells


def _moved(cells: Region, offsets: list[tuple[int, ...]]) -> Region:
    """The cells at any of `offsets` from one of `cells`."""
    boxes = Region.of(Shape(offset, tuple(step + 1 for step in offset)) for offset in offsets).boxes
    return Region.of(
        box.grow(tuple(-first for first in some.lower), tuple(end - 1 for end in some.upper))
        for box in cells.boxes
        for some in boxes
    )
