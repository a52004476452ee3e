# SPDX-License-Identifier: MIT
"""How long messages take on this machine: measured once, kept, and told to all ranks.

What is not known yet is measured: copies between host and device, within the memory of a rank, and
between two ranks of each pair of nodes.  All ranks then hold the same links.
"""
from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyopencl as cl

from controllers.device.discovery import pci_address
from controllers.executor.executor import DeviceExecutor, Executor
from controllers.links.kept_links import KeptLinks
from controllers.links.link import Link, Links
from controllers.links.machine import NodePair, Spot, composed, representatives
from controllers.memory.ledger import MemoryCapError
from controllers.placement.placement import Controllers
from hitmap.comm import Communicator, mpi_library, receive, send
from hitmap.strided import Strided

NBYTES = 1 << 20        # of a large message
COPIED_NBYTES = 1 << 23     # of a large copy in memory: fields lie outside the caches
N_SMALL, N_LARGE = 10, 3    # messages of each size, of which the shortest time counts
BUDGET_S = 0.05         # of all pairs of ranks together, about
_LEAST_S = 1e-9


def links_of(controllers: Controllers, comm: Communicator) -> Links | None:
    """The links of all controllers; None where they are off or cannot be measured.  Collective."""
    kept = KeptLinks.of_user()
    everyone = comm.allgather((kept is not None, platform.node()))
    if kept is None or not all(on for on, _ in everyone):
        return None
    nodes = [node for _, node in everyone]
    between_ranks, mine = _between_ranks(comm, nodes, kept), _mine(controllers, nodes, kept)
    told = [one for one in comm.allgather(mine) if one is not None]
    if len(told) < comm.size:
        return None
    # those of the first rank of each node are those of all
    copying = {node: links for node, (_, links) in zip(nodes[::-1], told[::-1])}
    every = [spot for spots, _ in told for spot in spots]
    return composed(every, nodes, [copying[node][0] for node in nodes], between_ranks)


def _mine(
    controllers: Controllers, nodes: Sequence[str], kept: KeptLinks
) -> tuple[list[Spot], Sequence[Link]] | None:
    """What this rank knows or measures; None where a device has no room for a trial."""
    rank, node = controllers.rank, nodes[controllers.rank]
    copying: Sequence[Link] = ()
    try:
        if rank == nodes.index(node):
            copying = _known(kept, ("copies", node), lambda: (_copying(),))
        return [_spot(rank, one, node, kept) for _, one in controllers.located], copying
    except (cl.Error, MemoryCapError):
        return None


def _known(
    kept: KeptLinks, key: Sequence[str], measured: Callable[[], Iterable[Link]]
) -> Sequence[Link]:
    """Links that are kept, or measured now and kept."""
    found = kept.load(key)
    if found is None:
        found = tuple(measured())
        kept.store(key, found)
    return found


def _spot(rank: int, executor: Executor, node: str, kept: KeptLinks) -> Spot:
    """A controller, with the ways between its memory and the host's where that is its own."""
    if executor.shares_host:
        return Spot(rank)
    key = link_key(node, executor)
    up, down = _known(kept, key, lambda: _up_and_down(cast(DeviceExecutor, executor)))
    return Spot(rank, up, down)


def link_key(node: str, executor: Executor) -> tuple[str, ...]:
    """Of the ways between a device and its node: equal devices may have unequal ones."""
    device, handle = executor.device, executor.device.handle
    address = handle and pci_address(handle)
    return "device", node, device.name, device.platform, device.version, address or ""


def _up_and_down(executor: DeviceExecutor) -> Iterator[Link]:
    """Uploads and downloads, as borders and halos are staged."""
    dtype = np.dtype(np.uint8)
    host, device = executor.staging(NBYTES, dtype), executor.device_staging(NBYTES, dtype)

    def command(nbytes: int, is_up: bool) -> Callable[[], object]:
        cells, part = Strided(0, (1,), (nbytes,)), host[:nbytes]
        bound = (
            executor.upload_command(part, device, cells) if is_up
            else executor.download_command(device, cells, part)
        )  # fmt: skip
        return lambda: bound(None).wait()

    for is_up in (True, False):
        small_s, large_s = (_shortest(command(nbytes, is_up), n) for nbytes, n in _SIZES)
        yield _link(small_s, large_s)


