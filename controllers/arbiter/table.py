# SPDX-License-Identifier: MIT
"""What one process holds, and how it is given more: all units of a request at once, or none.

Who is given something holds the gate, a lock of some microseconds.  It looks who waits already,
leaves them what they need, and takes what it was given before it opens the gate: nobody ever waits
for units while the gate is shut, nor for units beside others of the same request.  What is given
back needs no gate.
"""
from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from controllers.arbiter import queue
from controllers.arbiter.home import Home, changed
from controllers.arbiter.note import Holder, Note, holder, read_all
from controllers.arbiter.want import Units, Way, as_text, chosen, of_text, reserved

_GATE, _NODE, _QUEUE = "the gate", "the node", "the queue"
_MARK = "mark of "
_INNER = "inner-"


def mark_of(unit: str) -> str:
    """The name of the lock that says: a computation uses this unit."""
    return _MARK + unit


class Grant:
    """What a request was given: units for each want of a way, or the node (`way` is -1 then)."""

    def __init__(self, home: Home, way: int, units: Units, note: Holder) -> None:
        self.home = home
        self.way = way
        self.units = units
        self.note = note
        self.inner = home.path / f"{_INNER}{secrets.token_hex(8)}" if way < 0 else None


class Table:
    """What this process holds by one opening of an arbiter's folder."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._home: Home | None = None
        self._held: set[str] = set()
        self._grants: list[Grant] = []
        self._note: Note | None = None
        self._n_waiting = 0

    def attempt(
        self, ways: Sequence[Way], what: str, ticket: queue.Ticket | None
    ) -> tuple[Grant | None, queue.Ticket | None]:
        """What can be given now, and the place in the queue that is left to wait in; never waits.

        Neither where somebody else holds the gate and there was no place yet.
        """
        with changed:
            home = self._opened()
            if ticket is not None and ticket.home is not home:
                ticket = None   # of the parent, before a fork
            if not home.locks.take(_GATE):
                return None, ticket
            try:
                texts = queue.ahead(home, ticket) if self._is_waited(home) or not ways else ()
                waiting = [of_text(text) for text in texts]
                grant = self._granted(home, ways, what, [w for w in waiting if w is not None])
                if grant is None and ticket is None:
                    ticket = queue.join(home, as_text(ways))
                    self._n_waiting += 1
                    home.locks.take(_QUEUE, shared=True)
            finally:
                home.locks.free(_GATE)
            if grant is not None:
                self.leave(ticket)
                ticket = None
            return grant, ticket

    def leave(self, ticket: queue.Ticket | None) -> None:
        """Nobody waits in this place any more."""
        with changed:
            home = self._home
            if ticket is not None and home is ticket.home and home.is_open:
                ticket.leave()
                self._n_waiting -= 1
                if not self._n_waiting:
                    home.locks.free(_QUEUE)

    def give_back(self, grant: Grant) -> None:
        """What was given is free; nothing happens the second time, nor in a child after a fork."""
        with changed:
            if grant.home is not self._home or not grant.home.is_open or grant not in self._grants:
                return
            if grant.inner is not None:
                shutil.rmtree(grant.inner, ignore_errors=True)
            self._free(grant.home, [unit for units in grant.units for unit in units])
            self._grants.remove(grant)
            if not self._grants:
                grant.home.locks.free(_NODE)
            self._tell(grant.home)
            changed.notify_all()

    def is_waited(self) -> bool:
        """Whether anybody waits for anything, in this process or in another one."""
        with changed:
            return self._home is not None and self._home.is_open and self._is_waited(self._home)

    def taken(self, units: Iterable[str]) -> set[str]:
        """Those that others hold."""
        with changed:
            is_taken = self._opened().locks.is_taken
            return {unit for unit in units if unit not in self._held and is_taken(unit)}

    def holders(self) -> list[Holder]:
        """Who holds and uses what, of all processes."""
        with changed:
            return read_all(self._opened())

    def close(self) -> None:
        """Give all back, and hold nothing open."""
        with changed:
            if self._home is not None and self._home.is_open:
                if self._note is not None:
                    self._note.close()
                self._home.close()
            self._forget()

    def _opened(self) -> Home:
        """The open home; another one where it was closed by a fork, or removed while idle."""
        home = self._home
        idle = not self._grants and not self._n_waiting
        if home is not None and home.is_open and not (idle and not home.is_there):
            return home
        self.close()
        self._home = Home(self._path)
        return self._home

    def _is_waited(self, home: Home) -> bool:
        return self._n_waiting > 0 or home.locks.is_taken(_QUEUE)

    def _forget(self) -> None:
        self._home, self._note, self._n_waiting = None, None, 0
        self._held.clear()
        self._grants.clear()

    def _granted(
        self, home: Home, ways: Sequence[Way], what: str, waiting: Sequence[Sequence[Way]]
    ) -> Grant | None:
        if not ways:
            return self._node(home, what) if not waiting else None
        if not all(waiting):    # one of them waits for the whole node
            return None
        if any(grant.inner is not None for grant in self._grants):
            return None
        first = not self._grants
        if first and not home.locks.take(_NODE, shared=True):
            return None
        grant = self._units(home, ways, what, waiting)
        if grant is None and first:
            home.locks.free(_NODE)
        return grant

    def _node(self, home: Home, what: str) -> Grant | None:
        if self._grants or not home.locks.take(_NODE):
            return None
        for left in home.path.glob(f"{_INNER}*"):   # of a process that was killed
            shutil.rmtree(left, ignore_errors=True)
        return self._given(Grant(home, -1, (), holder((), _NODE, what)))

    def _units(
        self, home: Home, ways: Sequence[Way], what: str, waiting: Sequence[Sequence[Way]]
    ) -> Grant | None:
        kept: set[str] = set()
        taken = _once(lambda unit: unit in self._held or home.locks.is_taken(unit))
        is_marked = _once(lambda unit: home.locks.is_taken(mark_of(unit)))

        def is_free(unit: str) -> bool:
            return unit not in kept and not taken(unit)

        for earlier in waiting:
            kept |= reserved(earlier, is_free, is_marked)
        for number, way in enumerate(ways):
            units = chosen(way, is_free, is_marked)
            names = [unit for part in units or () for unit in part]
            if units is not None and self._take(home, names):
                return self._given(Grant(home, number, units, holder(names, "held", what)))
        return None

    def _take(self, home: Home, units: Sequence[str]) -> bool:
        """Lock these units, or none; False where somebody who heeds no gate has one of them."""
        try:
            for unit in units:
                if not home.locks.take(unit):
                    self._free(home, units)
                    return False
                self._held.add(unit)
        except BaseException:
            self._free(home, units)
            raise
        return True

    def _free(self, home: Home, units: Iterable[str]) -> None:
        for unit in units:
            if unit in self._held:
                home.locks.free(unit)
                self._held.remove(unit)

    def _given(self, grant: Grant) -> Grant:
        self._grants.append(grant)
        self._tell(grant.home)
        return grant

    def _tell(self, home: Home) -> None:
        """Write what is held where other people look; a full disk is in nobody's way."""
        with suppress(OSError):
            if self._note is None:
                self._note = Note(home)
            self._note.write(grant.note for grant in self._grants)


def _once(test: Callable[[str], bool]) -> Callable[[str], bool]:
    """The same test, which asks the kernel once for each unit."""
    known: dict[str, bool] = {}

    def asked(unit: str) -> bool:
        if unit not in known:
            known[unit] = test(unit)
        return known[unit]

    return asked
