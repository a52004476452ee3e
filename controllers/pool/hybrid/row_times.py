# SPDX-License-Identifier: MIT
"""How long the first rows of a task take in a way, up to all of them: asked for once, and kept."""
from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np

from controllers.pool.forecast import Forecast
from controllers.pool.hybrid.division import longest
from controllers.pool.way import Way

MOST_FORESEEN = 64  # parts of which each time is asked for; between them it is interpolated
MOST_TABLES = 256
MOST_RENEWED = 8    # questions, the newest ones, whose tables are made anew


class _Table(NamedTuple):
    """Seconds of 0, 1 ... parts, None if unknown; `known`, `factor`: `Forecast.known_as` then."""

    known: int
    factor: float
    upto: list[float] | None


class _Key(NamedTuple):
    """A way, cores for each of `n_jobs`, the size of all, in n parts, of so many rows."""

    way: Way
    cores: int
    n_jobs: int
    size: float
    n: int
    n_rows: int | None


class RowTimes:
    """For who holds the pool's lock.

    A table takes a millisecond, in which no task begins: when the forecast has learnt, which is
    while devices compute, those are made anew that were asked for lately.
    """

    def __init__(self, forecast: Forecast) -> None:
        self._forecast = forecast
        self._tables: dict[_Key, _Table] = {}
        self._asked: deque[_Key] = deque(maxlen=MOST_RENEWED)
        forecast.when_learnt.append(self._renew)

    def upto(
        self, way: Way, cores: int, n_jobs: int, size: float, n: int, n_rows: int | None
    ) -> tuple[list[float], float] | None:
        """Seconds of the first 0, 1 ... n of n parts, and by which factor they are longer just now.

        cores: for each of `n_jobs`, which do them together.  size: of all parts.  n_rows: of all
        parts, which are not divided; None where they can be.  None where nothing is known.
        """
        key = _Key(way, cores, n_jobs, size, n, n_rows)
        self._asked.append(key)
        table = self._table(key)
        if table.upto is None:
            return None
        return table.upto, self._forecast.known_as(way)[1] / table.factor

    def _renew(self) -> None:
        for key in dict.fromkeys(self._asked):
            self._table(key)
        self._asked.clear()

    def _table(self, key: _Key) -> _Table:
        """That of a key, by what is known now."""
        known, table = self._forecast.known_as(key.way)[0], self._tables.get(key)
        if table is None or table.known != known:
            if len(self._tables) >= MOST_TABLES:
                self._tables.clear()
            upto = self._foreseen(key)
            table = self._tables[key] = _Table(known, self._forecast.known_as(key.way)[1], upto)
        return table

    def _foreseen(self, key: _Key) -> list[float] | None:
        n, parts = min(key.n, MOST_FORESEEN), longest(key.n_jobs, key.n, key.n_rows)
        some = parts[-1] * np.arange(1, n + 1) / n
        times = [
            self._forecast.known_s(key.way, key.size * one, key.cores) for one in some.tolist()
        ]  # fmt: skip
        seconds = [one for one in times if one is not None]
        if len(seconds) < len(times):
            return None
        between = np.interp(parts, [0.0, *some], [0.0, *seconds])
        return [0.0, *np.maximum.accumulate(between).tolist()]
