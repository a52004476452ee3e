# SPDX-License-Identifier: MIT
"""A `Lease` is what a process was given."""
from __future__ import annotations

import time
from pathlib import Path
from types import TracebackType

from controllers.arbiter.table import Grant, Table
from controllers.arbiter.want import Units


class Lease:
    """Units that nobody else has until they are released.

    way: the number of the way that was taken, of those asked for; -1: the whole node.
    units: for each want of that way the names of the units.  since: when it was given, in seconds
    of the monotonic clock.
    It is the process's that asked: in a child after a fork it is nothing.
    """

    def __init__(self, table: Table | None, grant: Grant | None, way: int, units: Units) -> None:
        self.since = time.monotonic()
        self.way = way
        self.units = units
        self._table = table
        self._grant = grant

    def __repr__(self) -> str:
        names = ", ".join(unit for units in self.units for unit in units)
        return f"<Lease of {names or 'the node'}>"

    @property
    def inner(self) -> Path | None:
        """Of the whole node: the folder of an arbiter for all processes of its owner.

        It is removed when the node is released.  None where nobody is asked.
        """
        if self.way >= 0:
            raise ValueError("only the lease of a whole node has an inner arbiter; acquire_node")
        return None if self._grant is None else self._grant.inner

    def release(self) -> None:
        """Others may have the units; nothing happens the second time."""
        if self._table is not None and self._grant is not None:
            self._table.give_back(self._grant)

    def __enter__(self) -> Lease:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self.release()
