# SPDX-License-Identifier: MIT
"""Devices that a computation holds, so that no other job and no other task computes on them.

One rank of each node asks for all that the ranks there need, at once, node after node in the order
of their names: so two jobs never wait for each other.
"""
# docs/decisions/0089-devices-of-functions-and-of-runs.md
from __future__ import annotations

import platform
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from controllers.arbiter import Arbiter, Request, Want, node_cores, unit_of
from controllers.arbiter.held import Held, held_here, of_task, units_of
from controllers.device.device import Device
from controllers.process.errand import errand
from hitmap.agreement import on_all_ranks
from hitmap.comm import Communicator
from hitmap.vote import Vote

_FAILED, _WAITING, _DONE = range(3)
_FIRST_PAUSE_S, _LAST_PAUSE_S = 1e-4, 1e-2  # between two looks, which double
_CTRL_C = "Ctrl-C while devices were waited for"
_KINDS = (KeyboardInterrupt, TimeoutError, OSError, ValueError, RuntimeError)


class _Asked(NamedTuple):
    """What one rank needs: units of devices, and so many of these cores."""

    node: str
    units: tuple[str, ...]
    n_cores: int
    cores: tuple[str, ...]
    problem: _Problem | None


@dataclass
class _Problem:
    """Why a rank cannot have it."""

    kind: int
    text: str

    @classmethod
    def of(cls, error: BaseException) -> _Problem:
        found = (n for n, kind in enumerate(_KINDS) if isinstance(error, kind))
        return cls(next(found, len(_KINDS) - 1), str(error) or type(error).__name__)


class Hold:
    """Units of the devices of all ranks of `comm`, until it is closed or nobody refers to it.

    What other computations of this process hold, or the task in which this one is made, is not
    asked for.  limit_s: the most that it waits for it, in seconds; None for as long as it takes.
    Collective, but for `close`; raises on all ranks TimeoutError, which says who holds what,
    KeyboardInterrupt after Ctrl-C on any rank, ValueError in a task that has other units, and
    OSError where the arbiter's folder cannot be used.
    """

    def __init__(
        self, comm: Communicator, devices: Sequence[Device], what: str, limit_s: float | None
    ) -> None:
        self._own = [one for one in held_here() if _is_of_use(one, devices)]
        arbiter = Arbiter()
        try:
            with _noted_ctrl_c() as heard, errand(f"waiting for the devices of {what}"):
                asked = comm.allgather(_asked(devices, self._own))
                _raise_any(comm, [one.problem for one in asked])
                units = _taken(comm, asked, arbiter, what, limit_s, heard)
        except BaseException:
            arbiter.close()
            raise
        self._own.append(Held(units, release=arbiter.close))    # of the node's ranks

    def close(self) -> None:
        """Others may have the units that no other computation of this process uses."""
        self._own.clear()


def _taken(
    comm: Communicator, asked: Sequence[_Asked], arbiter: Arbiter, what: str,
    limit_s: float | None, heard: Sequence[int],
) -> tuple[str, ...]:  # fmt: skip
    """The units of this node, of which its first rank holds those that all of its ranks need."""
    nodes = [one.node for one in asked]
    end_s = None if limit_s is None else time.monotonic() + limit_s
    units, problem = tuple[str, ...](), None
    for node in sorted({*nodes}):
        is_mine = nodes.index(node) == comm.rank
        ways = _ways([one for one in asked if one.node == node]) if is_mine else []
        request = arbiter.request([ways], what) if ways else None
        state, problem = _waited(comm, request, end_s, limit_s, heard)
        if state == _FAILED:
            break
        lease = None if request is None else request.poll()
        units = units if lease is None else sum(lease.units, ())
    if heard and problem is None:
        problem = _Problem.of(KeyboardInterrupt(_CTRL_C))
    told = comm.allgather((problem, units))
    _raise_any(comm, [one for one, _ in told])
    here = [found for node, (_, found) in zip(nodes, told) if node == platform.node()]
    return sum(here, ())


def _is_of_use(held: Held, devices: Sequence[Device]) -> bool:
    """Whether a rank with these devices needs some of what is held."""
    units, n_cores = _needed(devices)
    return held.whole or bool(held.units & units) or (
        n_cores > 0 and not held.units.isdisjoint(node_cores())
    )