def _copying() -> Link:
    """Copies within the memory of this process."""
    source, target = (np.ones(COPIED_NBYTES, np.uint8) for _ in range(2))

    def copy(nbytes: int) -> Callable[[], object]:
        return lambda: np.copyto(target[:nbytes], source[:nbytes])

    small_s, large_s = _shortest(copy(64), N_SMALL), _shortest(copy(COPIED_NBYTES), N_LARGE)
    return _link(small_s, large_s, COPIED_NBYTES)


_SIZES = (64, N_SMALL), (NBYTES, N_LARGE)


def _shortest(work: Callable[[], object], n: int) -> float:
    """The least seconds of `n` times; one goes before that does not count."""
    work()
    found = []
    for _ in range(n):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return min(found)


def _link(small_s: float, large_s: float, nbytes: int = NBYTES) -> Link:
    """By the seconds of a small message, and of one of so many bytes."""
    return Link(max(small_s, _LEAST_S), nbytes / max(large_s - small_s, _LEAST_S))


def _between_ranks(
    comm: Communicator, nodes: Sequence[str], kept: KeptLinks
) -> dict[NodePair, Link]:
    """The links of all pairs of nodes that have one, on all ranks; rank 0 keeps them."""
    if comm.size == 1:
        return {}
    pairs, library = representatives(nodes), mpi_library()
    keys = {pair: ("ranks", library, *pair) for pair in pairs}
    known = {pair: kept.load(keys[pair]) for pair in pairs} if comm.rank == 0 else {}
    known = comm.bcast(known)
    missing = [pair for pair in pairs if known[pair] is None]
    talk, mine = comm.Dup() if missing else comm, {}
    for pair in missing:    # in the same order on all ranks, so that they meet
        leader, other = pairs[pair]
        if comm.rank == leader:
            mine[pair] = _ping(talk, other, BUDGET_S / len(missing))
        elif comm.rank == other:
            _pong(talk, leader)
    if missing:
        talk.Free()
    measured = {pair: link for some in comm.allgather(mine) for pair, link in some.items()}
    if comm.rank == 0:
        for pair, link in measured.items():
            kept.store(keys[pair], [link])
    return measured | {pair: links[0] for pair, links in known.items() if links is not None}


def _ping(comm: Communicator, other: int, budget_s: float) -> Link:
    """There and back: half of the shortest time; a message of 0 ends it.

    The other rank may be late: time counts from its first answer.
    """
    times: dict[int, list[float]] = {}
    deadline = np.inf
    for nbytes, n in _SIZES:
        message = np.ones(nbytes, np.uint8)
        for number in range(n + 1):
            start = time.perf_counter()
            _announce(comm, other, nbytes)
            send(comm, message, other)
            receive(comm, message, other)
            seconds = time.perf_counter() - start
            deadline = min(deadline, start + seconds + budget_s / 2)
            if number:      # the first one may wait for the other rank, or for memory
                times.setdefault(nbytes, []).append(seconds / 2)
            if number and time.perf_counter() > deadline:
                break
        deadline += budget_s / 2
    _announce(comm, other, 0)
    small_s, large_s = (min(of_size) for of_size in times.values())
    return _link(small_s, large_s)


def _pong(comm: Communicator, leader: int) -> None:
    """Send back what the leader sends, until it has enough."""
    announced = np.zeros(1, np.int64)
    while True:
        receive(comm, announced, leader)
        if announced[0] == 0:
            return
        message: npt.NDArray[Any] = np.empty(int(announced[0]), np.uint8)
        receive(comm, message, leader)
        send(comm, message, leader)


def _announce(comm: Communicator, other: int, nbytes: int) -> None:
    send(comm, np.array([nbytes], np.int64), other)
