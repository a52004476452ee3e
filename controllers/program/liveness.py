# SPDX-License-Identifier: MIT
"""Liveness: which buffers hold which versions, what is exchanged when, and what must be carried.

All of it follows from the sweeps of one step, which is repeated.  At its end one version of each
field is alive, which is version 0 of the next step: the last one, or, of a field that is renamed,
the one that another field had as the step began.

- Fields that exchange versions by renames share a *pool* of buffers; every other field has its own.
- A version is written over the one before where nobody needs that any more, and else to a buffer
  that holds nothing alive.  What a sweep reads is alive until it ends, but for what it reads at the
  cell itself alone: over that it may write, if it computes each cell once (`spares`).
- Where versions end in other buffers than they began in, the buffers change roles from step to
  step: after a period all is as it was, and no step copies a field for that.
- Sweeps that complete each other (`Sweep.completes`) make one version together, of unlike cells.
- Cells that a sweep does not compute keep their value.  Where the buffer may hold something else in
  some of them, they are *carried* from the buffer of the version before.
- Of a field that follows another one these are that one's (`Stage.follows`), always carried.
- A version's halo is exchanged if a sweep reads it near a cell, under any name that it ever gets;
  of temporary values each place computes what it reads.
"""
from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce

from controllers.program.maps import Copied, Here, Near, Row
from controllers.program.spared import spared
from controllers.program.stage import around
from controllers.program.sweep import Sweep, Use, Version
from controllers.program.turns import order_of, pools_of, powers_of
from hitmap.region import Region
from hitmap.shape import Shape

Used = tuple[Sweep, Use]
OF_PLACE = Here, Row, Copied   # what a place has without an exchange


