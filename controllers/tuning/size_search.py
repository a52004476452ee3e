# SPDX-License-Identifier: MIT
"""Sizes of what passes through devices in chunks, searched by what bounds a pass.

A size is a point of a grid: steps of a pass, chunks beyond those that are needed, slots.  From the
best one so far notches are tried along each axis, those first of which its type promises most:
COSP's types of loops (Sabne, Sakdhnagool, Eigenmann 2013).
"""
# docs/decisions/0079-chunks-and-slots-are-tuned-too.md
from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from typing import NamedTuple, TypeAlias

from controllers.plan.chunks.pipeline import Kind

BETTER = 0.01       # of the time has to be saved to go on from there
FLAT = 0.03         # where a notch costs no more than that, the ones after it are looked at, too
NOTCHES = 1, 2, 4   # how far ahead that is


class Point(NamedTuple):
    """Numbers along the axes: steps of a pass, chunks beyond those that are needed, slots."""

    span: int
    times: int
    slots: int


_Move: TypeAlias = tuple[int, int, int]
_MOVES: dict[Kind, Sequence[_Move]] = {
    # longer passes; larger chunks have less around them; then whatever lets more be under way
    "copy": ((1, 0, 0), (0, -1, 0), (0, 0, 1), (0, 1, 0), (0, 0, -1)),
    # shorter passes compute less twice, so do larger chunks, for which fewer slots leave room; at
    # last longer ones, which copy less within a device
    "compute": ((-1, 0, 0), (0, -1, 0), (0, 0, -1), (0, 1, 0), (0, 0, 1), (1, 0, 0)),
    # both take as long, or wait for each other: more of them under way, or smaller ones
    "neither": ((0, 0, 1), (0, 1, 0), (1, 0, 0), (-1, 0, 0), (0, -1, 0), (0, 0, -1)),
}
# fewer slots leave room for longer passes, and the other way round
_TOGETHER: Sequence[_Move] = ((1, 0, -1), (2, 0, -1), (-1, 0, 1), (-2, 0, 1))


class SizeSearch:
    """Says which point is to be tried next, and learns how long each takes.

    seconds: of a step, or a call, by what was tried; infinite where it does not fit.
    """

    def __init__(self, ends: Point, first: Point) -> None:
        """`ends`: the numbers along each axis are below these."""
        self._ends, self._centre = ends, first
        self.seconds: dict[Point, float] = {}
        self._kinds: dict[Point, Kind] = {}

    def tell(self, point: Point, seconds: float, kind: Kind) -> None:
        """So long it takes, and what bounds it."""
        if not self._kinds or seconds < (1 - BETTER) * self.seconds[self._centre]:
            self._centre = point
        self.seconds[point], self._kinds[point] = seconds, kind

    def refuse(self, point: Point) -> None:
        """It does not fit."""
        self.seconds[point] = inf

    @property
    def best(self) -> Point:
        """Of those that were tried, before that the first one."""
        return min(self.seconds, key=self.seconds.__getitem__, default=self._centre)

    @property
    def next(self) -> Point | None:
        """What is to be tried; None where nothing promises to be better than the best one."""
        if not self._kinds:
            return self._centre
        moves = (*_MOVES[self._kinds[self._centre]], *_TOGETHER)
        return next((one for move in moves for one in self._along(move)), None)

    def _along(self, move: _Move) -> Iterator[Point]:
        """What has not been tried from where the search is, as long as times are flat there."""
        centre = self._centre
        for notches in NOTCHES:
            point = Point(*(at + notches * by for at, by in zip(centre, move)))
            if not all(0 <= at < end for at, end in zip(point, self._ends)):
                return
            if point not in self.seconds:
                yield point
            if self.seconds.get(point, inf) > (1 + FLAT) * self.seconds[centre]:
                return
