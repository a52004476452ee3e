# SPDX-License-Identifier: MIT
"""Skews: how far launches lag behind, so that chunks computed one after another repeat nothing.

Chunks are rows of cells that come one after another.  What a launch reads above a chunk has not
come yet, so that it computes fewer rows than the launch before it: it *lags*.  The rows that are
left are computed with the next chunk, for which the rows around them are kept in all buffers.

    chunk      0            1            2            of a stencil that reads one cell to each
    launch 0   [ 0 .. n   ][ n  .. 2n   ][ 2n ..      side; a launch may write over what the one
    launch 1   [ 0 .. n-1 ][n-1 .. 2n-1 ][2n-1 ..     before it has read, but not over the rows
    launch 2   [ 0 .. n-2 ][n-2 .. 2n-2 ][2n-2 ..     that the next chunk reads
"""
# docs/decisions/0065-skewed-chunks.md
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from controllers.program.extension import Extension
from controllers.program.liveness import Liveness
from controllers.program.sweep import Use, Version
from hitmap.shape import Shape


@dataclass
class _Buffer:
    """Rows below what has come: where what it holds begins, and where what reads it has come to."""

    ready: int = 0
    read: int = 0


class Skew:
    """The lags of a program's sweeps in so many launches, in rows of cells.

    depth: rows below a chunk that have to be kept for it.  hold: rows at the lower end of the
    domain of which rules make cells outside; no launch computes fewer of them than all.
    is_backward: chunks come from the highest rows to the lowest; below means above, and so on.

    >>> from controllers.program.expression import Read
    >>> from controllers.program.stage import Stage
    >>> from controllers.program.sweep import Sweep
    >>> mean = Stage("mean", {"u": (Read("u", (-2,)) + Read("u", (1,))) / 2}, ((-2, 1),))
    >>> domain = Shape((0,), (10,))
    >>> live = Liveness({"u": domain}, [Sweep.of(mean, Shape((2,), (9,)))])
    >>> skew = Skew(live, 3, {"u": None})
    >>> [skew.lag(launch, 0) for launch in range(3)], skew.depth
    ([1, 3, 5], 7)
    >>> skew = Skew(live, 3, {"u": None}, is_backward=True)
    >>> [skew.lag(launch, 0) for launch in range(3)], skew.depth
    ([2, 4, 6], 7)
    """

    def __init__(
        self, liveness: Liveness, n_launches: int, extensions: Mapping[str, Extension | None],
        *, is_backward: bool = False,
    ) -> None:  # fmt: skip
        self._live, self._is_backward = liveness, is_backward
        ends = {field: _made_of(extension) for field, extension in extensions.items()}
        self._rows = {field: max(both) for field, both in ends.items()}
        self.hold = max((both[is_backward] for both in ends.values()), default=0)
        self._buffers: dict[tuple[str, int], _Buffer] = {}
        self._lags: list[list[int]] = []
        self._uses = {
            number: [(use.version, *self._reach(use)) for use in sweep.uses]
            for number, sweep in enumerate(liveness.sweeps)
        }
        self.depth = 0
        for field in self._rows:
            self._keep(Version(field, 0), 0, 0, self._rows[field])
        last = 0
        for launch in range(n_launches):
            lags = [0] * len(liveness.sweeps)
            for numbers in liveness.groups:
                last = self._launch(launch, numbers, last)
                for number in numbers:
                    lags[number] = last
            self._lags.append(lags)
        beyond = [_beyond(extension)[is_backward] for extension in extensions.values()]
        self.depth += max(beyond, default=0)

    def lag(self, launch: int, number: int) -> int:
        """How many of the rows that have come a sweep does not compute yet, in a launch."""
        return self._lags[launch][number]

    def made(self, launch: int, version: Version) -> int:
        """The same of a version in a launch: that of the sweeps that make it."""
        while launch and not version.number:
            launch, version = launch - 1, self._live.last(version.field)
        return self.lag(launch, self._live.maker(version)) if version.number else 0

    def _launch(self, launch: int, numbers: tuple[int, ...], lag: int) -> int:
        """What sweeps that make versions together lag by, at least by `lag`."""
        sweeps = [self._live.sweeps[number] for number in numbers]
        uses = [use for number in numbers for use in self._uses[number]]
        made = {update.version for sweep in sweeps for update in sweep.updates}
        for version, _, above in uses:
            lag = max(lag, self._at(version, launch).ready + above)
        for version in made:
            lag = max(lag, self._at(version, launch).read)
        kept = [(self._live.before(version), 0, 0) for version in made]
        for version, below, _ in uses + kept:
            self._keep(version, launch, None, lag + below)
        for version in made:
            self._keep(version, launch, lag, lag + self._rows[version.field])
        return lag

    def _at(self, version: Version, launch: int) -> _Buffer:
        key = self._live.pools[version.field], self._live.buffer(version, launch)
        return self._buffers.setdefault(key, _Buffer())

    def _keep(self, version: Version, launch: int, ready: int | None, read: int) -> None:
        """A version is read so far below; or written anew, from there on, where `ready` says so."""
        buffer = self._at(version, launch)
        if ready is not None:
            buffer.ready, buffer.read = ready, ready
        buffer.read = max(buffer.read, read)
        self.depth = max(self.depth, read)

    def _reach(self, use: Use) -> tuple[int, int]:
        """How far a use reads below and above; alike where rules mirror what is read."""
        cell = Shape((0,) * self._n_axes, (1,) * self._n_axes)
        box = use.map.region(cell)
        below, above = max(0, -box.lower[0]), max(0, box.upper[0] - 1)
        if self._is_backward:
            below, above = above, below
        return below, max(above, below) if self._rows[use.version.field] else above

    @property
    def _n_axes(self) -> int:
        return self._live.sweeps[0].cells.n_axes


def _made_of(extension: Extension | None) -> tuple[int, int]:
    """How many rows at the lower and the upper end cells outside are made of."""
    if extension is None or not extension.lines[0].extends:
        return 0, 0
    line = extension.lines[0]
    sources = {at: line.sources(at) for at in extension.distant(0)}
    low = (1 + max(rows) for at, rows in sources.items() if at < 0 and rows)
    high = (line.length - min(rows) for at, rows in sources.items() if at >= 0 and rows)
    return max(low, default=0), max(high, default=0)


def _beyond(extension: Extension | None) -> tuple[int, int]:
    """How many rows of cells there are below and above the domain."""
    if extension is None or not extension.lines[0].extends:
        return 0, 0
    last, rows = extension.lines[0].length - 1, extension.distant(0)
    return max([0, *(-at for at in rows)]), max([0, *(at - last for at in rows)])
