# SPDX-License-Identifier: MIT
"""A job whose rows are done piece by piece, by its lane and by others that have nothing to do.

Other jobs are ordered by the whole one alone, which is over with its pieces.  So a piece costs
little: it is made when somebody takes it, and who is early takes as many rows as suit.
"""
from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from math import ceil

from controllers.estimates.history import SHORTEST_S
from controllers.pool.job import Job
from controllers.pool.task_error import TaskError

LEAST_S = 4e-3      # of a piece that is cut off: about a tenth of that is spent on it ...
LEAST_TAKEN_S = 1.5e-3  # ... and of the last ones, by who would have nothing to do
UNITS = 64      # in which rows are taken over: a launch over rows that were seen costs half of one
MANY = 4        # workers of a lane, from which on pieces are longer, as they begin one by one
Rows = tuple[int, int]      # from the first one to before the last one
# Gives a piece, which has its rows, its arguments; the number is that of a planned piece.
Fill = Callable[[Job, int], None]
# How long a row of a job takes others that will help; None where that is not known.
HelpS = Callable[[Job], "float | None"]


class Pieces:
    """Of a job of a hybrid task, those first that its lane does first; for the pool's lock.

    is_fixed: they are done as they are planned, whoever does them; else others take any rows of
    those that its lane does last: those with the highest numbers if it `goes_up`.  help_s: asked
    when the job begins, of a share that is a guess.  start: of the one that was begun first of
    those that are over, in ns.  error: of the first piece that has failed.
    """

    def __init__(
        self, whole: Job, rows: Sequence[Rows], fill: Fill, help_s: HelpS | None = None, *,
        is_fixed: bool, goes_up: bool,
    ) -> None:  # fmt: skip
        self._whole, self._fill, self.is_fixed = whole, fill, is_fixed
        self._left, self._goes_up = deque(rows), goes_up
        self._numbers = {one: number for number, one in enumerate(rows)}
        self._n_rows, self._find_help_s, self.awaits_help = _count(rows), help_s, False
        self._help_s: float | None = None   # of a row, where another lane helps, ...
        self._asked_s = 0.0     # ... by what it has said
        self._running: set[Job] = set()
        self._next: Job | None = None
        self.start: int | None = None
        self.error: TaskError | None = None
        self._n_done, self._done_s = 0, 0.0     # rows, by its lane

    @property
    def n_left(self) -> int:
        """Planned pieces of which nobody has taken all."""
        return len(self._left)

    @property
    def left_s(self) -> float:
        """What is foreseen for these, one after the other."""
        return self._seconds(_count(self._left))

    @property
    def row_s(self) -> float:
        """What is foreseen for a row."""
        return self._seconds(1)

    def all(self) -> list[Job]:
        """All of them, before one is taken, with their arguments."""
        found = [self._made(rows) for rows in self._left]
        for piece in found:
            self.fill(piece)
        return found

    def look_for_help(self) -> None:
        """The job begins: who will help is known by now, perhaps, where its share is a guess."""
        if self._find_help_s is not None:
            self._help_s, self._find_help_s = self._find_help_s(self._whole), None
            self.awaits_help = self._help_s is not None

    def first(self) -> Job:
        """The one that its lane does next: smaller than planned where another one helps it."""
        self.look_for_help()
        low, high = self._left[0]
        if self._help_s is not None and not self.is_fixed:
            n = self._own()
            if n < high - low:
                low, high = (low, low + n) if self._goes_up else (high - n, high)
        if self._next is None or self._next.rows != (low, high):
            self._next = self._made((low, high))
        return self._next

    def last(self, n_rows: float, row_s: float) -> Job | None:
        """For another lane, which should do so many rows in all, each in so many seconds.

        None if these are too few.
        """
        low, high = self._left[-1]
        self._asked_s = row_s
        if self.is_fixed:
            return self._made((low, high)) if high - low <= n_rows else None
        n = self._suiting(min(n_rows, _count(self._left)), row_s)
        return self._made((high - n, high) if self._goes_up else (low, low + n)) if n else None

    def _own(self) -> int:
        """How many rows of those that are left suit one worker of its lane, beside who helps."""
        assert self._help_s is not None, "somebody helps"
        row_s, n = max(self.row_s, SHORTEST_S), self._whole.at_once
        each = _count(self._left) / (n + row_s / self._help_s)
        return max(self._suiting(each, row_s), ceil(least_s(n) / row_s))

    def _suiting(self, n_rows: float, row_s: float) -> int:
        """How many of so many rows to do at once: half of them, as estimates are not sure."""
        # after factoring, Hummel, Schonberg, Flynn 1992, doi:10.1145/135226.135232
        half, unit = n_rows / 2, max(1, self._n_rows // UNITS)
        n_rows = half if half * row_s >= LEAST_S else n_rows
        return int(n_rows / unit) * unit or int(n_rows)

    def fill(self, piece: Job) -> None:
        """Give it its arguments, if it has none yet; raises what is wrong with them."""
        if not piece.touches:
            assert piece.rows is not None, "a piece"
            self._fill(piece, self._numbers.get(piece.rows, 0))

    def is_last(self, piece: Job) -> bool:
        """Whether no other one is left, or under way."""
        return not self._left and self._running == {piece}

    def take(self, piece: Job) -> None:
        """It is being done, which is the first one, or the last one."""
        assert piece.rows is not None, "a piece"
        self._running.add(piece)
        if piece is not self._next:
            self._help_s = self._asked_s
        self._next = None
        self._left = deque(
            rest for rows in self._left for rest in _without(rows, piece.rows) if rest[0] < rest[1]
        )

    @property
    def took_s(self) -> float:
        """What its lane would have taken for all of them, by those that it has done.

        0 where these are less than a half.
        """
        is_known = 2 * self._n_done >= self._n_rows
        return self._done_s * self._n_rows / self._n_done if is_known else 0.0

    def over(self, piece: Job, start: int, error: TaskError | None, seconds: float) -> bool:
        """A piece that was begun at `start`, and took so long, is over; whether all of them are.

        After an error no other one is begun.
        """
        assert piece.rows is not None, "a piece that was done"
        self._running.remove(piece)
        if piece.way is self._whole.placed:
            self._n_done += piece.rows[1] - piece.rows[0]
            self._done_s += seconds
        self.start = start if self.start is None else min(start, self.start)
        self.error = self.error or error
        if self.error is not None:
            self._left.clear()
        return not self._running and not self._left

    def place(self) -> None:
        """The forecast has placed the whole, of which a piece may have begun before."""
        for piece in (*self._running, *([self._next] if self._next else ())):
            self._foresee(piece)

    def _made(self, rows: Rows) -> Job:
        whole, n_rows = self._whole, rows[1] - rows[0]
        assert whole.owner is not None, "a job that is not over"
        size = whole.size * n_rows / self._n_rows
        found = Job(whole.number, whole.task, (), {}, [], whole.owner, (), size)
        found.whole, found.rows = whole, rows
        self._foresee(found)
        return found

    def _foresee(self, piece: Job) -> None:
        assert piece.rows is not None, "a piece"
        piece.placed, piece.cores = self._whole.placed, self._whole.cores
        piece.seconds = self._seconds(piece.rows[1] - piece.rows[0])

    def _seconds(self, n_rows: int) -> float:
        return self._whole.seconds * self._whole.at_once * n_rows / self._n_rows


def least_s(n_jobs: int) -> float:
    """Of a piece that is cut off of what so many workers do at once."""
    return LEAST_S * max(1.0, n_jobs / MANY)


def _without(rows: Rows, taken: Rows) -> tuple[Rows, Rows]:
    """What of some rows is before those that are taken, and what is after these."""
    return (rows[0], min(rows[1], taken[0])), (max(rows[0], taken[1]), rows[1])


def _count(rows: Sequence[Rows] | deque[Rows]) -> int:
    return sum(last - first for first, last in rows)
