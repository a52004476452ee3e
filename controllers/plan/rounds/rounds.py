# SPDX-License-Identifier: MIT
"""Plans of rounds: halos as wide as some launches reach, exchanged once for all of them.

The steps of the period are those of a round, or of several: in the last launch of each, what a
place owns is handed over as usual.  Each launch of the others computes the cells around these, too,
that the launches after it read (`program/rounds.py`).  Messages bring what is needed as a round
begins; a version is exchanged only if it is the last of its field in a step, or what a field that
is renamed had as the step began.
"""
# docs/decisions/0055-halos-of-several-launches.md
from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, reduce
from typing import Any

from controllers.plan.plan import Plan
from controllers.program.liveness import is_near
from controllers.program.program import Program
from controllers.program.rounds import (
    Round,
    Surveyor,
    reach_of,
    unrolled,
    unrolled_sweep,
)
from controllers.program.sweep import Sweep, Version
from hitmap.halo import HaloPattern
from hitmap.layout import Layout
from hitmap.region import Region
from hitmap.shape import Shape
from hitmap.strided import Geometry


class RoundOutline(Plan):
    """What is known of a plan of rounds before its operations are recorded.

    Halos are exchanged after every `n_launches` of its steps, two or more.
    """

    def __init__(
        self, program: Program, layout: Layout, periodic: tuple[bool, ...], *args: Any,
        n_launches: int, steps_per_launch: int = 1, **options: Any,
    ) -> None:  # fmt: skip
        if options.get("host_tasks"):
            raise ValueError(
                f"halos of {n_launches * steps_per_launch} steps are not for {program.name!r}: "
                f"tasks of the host change what a place owns after each step; leave the halo width "
                f"out"
            )
        self.n_launches, self.steps_per_launch = n_launches, steps_per_launch
        self._margin = reach_of(program.stages, self.halo_width)
        super().__init__(
            program, layout, periodic, *args, steps_per_launch=steps_per_launch, **options
        )
        self.n_phases = math.lcm(self.liveness.period, n_launches)

    def launch_of(self, phase: int, place: int) -> int:
        return phase % self.launches_of(place)

    def launches_of(self, place: int) -> int:
        """How many launches of a round there are at a place."""
        return self.n_launches

    def _sweeps_of(self, launch: int, place: int) -> list[Sweep]:
        """The sweeps of a launch of a round."""
        return [self.sweep_at(number, launch, place) for number in range(len(self.sweeps))]

    def round(self, place: int) -> Round:
        """What a place computes and needs in a round."""
        if place not in self._rounds:
            owned = {field: self.owned(field, place) for field in self._unrolled}
            launches = range(self.launches_of(place))
            self._rounds[place] = self._surveyor.round(
                owned, (self._sweeps_of(launch, place) for launch in launches)
            )
        return self._rounds[place]

    def first_box(self, field: str, place: int) -> Shape | None:
        """The cells of a field that a place must know as a round begins; None without any."""
        return self.round(place).first(field)

    def computed(self, number: int, phase: int, place: int) -> Shape:
        return self.round(place).computed[self.launch_of(phase, place)][number]

    def kept(self, version: Version, phase: int, place: int) -> Region:
        """What is needed of a version that its sweeps leave as it is, but others compute."""
        live, field = self.liveness, version.field
        box = self.round(place).needed[self.launch_of(phase, place)].get(version)
        before = live.before(version)
        stays = before.field == field and live.buffer(before, phase) == live.buffer(version, phase)
        if box is None or stays:
            return Region.of([])
        box = box & self._unrolled[field]
        whole = live.goes_whole(field)      # who knows what another field left there
        return (Region.of([box]) if whole else self.changing(field) & box) - live.computed(version)

    def steady(self, field: str, place: int) -> Region:
        """The cells in the halo of a field that no sweep computes, and that all buffers need."""
        box = self.first_box(field, place)
        live = self.liveness
        if box is None or live.goes_whole(field) or live.n_buffers[field] == 1:
            return Region.of([])
        halo = Region.of([box & self._unrolled[field]]) - self.owned(field, place)
        return halo - self.changing(field)

    def changing(self, field: str) -> Region:
        """The cells of a field that some sweep computes."""
        return Region.of(box for part in self.liveness.writings(field) for box in part.boxes)

    def changes(self, field: str) -> bool:
        """Whether it is another one after each step: written, or what had another name."""
        return bool(self.liveness.writings(field)) or self.liveness.shares(field)

    def made_outside(
        self, version: Version, phase: int, place: int, *, opens: bool = False
    ) -> tuple[Shape, ...]:
        """The cells outside the domain that are needed of a version; as a round `opens`, then."""
        extension = self.extension(version.field)
        launch = 0 if opens else self.launch_of(phase, place)
        box = self.round(place).needed[launch].get(version)
        return () if extension is None or box is None else extension.outside(box)

    def ever_outside(self, field: str, place: int) -> tuple[Shape, ...]:
        extension, box = self.extension(field), self._hull(field, place)
        return () if extension is None or box is None else extension.outside(box)

    def full(self, field: str, place: int) -> Shape:
        found = self.patterns[field].full(place).hull(self._of_launches(field).full(place))
        if self.owned(field, place).empty:
            return found
        boxes, together = [self._hull(field, place)], self._sharing(field)
        for launch in self.round(place).computed:
            boxes += [b for b, s in zip(launch, self.sweeps) if together & {*s.fields}]
        return reduce(Shape.hull, (b for b in boxes if b is not None and not b.empty), found)

    def cells_before(self, sweep: Sweep, place: int) -> int:
        number = self._number(sweep)
        return sum(launch[number].n_cells for launch in self.round(place).computed[:-1])

    def boxes(self, sweep: Sweep, place: int) -> tuple[tuple[Shape, ...], Shape]:
        """What is launched in the last launch of a round: before the borders leave, and after."""
        return self._split(sweep, self.computed(self._number(sweep), -1, place), place)

    def launched(self, sweep: Sweep, place: int) -> Iterator[tuple[Shape, Mapping[str, Geometry]]]:
        geometries = {field: self.geometry(field, place) for field in self.program.dtypes}
        number = self._number(sweep)
        boxes: dict[Shape, None] = {}
        for launch in range(self.launches_of(place)):
            if sweep.count != self.sweep_at(number, launch, place).count:
                continue
            parts, inner = self.parts_of(number, launch, place)
            boxes |= dict.fromkeys([*(box for box, _ in parts), inner])
        return ((box, geometries) for box in boxes if not box.empty)

    def folded(self, sweep: Sweep, place: int) -> Iterator[tuple[Shape, Mapping[str, Geometry]]]:
        geometries = {field: self.geometry(field, place) for field in self.program.dtypes}
        own = self.updated(sweep, place)
        return iter([] if own.empty else [(own, geometries)])

    def parts_of(
        self, number: int, phase: int, place: int
    ) -> tuple[list[tuple[Shape, bool]], Shape]:
        """The boxes that are launched of a sweep, and whether each is the one that folds.

        Then what is launched after the borders are handed over, in the last launch of a round.
        """
        sweep, over = self.sweeps[number], self.computed(number, phase, place)
        nothing = Shape(over.lower, over.lower)
        if over.empty:
            return [], nothing
        if self.folds_apart:    # by a launch of its own, of what the place owns
            folds = self.may_fold(phase, place) and not self.updated(sweep, place).empty
            return [(over, folds)], nothing
        if sweep.folds:
            own = self.updated(sweep, place)
            rest = Region.of([over]) - own
            folding = [] if own.empty else [(own, True)]
            return [*folding, *((box, False) for box in rest.boxes)], nothing
        if self.launch_of(phase, place) < self.launches_of(place) - 1:
            return [(over, False)], nothing
        first, inner = self._split(sweep, over, place)
        return [(box, False) for box in first], inner

    def may_fold(self, phase: int, place: int) -> bool:
        """Whether a step of the period, as tiles turn at a place, may be one that ends a run."""
        return True

    def sent_after(self, version: Version) -> int:
        """Of what gets another name in the last launch, the first sweep, which leaves it."""
        renamed = not version.number and self.liveness.shares(version.field)
        return self.liveness.groups[0][-1] if renamed else self.liveness.maker(version)

    def begun_as(self, version: Version) -> Version:
        return next(
            Version(field, 0) for field in self._unrolled if self.liveness.last(field) == version
        )

    def _of_launches(self, field: str) -> HaloPattern:
        """What is exchanged with halos of one launch, for which tiles have room, too."""
        if field not in self._narrow:
            self._narrow[field] = self._pattern(field, self._all_uses(field))
        return self._narrow[field]

    @cached_property
    def _narrow(self) -> dict[str, HaloPattern]:
        return {}

    def _sharing(self, field: str) -> set[str]:
        """The fields that use the buffers of a field."""
        pools = self.liveness.pools
        return {other for other in self._unrolled if pools[other] == pools[field]}

    def _hull(self, field: str, place: int) -> Shape | None:
        """A box of all that is ever needed of what lies in the buffers of a field."""
        found = [self.round(place).hull(other) for other in self._sharing(field)]
        boxes = [box for box in found if box is not None]
        return reduce(Shape.hull, boxes) if boxes else None

    @cached_property
    def _unrolled(self) -> dict[str, Shape]:
        domains = {field: self.layout_of(field).domain for field in self.program.dtypes}
        return {f: unrolled(box, box, self.periodic, self._margin) for f, box in domains.items()}

    @cached_property
    def _surveyor(self) -> Surveyor:
        extensions = {field: self.extension(field) for field in self._unrolled}
        return Surveyor(self.liveness, self._unrolled, extensions)

    @cached_property
    def _rounds(self) -> dict[int, Round]:
        return {}

    def _number(self, sweep: Sweep) -> int:
        return next(number for number, one in enumerate(self.sweeps) if one is sweep)

    def shortened(self, sweep: Sweep, count: int) -> Sweep:
        if count == sweep.count:
            return sweep
        return unrolled_sweep(super().shortened(sweep, count), self.periodic, self._margin)

    def _lowered(self) -> list[Sweep]:
        return [unrolled_sweep(one, self.periodic, self._margin) for one in super()._lowered()]

    def _patterns(
        self, fields: Sequence[str]
    ) -> tuple[dict[str, HaloPattern], dict[Version, HaloPattern]]:
        self.patterns = {}
        for field in fields:
            self._extensions[field] = self._extension(field, self._all_uses(field))
        for field in fields:
            layout = self.layout_of(field)
            read = [
                Region.of([] if owned.empty or box is None else [box])
                for place, owned in enumerate(layout.owned)
                for box in [None if owned.empty else self.first_box(field, place)]
            ]
            extension = self._extensions[field]
            self.patterns[field] = HaloPattern.of_regions(layout, read, self.periodic, extension)
        live = self.liveness
        exchanged = {
            live.last(field): pattern
            for field, pattern in self.patterns.items()
            if pattern.messages or is_near(live.uses(Version(field, 0)))
        }
        return self.patterns, exchanged

    @cached_property
    def _extensions(self) -> dict[str, Any]:
        return {}

    def _first_reader(self, version: Version) -> int | None:
        """All that is exchanged is read from when the next round begins."""
        return 0 if self.sent_after(version) >= 0 else None
