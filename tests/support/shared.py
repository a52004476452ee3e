# SPDX-License-Identifier: MIT
"""What a task has of a pool, for a block."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from controllers.pool.budget import Got
from controllers.pool.lane import Lane
from controllers.pool.share import Share
from controllers.pool.way import Way


@contextmanager
def held(share: Share, way: Way, foreseen: Sequence[Lane], what: str) -> Iterator[Got]:
    """Cores, and lanes whose devices it has."""
    taken = share.take(way, foreseen, what)
    try:
        yield taken.found
    finally:
        share.give(taken)
