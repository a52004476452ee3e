# SPDX-License-Identifier: MIT
"""The arbiter between the processes of a node: who may use which cores and devices.

There is no process that arbitrates: whoever asks decides by the same rules from what the others
have locked, and the kernel takes the locks of the dead away ([arbiter.md](docs/arbiter.md)).
"""
from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from controllers.arbiter.home import home
from controllers.arbiter.lease import Lease
from controllers.arbiter.note import Holder
from controllers.arbiter.request import Request
from controllers.arbiter.table import Table
from controllers.arbiter.want import Want, checked


class Arbiter:
    """The arbiter of this user on this node, or that of another folder; any thread may ask.

    folder: None: as `CONTROLLERS_ARBITER` says; where that is "off" everybody is given the most of
    what he asks for first.
    Whatever is asked for is given all at once, in the order in which it was asked for, as far as
    those who come later do not take what those before them wait for.  So who holds nothing while
    it waits never waits for ever, if the others release what they have or end.
    OSError, from what asks, where the folder is somebody else's, or cannot be used or locked.
    """

    def __init__(self, folder: Path | None = None) -> None:
        path = folder or home()
        self._table = None if path is None else Table(path)

    @classmethod
    def of_nobody(cls) -> Arbiter:
        """One that asks nobody, whatever `CONTROLLERS_ARBITER` says."""
        arbiter = cls.__new__(cls)
        arbiter._table = None
        return arbiter

    def request(self, ways: Sequence[Sequence[Want]], what: str = "") -> Request:
        """Ask for one of these ways without waiting; `what` for is told to people.

        ValueError where a way names a unit twice, or there is none.
        """
        return Request(self._table, checked(ways), what)

    def acquire(
        self, ways: Sequence[Sequence[Want]], timeout_s: float | None = None, what: str = ""
    ) -> Lease:
        """The first of these ways that is possible, as soon as one is (`Request.wait`).

        Not while this task holds another lease: two that wait for what the other has wait for ever.
        """
        return self.request(ways, what).wait(timeout_s)

    def acquire_node(self, timeout_s: float | None = None, what: str = "") -> Lease:
        """The whole node, as soon as nobody holds anything of it.

        `Lease.inner` is the folder of an arbiter by which the processes of the owner share it.
        """
        return Request(self._table, (), what).wait(timeout_s)

    def is_waited(self) -> bool:
        """Whether anybody waits for anything, in this process or in another one: some 2 us."""
        return self._table is not None and self._table.is_waited()

    def taken(self, units: Sequence[str]) -> set[str]:
        """Those of these units that others hold just now: some 2 us for each."""
        return set() if self._table is None else self._table.taken(units)

    def holders(self) -> list[Holder]:
        """Who holds or uses what on this node, by the numbers of the processes."""
        return [] if self._table is None else self._table.holders()

    def close(self) -> None:
        """Give back all that was given."""
        if self._table is not None:
            self._table.close()

    def __enter__(self) -> Arbiter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self.close()