def _needed(devices: Sequence[Device]) -> tuple[frozenset[str], int]:
    """Units of devices, and how many cores."""
    units = frozenset(unit_of(one) for one in devices if one.uses_opencl and one.kind != "cpu")
    n_cores = sum(one.compute_units for one in devices if one.kind == "cpu" or not one.uses_opencl)
    return units, min(n_cores, len(node_cores()))


def _asked(devices: Sequence[Device], own: Sequence[Held]) -> _Asked:
    names = node_cores()
    units, n_cores = _needed(devices)
    task, held, problem = of_task(), units_of(own), None
    if any(one.whole for one in own):
        units, n_cores = frozenset(), 0
    units, n_cores = units - held, max(0, n_cores - len(held.intersection(names)))
    if task is not None:
        units, n_cores = units - task.units, max(0, n_cores - task.n_cores)
        if units or n_cores:
            needs = [*sorted(units), *[f"{n_cores} more cores"] * (n_cores > 0)]
            problem = _Problem.of(ValueError(
                f"a computation in a task holds devices of the task alone, as it would wait for "
                f"others while it holds these; got exclusive=, and the task lacks "
                f"{', '.join(needs)}; give the task devices=, and the computation those that "
                f"it is told, or leave exclusive= out"
            ))  # fmt: skip
    return _Asked(platform.node(), tuple(sorted(units)), n_cores, names, problem)


def _ways(asked: Sequence[_Asked]) -> list[Want]:
    """What the ranks of a node need together; ranks that share cores have one want of these."""
    groups: list[tuple[dict[str, None], int]] = []
    for one in (one for one in asked if one.n_cores):
        touched = [group for group in groups if group[0].keys() & {*one.cores}]
        groups = [group for group in groups if group not in touched]
        joined = [*touched, (dict.fromkeys(one.cores), one.n_cores)]
        names = {name: None for some, _ in joined for name in some}
        groups.append((names, sum(n for _, n in joined)))
    wants = [Want(tuple(names), min(n, len(names)), min(n, len(names))) for names, n in groups]
    units = tuple(dict.fromkeys(unit for one in asked for unit in one.units))
    return [*wants, *([Want(units, len(units), len(units))] if units else [])]


def _waited(
    comm: Communicator, request: Request | None, end_s: float | None, limit_s: float | None,
    heard: Sequence[int],
) -> tuple[int, _Problem | None]:  # fmt: skip
    """Until some rank's request is granted, or a rank cannot wait any longer.  Collective."""
    pause_s, state, problem = _FIRST_PAUSE_S, _WAITING, None
    while True:
        try:
            if heard:
                raise KeyboardInterrupt(_CTRL_C)
            state = _DONE if request is None or request.poll() is not None else _WAITING
            if request is not None and state == _WAITING and end_s is not None:
                if time.monotonic() > end_s:
                    raise TimeoutError(request.why(limit_s or 0.0))
        except BaseException as error:
            state, problem = _FAILED, _Problem.of(error)
        least = _least(comm, state)
        if least != _WAITING:
            return least, problem
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, _LAST_PAUSE_S)


def _least(comm: Communicator, state: int) -> int:
    """Of all ranks, by a vote that keeps no core busy.  Collective."""
    if comm.size == 1:
        return state
    vote = Vote(comm, [state])
    while not vote.over:
        time.sleep(_FIRST_PAUSE_S)
    return int(vote.least[0])


def _raise_any(comm: Communicator, problems: Sequence[_Problem | None]) -> None:
    """Raise the first one, on all ranks alike."""
    for rank, problem in enumerate(problems):
        if problem is not None:
            prefix = f"rank {rank}: " if comm.size > 1 else ""
            raise on_all_ranks(_KINDS[problem.kind](prefix + problem.text))


@contextmanager
def _noted_ctrl_c() -> Iterator[list[int]]:
    """In here Ctrl-C is noted, where Python would raise KeyboardInterrupt for it."""
    heard: list[int] = []
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield heard
        return
    signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
    try:
        yield heard
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
