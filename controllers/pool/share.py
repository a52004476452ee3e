# SPDX-License-Identifier: MIT
"""What tasks have while they are done: cores of the pool, units of the node by its arbiter."""
from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

from controllers.arbiter import Arbiter, Kept, OwnedNodes, Want, node_cores, unit_of
from controllers.pool.cores import Cores
from controllers.pool.lane import Lane
from hitmap.comm import Communicator, node_ranks

PATIENCE_S = 10.0   # of a pool of several ranks: what has the units may wait for who wants them
_logger = logging.getLogger(__name__)


class Others(NamedTuple):
    """What other processes hold: devices, by the numbers of lanes, and so many cores."""

    lanes: frozenset[int]
    cores: int


class Share:
    """The cores of a pool, and leases of these and of its accelerators among all processes.

    Where the ranks of the node have more cores than there are, cores are not leased: tasks of
    theirs that wait for each other would wait for ever.
    """

    def __init__(
        self, n_cores: int, lanes: Sequence[Lane], comm: Communicator, owned: OwnedNodes | None
    ) -> None:
        self.n = n_cores
        self._cores, self._owned = Cores(n_cores), owned
        self._patience_s = PATIENCE_S if comm.size > 1 else None
        names = node_cores()
        self._names = names if n_cores * node_ranks(comm)[1] <= len(names) else ()
        self._units = {
            lane.number: (unit_of(lane.device),)
            for lane in lanes
            if lane.device is not None and lane.device.kind != "cpu"
        }
        self._ways: dict[tuple[int, int, int], list[list[Want]]] = {}
        arbiter = Arbiter(None if owned is None else owned.folder)
        try:
            arbiter.holders()
        except OSError as error:
            warnings.warn(
                f"other processes are not asked which cores and devices they use: {error}; "
                "CONTROLLERS_ARBITER names another folder, or is off", RuntimeWarning, stacklevel=2,
            )  # fmt: skip
            arbiter = Arbiter.of_nobody()
        self._kept = Kept(arbiter)

    @contextmanager
    def held(self, lane: Lane, least: int, most: int, what: str) -> Iterator[int]:
        """The cores that a task of this lane has, in the block; its accelerator is leased, too."""
        with self._cores.held(least, most) as got:
            wants = self._wants(lane, min(least, got), got)
            if not wants:
                yield got
                return
            try:
                lease = self._kept.take(wants, what, self._patience_s)
            except TimeoutError as error:
                _logger.warning("a task of %s goes on with what others have: %s", what, error)
                yield got
                return
            try:
                yield len(lease.units[0]) if got and self._names else got
            finally:
                self._kept.put(wants, lease)

    def others(self) -> Others:
        """What others hold just now, of what this pool leases."""
        devices = {units[0]: number for number, units in self._units.items()}
        with suppress(OSError):
            taken = self._kept.arbiter.taken([*self._names, *devices])
            lanes = frozenset(number for unit, number in devices.items() if unit in taken)
            return Others(lanes, len(taken.difference(devices)))
        return Others(frozenset(), 0)

    @property
    def n_leased(self) -> int:
        """Cores of the node, of which it leases some; 0 where it leases none."""
        return len(self._names)

    def rest(self) -> None:
        """There is nothing to do for now."""
        self._kept.rest()

    def close(self) -> None:
        """Others may have all of it.  Collective where nodes are owned."""
        self._kept.rest()
        self._kept.arbiter.close()
        if self._owned is not None:
            self._owned.close()

    def _wants(self, lane: Lane, least: int, most: int) -> list[list[Want]]:
        key = lane.number, least, most
        if key not in self._ways:
            cores = [Want(self._names, least, most)] if self._names and most else []
            devices = [Want(self._units[lane.number])] if lane.number in self._units else []
            self._ways[key] = [cores + devices] if cores or devices else []
        return self._ways[key]
