# SPDX-License-Identifier: MIT
"""Shares of the rows of a hybrid task as jobs, in pieces where there are several."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from controllers.controller.access import ArrayAccess
from controllers.pool.cut import Cut, Named
from controllers.pool.data import Touch
from controllers.pool.hybrid.cutting import SideRows
from controllers.pool.hybrid.item_sums import ItemSums
from controllers.pool.hybrid.part_jobs import PartJobs, check_apart
from controllers.pool.job import Job
from controllers.pool.pieces import Pieces
from controllers.pool.task import Task


class RowParts:
    """Those of one submission, whose arguments are `named`, the first `n_args` by position."""

    def __init__(
        self, task: Task, cut: Cut, sums: ItemSums, jobs: PartJobs, named: Named, n_args: int
    ) -> None:
        self._task, self._cut, self._sums, self._jobs = task, cut, sums, jobs
        self._named, self._n_args = named, n_args
        self._names = [name for name, _ in named]
        self._parts: list[Job] = []

    def part(self, cut: SideRows, size: float) -> Job:
        """The job of a side, in its pieces; `size` is that of a row."""
        side, rows, goes_up, help_s = cut
        is_fixed = bool(self._sums.names)
        help_s = None if is_fixed else help_s
        low, high = min(first for first, _ in rows), max(last for _, last in rows)
        words = [{name: self._sums.words(name) for name in self._sums.names} for _ in rows]
        values = self._values(low, high, words[0])
        part = self._jobs.made(self._task, *self._given(values), size * (high - low))
        part.rows, part.may_run = (low, high), [side.way]
        if len(rows) > 1 or help_s is not None:
            part.touches += [
                touch for one in words[1:]
                for touch in self._jobs.touches(self._task, one.items())
            ]

            def fill(piece: Job, number: int) -> None:
                assert piece.rows is not None, "some rows"
                values = self._values(*piece.rows, words[number])
                piece.args, piece.kwargs = self._given(values)
                piece.touches = self._jobs.touches(self._task, zip(self._names, values))

            part.pieces = Pieces(
                part, rows, fill, help_s, is_fixed=is_fixed, goes_up=goes_up
            )
            part.at_once = side.n_jobs
        self._parts.append(part)
        return part

    def check(self) -> None:
        """ValueError where a part, or a piece of one, writes what another one touches."""
        touches = [part.touches for part in self._parts]
        if any(map(_may_meet, touches)):
            touches = [one for part in self._parts for one in _of_pieces(part)]
        check_apart(self._task.name, touches)

    def _values(self, low: int, high: int, words: dict[str, ArrayAccess]) -> list[Any]:
        """The arguments for some rows, in their order."""
        values = self._cut.part(self._named, low, high)
        for name, its in words.items():
            values[self._names.index(name)] = its
        return values

    def _given(self, values: Sequence[Any]) -> tuple[Sequence[Any], dict[str, Any]]:
        """By position, and by name."""
        n = self._n_args
        return values[:n], dict(zip(self._names[n:], values[n:]))


def _may_meet(touches: Sequence[Touch]) -> bool:
    """Whether pieces of what touches this may meet, as far as that can be told at once."""
    data = [one.datum for one in touches]
    return any(one.writes and (not one.is_box or data.count(one.datum) > 1) for one in touches)


def _of_pieces(part: Job) -> list[list[Touch]]:
    """What the pieces of a part touch, or it does itself."""
    if part.pieces is None:
        return [part.touches]
    return [one.touches for one in part.pieces.all()]
