# SPDX-License-Identifier: MIT
"""A `Request` for units: it gets a place in the queue when it is first looked at, and keeps it."""
from __future__ import annotations

import time
from collections.abc import Sequence

from controllers.arbiter.home import changed
from controllers.arbiter.lease import Lease
from controllers.arbiter.queue import Ticket
from controllers.arbiter.table import Table
from controllers.arbiter.want import Way
from controllers.process.errand import errand

_FIRST_PAUSE_S, _LAST_PAUSE_S = 1e-4, 1e-2      # between two looks, which double
_GATE_TRIES = 20    # of one poll, while others hold the gate


class Request:
    """What somebody waits for, in one thread; no ways stand for the whole node.

    While it waits nobody behind it takes what it needs; one that nobody has any more waits no more.
    """

    def __init__(self, table: Table | None, ways: Sequence[Way], what: str) -> None:
        self._table = table
        self._ticket: Ticket | None = None
        self._ways = tuple(ways)
        self._what = what
        self._lease: Lease | None = None
        self._left = False

    def poll(self) -> Lease | None:
        """What was given, or None: ask again later.  It waits for nobody's units.

        RuntimeError after `cancel`.
        """
        if self._left:
            raise RuntimeError("this request was cancelled; make another one")
        for _ in range(_GATE_TRIES):
            if self._lease is not None:
                break
            self._attempt()
            if self._ticket is not None:
                break
        return self._lease

    @property
    def has_place(self) -> bool:
        """Whether it has a place in the queue: nobody who asks from now on is served before it.

        None yet while others held the gate at every poll so far.
        """
        return self._ticket is not None

    def wait(self, timeout_s: float | None = None) -> Lease:
        """What was given, as soon as it is.

        Ctrl-C ends the wait, and so does TimeoutError after `timeout_s` seconds, which says who
        holds what; the request is cancelled then.
        """
        end = None if timeout_s is None else time.monotonic() + timeout_s
        pause = _FIRST_PAUSE_S
        try:
            lease = self.poll()
            if lease is not None:
                return lease
            with errand(f"waiting for {self._wanted()}"):
                while lease is None:
                    left = pause if end is None else end - time.monotonic()
                    if left <= 0:
                        raise TimeoutError(self.why(timeout_s))
                    with changed:
                        changed.wait(min(pause, left))
                    if self.has_place:
                        pause = min(2 * pause, _LAST_PAUSE_S)
                    lease = self.poll()
            return lease
        except BaseException:
            self.cancel()
            raise

    def cancel(self) -> None:
        """Give up the place in the queue, and what was given."""
        self._left = True
        self.__del__()
        if self._lease is not None:
            self._lease.release()

    def __del__(self) -> None:
        if self._table is not None:
            self._table.leave(self._ticket)
        self._ticket = None

    def _attempt(self) -> None:
        if self._table is None:
            self._lease = _unasked(self._ways)
            return
        with changed:
            grant, self._ticket = self._table.attempt(self._ways, self._what, self._ticket)
            if grant is not None:
                self._lease = Lease(self._table, grant, grant.way, grant.units)

    def _wanted(self) -> str:
        ways = [
            " and ".join(f"{w.least} of {_shortened(w.among)}" for w in way) for way in self._ways
        ]
        return ", or ".join(ways) or "the whole node"

    def why(self, timeout_s: float | None) -> str:
        """What it still waits for after so many seconds, and who holds that, for people."""
        assert self._table is not None, "without a table nobody waits"
        wanted = {unit for way in self._ways for want in way for unit in want.among}
        lines = [
            f"{_shortened(held.units) or held.how}: {held}" for held in self._table.holders()
            if held.how != "used" and (not wanted or not held.units or wanted & {*held.units})
        ]  # fmt: skip
        return (
            f"{self._wanted()} did not come free within {timeout_s:g} s; "
            f"{'; '.join(lines) or 'others wait for it, too'}; wait longer, ask for less, or end "
            "who holds it"
        )


def _shortened(units: Sequence[str]) -> str:
    return ", ".join(units) if len(units) < 4 else f"{units[0]}, ..., {units[-1]}"


def _unasked(ways: Sequence[Way]) -> Lease:
    """Where nobody is asked, everybody gets the most of the first way."""
    if not ways:
        return Lease(None, None, -1, ())
    return Lease(None, None, 0, tuple(want.among[: want.most] for want in ways[0]))