class Liveness:
    """What the sweeps of a step, which is repeated, mean for buffers and halos.

    ValueError where a sweep uses what has not been written, or cannot be exchanged for.

    >>> from controllers.program.expression import Read
    >>> from controllers.program.stage import Stage
    >>> mean = Stage("mean", {"v": (Read("u", (-1,)) + Read("u", (1,))) / 2}, ((-1, 1),))
    >>> back = Stage("back", {"u": Read("u", (0,)) - Read("v", (0,))}, ((-1, 1),))
    >>> domain, inner = Shape((0,), (10,)), Shape((1,), (9,))
    >>> step = [Sweep.of(mean, inner), Sweep.of(back, inner, 1, {"v": 1})]
    >>> live = Liveness({"u": domain, "v": domain}, step)
    >>> live.n_buffers, live.period, live.exchanged
    ({'u': 1, 'v': 1}, 1, (Version(field='u', number=1),))
    >>> live.sweeps[1].stage.overwrites
    {'u': 'u'}
    """

    def __init__(
        self,
        domains: Mapping[str, Shape],
        sweeps: Sequence[Sweep],
        renames: Mapping[str, str] | None = None,
        *,
        in_place: bool = True,
    ) -> None:
        """`domains`: all cells of each field.  in_place: sweeps may write over what they read."""
        self._sweeps, self._domains, self._renames = tuple(sweeps), domains, dict(renames or {})
        fields = [*domains]
        self.follows = {f: one for s in self._sweeps for f, one in s.stage.follows.items()}
        self._writers: dict[str, list[tuple[int, ...]]] = {field: [] for field in fields}
        self.groups = _groups(self._sweeps)
        self._group_of = {number: group for group in self.groups for number in group}
        for number, sweep in enumerate(self._sweeps):
            _check(sweep, {field: len(writers) for field, writers in self._writers.items()})
            for field in sweep.writes:
                if sweep.completes:
                    self._writers[field][-1] += (number,)
                else:
                    self._writers[field].append((number,))
        self.pools = pools_of(fields, self._renames)
        names = dict.fromkeys(self.pools.values())
        self._first = {name: self._assigned(name, in_place) for name in names}
        self.sweeps = self._sweeps = tuple(map(self._told, self._sweeps))
        self.n_buffers = {name: max(first.values()) + 1 for name, first in self._first.items()}
        turns = {name: self._turn(name) for name in self._first}
        self.period = math.lcm(*map(order_of, turns.values()))
        self._at = {name: powers_of(turn, self.period) for name, turn in turns.items()}
        # By field, the exchange that fills its halo once it is set: that of its last version if it
        # has one, or, of a field that no sweep writes, one of its own.
        self.opened = {
            field: Version(field, len(writers))
            for field, writers in self._writers.items()
            if is_near(self.uses(Version(field, 0)))
        }
        self.exchanged = tuple(self._exchanged())

    def last(self, field: str) -> Version:
        """The version of `field` that is left as the step ends."""
        if field in self._renames:
            return Version(self._renames[field], 0)
        return Version(field, len(self._writers[field]))

    def buffer(self, version: Version, phase: int) -> int:
        """The buffer, of its pool, that holds `version` in a step of the period."""
        pool = self.pools[version.field]
        return self._at[pool][phase % self.period][self._first[pool][version]]

    def shares(self, field: str) -> bool:
        """Whether another field uses the buffers of `field` too."""
        return list(self.pools.values()).count(self.pools[field]) > 1

    def before(self, version: Version) -> Version:
        """The one that has what a version of a number over 0 has in cells that are not computed."""
        return Version(self.follows.get(version.field, version.field), version.number - 1)

    def goes_whole(self, field: str) -> bool:
        """Whether cells that no step computes go with each version: buffers hold unlike ones."""
        return self.shares(field) or field in self.follows

    def uses(self, version: Version) -> tuple[Used, ...]:
        """Who reads `version`, in this step and, under the names that it gets, in later ones."""
        found, names = [], {version}
        todo = [version]
        while todo:
            current = todo.pop()
            found += [(s, use) for s in self._sweeps for use in s.uses if use.version == current]
            later = {Version(f, 0) for f in self._writers if self.last(f) == current} - names
            names |= later
            todo += later
        return tuple(found)

    def maker(self, version: Version) -> int:
        """The sweep by whose end all of `version` is made; -1 of what a step begins with."""
        return self._group_of[self._makers(version)[0]][-1] if version.number else -1

    def computed(self, version: Version) -> Region:
        """The cells of a version, not that of number 0, that are computed."""
        return Region.of(self._sweeps[number].cells for number in self._makers(version))

    def writings(self, field: str) -> tuple[Region, ...]:
        """What each writing of a field computes, in order."""
        count = len(self._writers[field])
        return tuple(self.computed(Version(field, number)) for number in range(1, count + 1))

    def first_near(self, version: Version) -> int:
        """The first sweep that reads an exchanged version around a cell, counted on over steps.

        Of sweeps that complete each other the first one.
        """
        names, step = {version}, 0
        while True:
            for number, sweep in enumerate(self._sweeps):
                if is_near([(sweep, use) for use in sweep.uses if use.version in names]):
                    return step * len(self._sweeps) + self._group_of[number][0]
            names = {Version(field, 0) for field in self._writers if self.last(field) in names}
            assert names, "an exchanged version is read around a cell"
            step += 1

    def carried(self, version: Version, phase: int) -> Region:
        """The cells that must be carried to the buffer of `version` from the version before."""
        field, count = version.field, len(self._writers[version.field])
        at, number, step = self.buffer(version, phase), version.number - 1, phase
        before = self.before(version)
        if number < 0 or (before.field == field and self.buffer(before, phase) == at):
            return Region.of([])
        own, domain = self.computed(version), self._domains[field]
        if self.goes_whole(field):      # who knows what another field left there
            return Region.of([domain]) - own
        found: list[Shape] = []
        while self.buffer(Version(field, number), step) != at:
            if number == 0:
                number, step = count, step + self.period - 1
            found += self.computed(Version(field, number)).boxes
            number -= 1
        return (Region.of(found) & domain) - own

    def _buffer(self, version: Version) -> int:
        return self._first[self.pools[version.field]][version]

    def _makers(self, version: Version) -> tuple[int, ...]:
        """The sweeps that make some cells of a version."""
        return self._writers[version.field][version.number - 1]

    def _exchanged(self) -> Iterator[Version]:
        for field, writers in self._writers.items():
            for number in range(1, len(writers) + 1):
                version = Version(field, number)
                maker = self._sweeps[self.maker(version)]
                if not maker.is_temporary and is_near(self.uses(version)):
                    yield version
            if self.opened.get(field) == Version(field, 0):
                yield Version(field, 0)

    def _assigned(self, pool: str, in_place: bool) -> dict[Version, int]:
        """The buffer of each version of a pool in the first step of the period."""
        members = [field for field, name in self.pools.items() if name == pool]
        kept = {self.last(field) for field in members}
        found = {Version(field, 0): number for number, field in enumerate(members)}
        groups = [[self._sweeps[number] for number in group] for group in self.groups]
        last_use = {u.version: n for n, group in enumerate(groups) for s in group for u in s.uses}
        for number, group in enumerate(groups):
            made: set[int] = set()
            for update in group[0].updates:
                version = update.version
                if self.pools[version.field] != pool:
                    continue
                free = spared(group, version.field) if in_place else set()
                before = found[Version(version.field, version.number - 1)]
                alive = made | {
                    at for one, at in found.items()
                    if one in kept or last_use.get(one, -1) >= number + (one in free)
                }
                if before in alive:
                    before = next(at for at in range(len(alive) + 1) if at not in alive)
                found[version] = before
                made.add(before)
        return found

    def _told(self, sweep: Sweep) -> Sweep:
        """`sweep` with a stage that knows what it writes over."""
        over = {
            update.version.field: use.version.field
            for update in sweep.updates
            for use in sweep.uses
            if self.pools[use.version.field] == self.pools[update.version.field]
            and self._buffer(use.version) == self._buffer(update.version)
        }
        return replace(sweep, stage=replace(sweep.stage, overwrites=over)) if over else sweep

    def _turn(self, pool: str) -> tuple[int, ...]:
        """By buffer in one step, the buffer that has its role in the next one."""
        members = [field for field, name in self.pools.items() if name == pool]
        first = self._first[pool]
        turn = {first[Version(field, 0)]: first[self.last(field)] for field in members}
        buffers = range(self.n_buffers[pool])
        free = [at for at in buffers if at not in turn.values()]
        rest = [at for at in buffers if at not in turn]
        turn |= {at: at for at in rest if at in free}
        left = (at for at in free if at not in turn.values())
        turn |= {at: next(left) for at in rest if at not in turn}
        return tuple(turn[at] for at in buffers)


