# SPDX-License-Identifier: MIT
"""What tasks have while they are done: cores of the pool, units of the node by its arbiter."""
from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple, TypeAlias

from controllers.arbiter import Arbiter, Kept, Lease, OwnedNodes, Want, node_cores
from controllers.arbiter.held import held_here, units_of
from controllers.arbiter.want import Units
from controllers.arbiter.want import Way as WantedWay
from controllers.pool.budget import Budget, Claim, Got
from controllers.pool.lane import Lane
from controllers.pool.way import Way
from hitmap.comm import Communicator, node_ranks

PATIENCE_S = 10.0   # of a pool of several ranks: what has the units may wait for who wants them
Wants: TypeAlias = tuple[WantedWay, ...]
_NOTHING = frozenset[str]()
_logger = logging.getLogger(__name__)


class Others(NamedTuple):
    """What other processes hold: devices, by the numbers of lanes, and so many cores."""

    lanes: frozenset[int]
    cores: int


class Taken(NamedTuple):
    """What a task has: `got` of the pool, `lease` for these `wants`; `found` is what it may use."""

    got: Got
    found: Got
    wants: Wants
    lease: Lease | None


class Share:
    """The cores of a pool, and leases of these and of its accelerators among all processes.

    Where the ranks of the node have more cores than there are, cores are not leased: tasks of
    theirs that wait for each other would wait for ever.
    """

    def __init__(
        self, n_cores: int, lanes: Sequence[Lane], comm: Communicator, owned: OwnedNodes | None
    ) -> None:
        self.n = n_cores
        self._budget, self._owned = Budget(n_cores, (one for one in lanes if one.device)), owned
        self._patience_s = PATIENCE_S if comm.size > 1 else None
        names = node_cores()
        self._names = names if n_cores * node_ranks(comm)[1] <= len(names) else ()
        self._lanes = {lane.unit: lane for lane in lanes if lane.unit}
        self._ways: dict[tuple[int, int, Got, frozenset[str]], Wants] = {}
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

    def take(self, way: Way, foreseen: Sequence[Lane], what: str) -> Taken:
        """The cores that a task has until `give`, and lanes whose devices a function has.

        Nothing else is done on its devices, here or by other processes.  What computations of this
        process hold they share with its tasks.  foreseen: the lanes that are best.
        """
        claim = self._ordered(way.claim, foreseen) if way.among else way.claim
        got = self._budget.take(claim)
        try:
            held = held_here()
            own = units_of(held) if held else _NOTHING
            wants = self._wants(claim, got, own)
            lease = self._leased(wants, what) if wants else None
            given = () if lease is None else lease.units
            found = got if wants and lease is None else self._of_units(given, got, own)
            if len(found.lanes) < len(got.lanes):
                got = self._without(got, found.lanes)
        except BaseException:
            self._budget.give(got)
            raise
        return Taken(got, found if way.among or not found.lanes else Got(found.cores), wants, lease)

    def take_now(self, way: Way) -> Taken | None:
        """The same of a kernel, where that needs no waiting and nobody to be asked; else None."""
        now: Taken = way.now or self._now(way)
        if held_here() or not self._budget.take_now(now.got):
            return None
        if not now.wants:
            return now
        lease = self._kept.take_idle(now.wants)
        if lease is None:
            self._budget.give(now.got)
            return None
        return Taken(now.got, now.found, now.wants, lease)

    def _now(self, way: Way) -> Taken:
        """What a kernel gets in a way: all that it claims, as it needs that; without a lease."""
        (lane,) = way.claim.among
        got = Got(min(lane.cores, self.n), (lane,))
        now = Taken(got, Got(got.cores), self._wants(way.claim, got, _NOTHING), None)
        way.now = now
        return now

    def give(self, taken: Taken) -> None:
        """Others may have it."""
        try:
            if taken.lease is not None:
                self._kept.put(taken.wants, taken.lease)
        finally:
            self._budget.give(taken.got)

    def _leased(self, wants: Wants, what: str) -> Lease | None:
        try:
            return self._kept.take(wants, what, self._patience_s)
        except TimeoutError as error:
            _logger.warning("a task of %s goes on with what others have: %s", what, error)
            return None

    def _of_units(self, given: Units, got: Got, own: frozenset[str]) -> Got:
        """What a task has of what the budget has given, with these units and those there are."""
        if not own and not got.lanes:
            return got if not given or len(given[0]) == got.cores else Got(len(given[0]))
        leased = own.union(*given)
        n_cores = got.cores
        if n_cores and self._names:
            n_cores = min(n_cores, len(leased.intersection(self._names)))
        return Got(n_cores, tuple(x for x in got.lanes if not x.unit or x.unit in leased))

    def _without(self, got: Got, lanes: Sequence[Lane]) -> Got:
        """What is left of it with these lanes; others of this pool may have the rest."""
        self._budget.give(Got(0, tuple(lane for lane in got.lanes if lane not in lanes)))
        return Got(got.cores, tuple(lanes))

    def _ordered(self, claim: Claim, foreseen: Sequence[Lane]) -> Claim:
        """The lanes that are foreseen first, those last whose devices other processes have."""
        taken = set[str]()
        with suppress(OSError):
            taken = self._kept.arbiter.taken([*self._lanes])
        among = sorted(
            claim.among, key=lambda lane: (lane.unit in taken, lane not in foreseen, lane.number)
        )
        return claim._replace(among=tuple(among))

    def others(self) -> Others:
        """What others hold just now, of what this pool leases."""
        with suppress(OSError):
            taken = self._kept.arbiter.taken([*self._names, *self._lanes])
            lanes = frozenset(lane.number for unit, lane in self._lanes.items() if unit in taken)
            return Others(lanes, len(taken.difference(self._lanes)))
        return Others(frozenset(), 0)

    @property
    def n_leased(self) -> int:
        """Cores of the node, of which it leases some; 0 where it leases none."""
        return len(self._names)

    def rest(self, idle: bool = True) -> bool:
        """Give back what no task has, if there is nothing to do for now, or others want it.

        Asking anew takes longer than many tasks do.  Returns whether it was given back.
        """
        if not idle and not self.is_wanted():
            return False
        self._kept.rest()
        return True

    def is_awaited(self) -> bool:
        """Whether tasks, or other processes, wait for what others have."""
        return self._budget.is_awaited or self.is_wanted()

    def is_wanted(self) -> bool:
        """Whether other processes wait for something."""
        return self._kept.arbiter.is_waited()

    def close(self) -> None:
        """Others may have all of it.  Collective where nodes are owned."""
        self._kept.rest()
        self._kept.arbiter.close()
        if self._owned is not None:
            self._owned.close()

    def _wants(self, claim: Claim, got: Got, own: frozenset[str]) -> Wants:
        """What is asked of the arbiter; CPU devices are cores, and `own` units are there anyway."""
        key = claim.least, claim.least_devices, got, own
        if key not in self._ways:
            least = min(max(claim.least, sum(lane.cores for lane in got.lanes)), got.cores)
            names = tuple(name for name in self._names if name not in own)
            n_own, cores = len(self._names) - len(names), list[Want]()
            if names and got.cores > n_own and not 0 < least <= n_own:
                cores = [Want(names, max(1, least - n_own), got.cores - n_own)]
            units = tuple(lane.unit for lane in got.lanes if lane.unit and lane.unit not in own)
            needed = claim.least_devices - (len(got.lanes) - len(units))
            devices = [Want(units, max(1, needed), len(units))] if units else []
            ways = [cores + devices] if cores or devices else []
            if cores and devices and needed <= 0:
                ways.append(cores)
            self._ways[key] = tuple(map(tuple, ways))
        return self._ways[key]
