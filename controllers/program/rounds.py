# SPDX-License-Identifier: MIT
"""Rounds: the launches between two exchanges of halos, and the cells that a place computes in each.

Once its halo is full, a place needs nobody for some steps if it computes, too, the cells around its
own that later steps read.  Which these are follows backwards from the cells that it owns: after the
last launch it needs those alone, before each sweep what that reads.  So boxes shrink from launch to
launch, by the reach of all that is computed in one.  Every place owns its cells after every launch,
so that a run may end after any.

    launch 0   [ -2 .. n+2 ]      of a stencil that reads one cell to each side,
    launch 1   [ -1 .. n+1 ]      three launches per round: the halo is three cells wide
    launch 2   [  0 .. n   ]
"""
# docs/decisions/0055-halos-of-several-launches.md
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from controllers.program.expression import Index
from controllers.program.extension import Extension
from controllers.program.liveness import Liveness
from controllers.program.stage import Stage
from controllers.program.sweep import Sweep, Version
from hitmap.region import Region
from hitmap.shape import Shape


@dataclass(frozen=True)
class Round:
    """What one place computes between two exchanges.

    computed: by launch, the cells of each sweep.  needed: by launch, of each version the cells that
    must be known of it once it is made, those outside the domain included; of version 0 as the
    launch begins.
    """

    computed: tuple[tuple[Shape, ...], ...]
    needed: tuple[Mapping[Version, Shape], ...]

    def first(self, field: str) -> Shape | None:
        """The cells of a field that must be known as the round begins; None without any."""
        return self.needed[0].get(Version(field, 0))

    def hull(self, field: str) -> Shape | None:
        """A box of all that is ever needed of a field; None without any."""
        found: Shape | None = None
        for needed in self.needed:
            for version, box in needed.items():
                if version.field == field:
                    found = box if found is None else found.hull(box)
        return found


class Surveyor:
    """Finds the rounds of places: what all of them have in common.

    domains: the cells of each field, unrolled along rings as `unrolled` does.
    """

    def __init__(
        self,
        liveness: Liveness,
        domains: Mapping[str, Shape],
        extensions: Mapping[str, Extension | None],
    ) -> None:
        self._live, self._domains, self._extensions = liveness, domains, extensions

    def round(self, owned: Mapping[str, Shape], launches: Iterable[Sequence[Sweep]]) -> Round:
        """The round of a place that owns these cells of each field.

        launches: of each, in order, the sweeps, which may be of unlike numbers of time steps.
        """
        computed: list[tuple[Shape, ...]] = []
        needed: list[Mapping[Version, Shape]] = []
        after: Mapping[str, Shape] = {}
        for sweeps in reversed([*launches]):
            boxes, versions = self._launch(owned, after, sweeps)
            computed.insert(0, boxes)
            needed.insert(0, versions)
            after = {v.field: box for v, box in versions.items() if v.number == 0}
        return Round(tuple(computed), tuple(needed))

    def _launch(
        self, owned: Mapping[str, Shape], after: Mapping[str, Shape], sweeps: Sequence[Sweep]
    ) -> tuple[tuple[Shape, ...], dict[Version, Shape]]:
        """What the sweeps of a launch compute, backwards from what is needed after it."""
        needed: dict[Version, Shape] = {}
        for field in self._domains:
            _add(needed, self._live.last(field), owned[field])
            if field in after:
                _add(needed, self._live.last(field), after[field])
        boxes: list[Shape] = []
        for sweep in reversed(sweeps):
            own = owned[sweep.stage.home]
            over = own & sweep.cells    # whether or not they are read, as without rounds
            for update in sweep.updates:
                if update.version in needed:
                    over = over.hull(needed[update.version] & sweep.cells)
            boxes.insert(0, over)
            for use in sweep.uses if not over.empty else ():
                _add(needed, use.version, self._known(use.version.field, sweep.read(use, over)))
            if not sweep.completes:
                self._keep(sweep, needed)
        return tuple(boxes), needed

    def _keep(self, sweep: Sweep, needed: dict[Version, Shape]) -> None:
        """What a sweep, with those that complete it, leaves as it is must be known before."""
        for update in sweep.updates:
            if update.version in needed:
                box = needed[update.version] & self._domains[update.version.field]
                rest = Region.of([box]) - self._live.computed(update.version)
                if not rest.empty:
                    _add(needed, self._live.before(update.version), rest.hull)

    def _known(self, field: str, box: Shape) -> Shape:
        """Those of some cells that there are, and those that they are made of."""
        extension = self._extensions[field]
        if extension is None:
            return box & self._domains[field]
        box = extension.existing(box)
        for source in extension.sources(box):
            box = box.hull(source)
        return box


def unrolled(box: Shape, whole: Shape, periodic: tuple[bool, ...], by: int) -> Shape:
    """`box` of `whole`, gone on along axes that are rings for so many cells beyond both ends."""
    beyond = tuple(by if ring else 0 for ring in periodic)
    return box if box.empty or whole.empty else box.grow(beyond, beyond)


def shown(
    box: Shape, whole: Shape, periodic: tuple[bool, ...]
) -> list[tuple[Shape, tuple[int, ...]]]:
    """The parts of a box that goes on along rings, the largest last.

    Each with how far the cells of `whole` that it shows are from it.

    >>> for part, by in shown(Shape((-2, 3), (10, 5)), Shape.of_extent((10, 4)), (True, False)):
    ...     print(part, by)
    [-2:0, 3:5] (10, 0)
    [0:10, 3:5] (0, 0)
    """
    along = []
    for low, high, first, count, ring in zip(
        box.lower, box.upper, whole.lower, whole.extent, periodic
    ):
        turns = range((low - first) // count, (high - 1 - first) // count + 1) if ring else ()
        ends = [(first + turn * count, turn * count) for turn in turns]
        cuts = [(max(low, a), min(high, a + count), -by) for a, by in ends]
        along.append(cuts or [(low, high, 0)])
    parts = [
        (Shape((*(low for low, *_ in part),), (*(high for _, high, _ in part),)),
         (*(by for *_, by in part),))
        for part in product(*along)
    ]  # fmt: skip
    return sorted(parts, key=lambda part: part[0].n_cells)


def unrolled_sweep(sweep: Sweep, periodic: tuple[bool, ...], by: int) -> Sweep:
    """`sweep` for boxes that go on along rings, where cells have the indices of those they show."""
    looking = {node.axis for node in sweep.stage.given if isinstance(node, Index)}
    rings = tuple(axis for axis, ring in enumerate(periodic) if ring and axis in looking)
    cells = unrolled(sweep.cells, sweep.cells, periodic, by)
    return replace(sweep, cells=cells, stage=replace(sweep.stage, rings=rings))


def reach_of(stages: tuple[Stage, ...], n_steps: int) -> int:
    """Cells that so many steps read to one side, at most."""
    return n_steps * sum(max(0, *(max(-low, high) for low, high in s.offsets)) for s in stages)


def _add(needed: dict[Version, Shape], version: Version, box: Shape) -> None:
    if not box.empty:
        needed[version] = box if version not in needed else needed[version].hull(box)
