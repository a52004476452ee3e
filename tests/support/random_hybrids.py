# SPDX-License-Identifier: MIT
"""Random graphs of tasks, of which most are hybrid: cut by rows or split, with any shares."""
from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
from random_tasks import Graph

import controllers as ct
from controllers.pool import pieces, stealing
from controllers.pool.forecast import Forecast
from controllers.pool.hybrid.division import Divisions, End
from controllers.pool.hybrid.hybrid import Part

MOST_SIDES = 3
SHORT_S = 1e-9
GUESSES: list[tuple[Any, str, Any]] = [
    (Forecast, "is_new", lambda forecast, way: True), (pieces, "LEAST_S", SHORT_S),
    (stealing, "LEAST_TAKEN_S", SHORT_S),
]  # fmt: skip


class HybridPool:
    """A pool whose tasks are hybrid where that can be; n_hybrid: how many were."""

    def __init__(self, pool: Any, seed: int) -> None:
        self._pool, self._draw = pool, random.Random(seed)
        self.n_hybrid = 0

    def submit(self, task: ct.Task, *args: Any) -> Any:
        """Of a task of `random_tasks`."""
        how = self._draw.choice(["cut", "cut", "split", "merge", "replicated", "as it is"])
        arrays = [one for one in args if isinstance(one, np.ndarray)]
        if not task.roles or how == "as it is":
            return self._pool.submit(task, *args)
        try:
            future = self._pool.submit(self._made(task, how, arrays), *args)
        except ValueError as error:     # of views that are no boxes
            assert "that another part is given, too" in str(error)
            return self._pool.submit(task, *args)
        self.n_hybrid += 1
        return future

    def wait(self, timeout: float) -> None:
        self._pool.wait(timeout)

    def _made(self, task: ct.Task, how: str, arrays: Sequence[Any]) -> Any:
        boxes = all(one.flags.c_contiguous or max(one.strides) == one.base.strides[0]
                    for one in arrays)  # fmt: skip
        if how == "replicated":
            return ct.replicated(task)
        if task.name in ("near", "tally"):
            return ct.hybrid(task)      # as its function of items says
        if how == "merge" or (how == "split" and boxes and len(arrays[0]) >= MOST_SIDES):
            copies = how == "merge"
            return ct.hybrid(task, split=of_copies if copies else of_rows,
                             merge=copied_back if copies else None)  # fmt: skip
        names = task.parameters[: len(arrays)]
        return ct.hybrid(task, cut=dict.fromkeys(names, ct.Row))


def of_rows(shares: Sequence[float], y: Any, *rest: Any) -> list[tuple[Any, ...]]:
    upto = [len(y) * k // len(shares) for k in range(len(shares) + 1)]
    return [
        (y[a:b], *(x[a:b] if isinstance(x, np.ndarray) else x for x in rest))
        for a, b in zip(upto, upto[1:])
    ]


def of_copies(shares: Sequence[float], *given: Any) -> list[tuple[Any, ...]]:
    """All of it for each, in memory of its own."""
    return [
        tuple(x.copy() if isinstance(x, np.ndarray) else x for x in given) for _ in shares
    ]


def copied_back(parts: Sequence[Part], y: Any, *rest: Any) -> None:
    assert abs(sum(part.share for part in parts) - 1) < 1e-12
    for part in parts:
        assert np.array_equal(part.arguments[0], parts[0].arguments[0])
    y[...] = parts[0].arguments[0]


def submitted(graph: Graph, pool: Any, seed: int) -> tuple[list[Any], list[Any], int]:
    """Its arrays, futures, and how many of its tasks were hybrid."""
    hybrids = HybridPool(pool, seed)
    return *graph.submitted(hybrids), hybrids.n_hybrid


@contextmanager
def any_shares(seed: int) -> Iterator[None]:
    """In place of those by estimates; and with half of the seeds all are guesses, of which others
    do some, however short they are.
    """
    draw, before = random.Random(seed), Divisions.of

    def anyhow(
        divisions: Divisions, key: object, ends: Sequence[End], n: int, floor_s: float,
        likely: int,
    ) -> list[int]:  # fmt: skip
        upto = sorted([0, n, *(draw.randint(0, n) for _ in ends[1:])])
        return [b - a for a, b in zip(upto, upto[1:])]

    Divisions.of = anyhow       # type: ignore[method-assign, assignment]
    try:
        with ExitStack() as given:
            for where, what, value in GUESSES if draw.randint(0, 1) else ():
                given.enter_context(patch.object(where, what, value))
            yield
    finally:
        Divisions.of = before       # type: ignore[method-assign]
