# SPDX-License-Identifier: MIT
"""What places receive of each field, and what they make of cells outside the domain."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, reduce

from controllers.plan.field_layouts import FieldLayouts
from controllers.program.extension import Extension
from controllers.program.liveness import Liveness, Used, offsets_of
from controllers.program.maps import Here, Near
from controllers.program.sweep import Sweep, Version
from hitmap.halo import HaloPattern
from hitmap.layout import Layout
from hitmap.region import Region
from hitmap.shape import Shape


class Halos(FieldLayouts):
    """The halos that the sweeps of a plan need.

    patterns: of each field, for all that is ever read of it; exchanges: of each version.
    """

    liveness: Liveness
    sweeps: tuple[Sweep, ...]
    patterns: Mapping[str, HaloPattern]
    exchanges: Mapping[Version, HaloPattern]
    sends_boxes = False     # messages leave from where cells lie, each box by itself

    def _patterns(
        self, fields: Sequence[str]
    ) -> tuple[dict[str, HaloPattern], dict[Version, HaloPattern]]:
        """What is ever received of each field, and of each version that is exchanged."""
        temporary = {field.name for field in self.program.temporaries}   # never received
        self.patterns = {
            f: self._pattern(f, () if f in temporary else self._all_uses(f)) for f in fields
        }
        return self.patterns, {v: self._exchange(v) for v in self.liveness.exchanged}

    def _all_uses(self, field: str) -> tuple[Used, ...]:
        """Who reads what is ever in the tiles of `field`."""
        pools = self.liveness.pools
        return tuple(
            (sweep, use)
            for sweep in self.sweeps
            for use in sweep.uses
            if pools[use.version.field] == pools[field]
        )

    def _exchange(self, version: Version) -> HaloPattern:
        """The messages that fill the halo of `version`, with what its readers need."""
        uses = self.liveness.uses(version)
        same = {*uses} == {*self._all_uses(version.field)}
        return self.patterns[version.field] if same else self._pattern(version.field, uses)

    def _pattern(self, field: str, uses: Sequence[Used]) -> HaloPattern:
        own, extension = self.layout_of(field), self._extension(field, uses)
        by_offsets = all(isinstance(use.map, (Here, Near)) for _, use in uses)
        if self.program.field(field).boundary.extent or not by_offsets:
            return HaloPattern.of_regions(own, self._regions(uses), self.periodic, extension)
        groups: dict[object, tuple[Layout, list[Used]]] = {own.domain: (own, [])}
        for used in uses:
            layout, sweep = self.layout_of(used[0].stage.home), used[0]
            key = (sweep.cells,) if sweep.completes else layout.domain
            groups.setdefault(key, (layout, []))[1].append(used)
        nothing = Shape.of_extent((0,) * self.program.n_axes)
        (_, offsets, updated), *others = (
            (layout, offsets_of(group), reduce(Shape.hull, boxes, nothing))
            for layout, group in groups.values()
            for boxes in [[sweep.base & layout.domain for sweep, _ in group]]
        )
        return HaloPattern(own, offsets, self.periodic, updated, extension, others)

    def _regions(self, uses: Sequence[Used]) -> list[Region]:
        """By place, boxes that hold what the sweeps there read, by whatever maps."""
        found: list[list[Shape]] = [[] for _ in self.layout.owned]
        for sweep, use in uses:
            layout = self.layout_of(sweep.stage.home)
            for boxes, owned in zip(found, layout.owned, strict=True):
                cells = sweep.of_place(owned)
                boxes += [] if cells.empty else [sweep.read(use, cells)]
        return [*map(Region.of, found)]

    def extension(self, field: str) -> Extension | None:
        """The cells of `field` outside the domain that its readers need; None without any."""
        return self._extensions[field]

    @cached_property
    def _extensions(self) -> dict[str, Extension | None]:
        return {field: self._extension(field, self._all_uses(field)) for field in self.patterns}

    def _extension(self, field: str, uses: Sequence[Used]) -> Extension | None:
        boundary = self.program.field(field).boundary
        if not uses or not boundary.extends:
            return None
        within = reduce(Shape.hull, (sweep.read(use, sweep.cells) for sweep, use in uses))
        return Extension(field, boundary, self.layout_of(field).domain, within, self.periodic)

    def outside(self, version: Version, place: int) -> tuple[Shape, ...]:
        """The cells outside the domain that readers of `version` need at `place`."""
        return self.exchanges[version].outside(place) if version in self.exchanges else ()

    def ever_outside(self, field: str, place: int) -> tuple[Shape, ...]:
        """Those that any reader of a field needs."""
        return self.patterns[field].outside(place)
