# SPDX-License-Identifier: MIT
"""What devices of a node have of its memory at once, and one at a time: measured once, and kept.

Each moves a piece of pinned memory to the device and another one back, several times, as chunks do.
"""
from __future__ import annotations

import platform
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import cast

import numpy as np
import pyopencl as cl

from controllers.device.event import Event, wait_for_all
from controllers.executor.executor import DeviceExecutor
from controllers.links.kept_links import KeptLinks
from controllers.links.link import Link
from controllers.links.shared_links import SharedLinks
from controllers.memory.ledger import MemoryCapError
from controllers.placement.link_trial import link_key
from controllers.placement.placement import Placement
from hitmap.comm import Communicator
from hitmap.strided import Strided

NBYTES = 1 << 25    # of a piece, ...
N_PIECES = 8        # ... one after another, each way
N_TIMES = 3         # of which the shortest counts, unless it takes longer than ...
LONG_S = 0.02
_LATENCY_S = 1e-9   # what is kept are links, of which the bandwidth counts alone

# Enqueues all pieces of a device.
_Move = Callable[[], Sequence[Event]]


def shared_links_of(placement: Placement, comm: Communicator) -> SharedLinks | None:
    """Of the node whose devices have least of what they have alone.  Collective.

    None where no node has two devices with memories of their own, or nothing can be measured.
    """
    homes = {id(one): one for one in placement.executors.values() if not one.shares_host}
    devices = [cast(DeviceExecutor, one) for one in homes.values()]
    node, kept = platform.node(), KeptLinks.of_user()
    mine = node, ["\n".join(link_key(node, one)) for one in devices], kept is not None
    everyone = comm.allgather(mine)
    nodes = [where for where, _, _ in everyone]
    named: dict[str, list[str]] = {}
    for where, names, _ in everyone:
        named.setdefault(where, []).extend(names)
    if kept is None or not all(on for _, _, on in everyone) or max(map(len, named.values())) < 2:
        return None
    key = "devices at once", node, *sorted(named[node])
    leads = comm.rank == nodes.index(node) and named[node]
    told = comm.allgather((node, kept.load(key)) if leads else None)
    found = dict(one for one in told if one is not None)
    if any(links is None for links in found.values()):
        rates = _measured(devices, comm, nodes, {where: len(some) for where, some in named.items()})
        if rates is None:
            return None
        found = {where: tuple(Link(_LATENCY_S, rate) for rate in both)
                 for where, both in rates.items()}  # fmt: skip
        if leads:
            kept.store(key, found[node] or ())
    every = [
        SharedLinks(len(named[where]), *(link.bytes_per_s for link in links or ()))
        for where, links in found.items()
        if len(named[where]) > 1
    ]
    return min(every, key=lambda one: one.part)


def _measured(
    devices: Sequence[DeviceExecutor], comm: Communicator, nodes: Sequence[str],
    counts: Mapping[str, int],
) -> dict[str, tuple[float, float]] | None:  # fmt: skip
    """Of each node its devices one at a time, and all at once; None where one has no room.

    Collective.
    """
    moves: list[_Move] = []
    with suppress(cl.Error, MemoryCapError, MemoryError):   # the others wait for what comes of it
        moves = [_move(device) for device in devices]
    has = comm.allgather((len(moves), len(devices)))
    if any(n_moves < n_devices for n_moves, n_devices in has):
        return None
    before = sum(has[rank][0] for rank in range(comm.rank) if nodes[rank] == nodes[comm.rank])
    nbytes, alone = 2 * NBYTES * N_PIECES, defaultdict[str, float](float)
    for turn in range(max(counts.values())):
        number = turn - before
        one = moves[number : number + 1] if number >= 0 else []
        for where, took_s in _shortest(one, comm, nodes).items():
            alone[where] += nbytes / took_s if took_s else 0.0
    at_once = _shortest(moves, comm, nodes)
    return {where: (alone[where], n * nbytes / at_once[where]) for where, n in counts.items() if n}


def _shortest(
    moves: Sequence[_Move], comm: Communicator, nodes: Sequence[str]
) -> dict[str, float]:
    """Seconds until all that the ranks of each node move has been moved.  Collective."""
    found: dict[str, float] = {}
    for _ in range(N_TIMES):
        comm.Barrier()
        start = time.perf_counter()
        for events in [move() for move in moves]:
            wait_for_all(events)
        took_s = comm.allgather(time.perf_counter() - start if moves else 0.0)
        for where in set(nodes):
            of_node = max(s for s, at in zip(took_s, nodes, strict=True) if at == where)
            found[where] = min(of_node, found.get(where, of_node))
        if max(took_s) > LONG_S:
            break
    return found


def _move(device: DeviceExecutor) -> _Move:
    """Pieces to the device and back, once, and then as often as it is called."""
    dtype, cells = np.dtype(np.uint8), Strided(0, (1,), (NBYTES,))
    up, down = (
        (device.image_memory(NBYTES, dtype), device.device_staging(NBYTES, dtype))
        for _ in range(2)
    )
    commands = (
        device.bring_command(*up, cells, cells), device.retrieve_command(*down, cells, cells)
    )  # fmt: skip

    def move() -> list[Event]:
        return [command(None) for _ in range(N_PIECES) for command in commands]

    wait_for_all(move())
    return move