def offsets_of(uses: Sequence[Used]) -> Sequence[tuple[int, ...] | Shape] | Shape:
    """All offsets at which a version is read around the cells of a place, each once.

    One box of them for several steps; and one for each offset at which a sweep with a rim reads.
    """
    each: dict[tuple[int, ...] | Shape, None] = {}
    several = []
    for sweep, use in uses:
        offsets = use.map.offsets if isinstance(use.map, Near) else ((0,) * sweep.cells.n_axes,)
        if isinstance(offsets, Shape):
            several.append(offsets)
        elif sweep.is_temporary:
            cells = (Shape(at, tuple(step + 1 for step in at)) for at in offsets)
            each |= dict.fromkeys(around(sweep.stage.rim, cell) for cell in cells)
        else:
            each |= dict.fromkeys(offsets)
    return reduce(Shape.hull, several) if several else tuple(each)


def is_near(uses: Sequence[Used]) -> bool:
    """Whether any of them reads other cells than those of the place."""
    return any(sweep.is_temporary or not isinstance(use.map, OF_PLACE) for sweep, use in uses)


def _groups(sweeps: Sequence[Sweep]) -> tuple[tuple[int, ...], ...]:
    """The numbers of sweeps, those together that complete each other."""
    firsts = [number for number, sweep in enumerate(sweeps) if not sweep.completes]
    ends = zip(firsts, [*firsts[1:], len(sweeps)])
    return tuple(tuple(range(first, end)) for first, end in ends)


def _check(sweep: Sweep, written: Mapping[str, int]) -> None:
    """`sweep` uses what is known when it runs, and exchanges are planned for."""
    for use in sweep.uses:
        version = use.version
        if version.number > written[version.field]:
            raise ValueError(
                f"sweep {sweep.name!r} uses {version}, which has been written "
                f"{written[version.field]} times by then; use an earlier version"
            )
    for update in sweep.updates:
        due = written[update.version.field] + (not sweep.completes)
        if update.version.number != due:
            raise ValueError(
                f"sweep {sweep.name!r} makes {update.version}, the next one is number {due}; "
                f"number the writings of a field in order"
            )
