# SPDX-License-Identifier: MIT
"""What this process holds already: its computations, of which others of its own use the same units,
and the tasks that it is doing, each in its thread.  Who has units does not wait for them.
"""
from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from controllers.arbiter.home import changed


class Held:
    """Units that are held, for this process and its ranks, as long as anybody refers to this.

    whole: the node.  release: what gives them back; called once, with the last reference.
    """

    def __init__(
        self, units: Sequence[str] = (), *, whole: bool = False,
        release: Callable[[], object] | None = None,
    ) -> None:  # fmt: skip
        self.units, self.whole = frozenset(units), whole
        if release is not None:
            weakref.finalize(self, release)
        with changed:
            _held.add(weakref.ref(self, _held.discard))


class Own(NamedTuple):
    """Units of devices and cores by name, and how many more cores, whatever they are."""

    units: frozenset[str]
    n_cores: int = 0


class _Local(threading.local):
    task: Own | None = None


_held: set[weakref.ref[Held]] = set()
_local = _Local()


def held_here() -> list[Held]:
    """What computations of this process hold, and what it owns."""
    if not _held:
        return []
    with changed:
        found = [one() for one in _held.copy()]
    return [one for one in found if one is not None]


def units_of(held: Iterable[Held]) -> frozenset[str]:
    """All of their units."""
    return frozenset[str]().union(*(one.units for one in held))


@contextmanager
def held_by_task(own: Own) -> Iterator[None]:
    """In here this thread does a task that has these units."""
    before, _local.task = _local.task, own
    try:
        yield
    finally:
        _local.task = before


def of_task() -> Own | None:
    """What the task has that this thread does; None where it does none."""
    return _local.task
