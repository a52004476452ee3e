# SPDX-License-Identifier: MIT
"""Cores of the host and devices as a budget: who asks for some gets them all at once, in turn."""
from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from controllers.pool.lane import Lane


class Claim(NamedTuple):
    """At least `least` and at most `most` cores, and so many of the devices of lanes.

    among: these lanes, those that are wanted most first.  What computes on CPU devices has their
    cores, if these are more than `least` and `most`.
    """

    least: int
    most: int
    among: tuple[Lane, ...] = ()
    least_devices: int = 0
    most_devices: int = 0


class Got(NamedTuple):
    """So many cores, and the devices of these lanes."""

    cores: int
    lanes: tuple[Lane, ...] = ()


class _Turn:
    def __init__(self, claim: Claim) -> None:
        self.claim = claim
        self.got = Got(0)
        self.come = threading.Event()


class Budget:
    """So many cores, and the devices of lanes, for several threads.

    Nobody waits for ever: who comes later gets what those before him leave of what is free, when
    each of them has as much of it as it needs at least.

    >>> budget = Budget(4)
    >>> with budget.held(Claim(1, 3)) as first, budget.held(Claim(1, 3)) as second:
    ...     first.cores, second.cores
    (3, 1)
    """

    def __init__(self, n: int, lanes: Iterable[Lane] = ()) -> None:
        self.n = n
        self._free, self._lanes = n, set(lanes)
        self._lock = threading.Lock()
        self._turns: list[_Turn] = []

    @contextmanager
    def held(self, claim: Claim) -> Iterator[Got]:
        """As much as is free of what is claimed, at least the least, or all cores that there are.

        Waits for it; nobody asks who holds some already.
        """
        got = self.take(claim)
        try:
            yield got
        finally:
            self.give(got)

    def take(self, claim: Claim) -> Got:
        """The same, to be given back by `give`."""
        with self._lock:
            got = None if self._turns else self._fitting(claim, self._free, self._lanes)
            if got is not None:
                self._note(got)
                return got
            turn = _Turn(claim)
            self._turns.append(turn)
            self._serve()
        turn.come.wait()
        return turn.got

    def take_now(self, wanted: Got) -> bool:
        """Just this, to be given back by `give`; False where one would have to wait for it."""
        with self._lock:
            if self._turns or self._free < wanted.cores or not self._lanes.issuperset(wanted.lanes):
                return False
            self._note(wanted)
            return True

    @property
    def is_awaited(self) -> bool:
        """Whether somebody waits for a claim."""
        return bool(self._turns)

    def give(self, got: Got) -> None:
        """This is free, for those who wait."""
        with self._lock:
            self._free += got.cores
            if got.lanes:
                self._lanes.update(got.lanes)
            if self._turns:
                self._serve()

    def _serve(self) -> None:
        """Give what is free to those who wait; what one needs is kept from those after it."""
        free, lanes = self._free, set(self._lanes)
        for turn in list(self._turns):
            claim = turn.claim
            got = self._fitting(claim, free, lanes)
            if got is not None:
                turn.got = got
                self._note(got)
                self._turns.remove(turn)
                turn.come.set()
                kept, own = got.lanes, got.cores
            else:
                kept = tuple(lane for lane in claim.among if lane in lanes)[: claim.least_devices]
                most = sorted(lane.cores for lane in claim.among)[-claim.least_devices :]
                own = min(free, max(claim.least, sum(most) if claim.least_devices else 0))
            free -= own
            lanes.difference_update(kept)

    def _note(self, got: Got) -> None:
        self._free -= got.cores
        if got.lanes:
            self._lanes.difference_update(got.lanes)

    def _fitting(self, claim: Claim, free: int, lanes: set[Lane]) -> Got | None:
        """What a claim gets of so many cores and of these lanes; None where that is too little."""
        if not claim.among:
            least = min(claim.least, self.n)
            return Got(min(claim.most, free)) if free >= least else None
        found = [lane for lane in claim.among if lane in lanes][: claim.most_devices]
        while len(found) >= max(1, claim.least_devices):
            own = sum(lane.cores for lane in found)
            if free >= min(max(claim.least, own), self.n):
                return Got(min(max(claim.most, own), free), tuple(found))
            found.pop()
        return None
