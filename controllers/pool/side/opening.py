# SPDX-License-Identifier: MIT
"""What a pool is made of: the lanes of this rank's devices, and the cores of its host."""
from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from controllers.arbiter import OwnedNodes, unit_of
from controllers.device.device import Device
from controllers.device.selection import check_selectors
from controllers.placement.placement import assigned_devices, failing_together
from controllers.pool.lane import Lane
from controllers.pool.memories import Memories
from controllers.pool.share import Share
from controllers.pool.side.device_side import DeviceSide
from controllers.pool.side.host_side import HostSide
from hitmap.argument import whole
from hitmap.comm import Communicator, node_ranks

HOST_LANE = "the host"


class Opened(NamedTuple):
    """The lane of the host is the first one."""

    lanes: list[Lane]
    share: Share
    memories: Memories


def opened(
    comm: Communicator,
    devices: str | Sequence[str] | None,
    cores: int | None,
    zero_copy: bool,
    memory_cap: str | int | None,
    exclusive: bool,
) -> Opened:
    """The lanes of this rank.  Collective; errors on all ranks.

    Without `cores`, the ranks of a node share those that this process may use.
    """
    with failing_together(comm):
        check_selectors(devices, "devices")
        wanted = None if cores is None else whole(cores, "cores", 1)
    n_local = node_ranks(comm)[1]
    n = wanted or max(1, len(os.sched_getaffinity(0)) // n_local)
    memories = Memories()
    host = Lane(0, HOST_LANE, None, HostSide(memories), n_threads=n)
    found = assigned_devices(comm, devices) if devices is None or len(devices) else []
    with failing_together(comm):
        lanes = [host, *_lanes(found, n, memories, comm.rank, zero_copy, memory_cap)]
    owned = OwnedNodes(comm, "tasks, exclusive") if exclusive else None
    return Opened(lanes, Share(n, lanes, comm, owned), memories)


def _lanes(
    devices: Sequence[Device], n_cores: int, memories: Memories, rank: int, zero_copy: bool,
    memory_cap: str | int | None,
) -> list[Lane]:  # fmt: skip
    lanes: list[Lane] = []
    names: dict[str, int] = {}
    for device in devices:
        if not device.uses_opencl:
            raise ValueError(
                f"a pool has cores of the host, and devices that run kernels, got {device.kind!r}; "
                f"give devices=() for the host alone"
            )
        side = DeviceSide(device, memories, rank, zero_copy=zero_copy, memory_cap=memory_cap)
        names[device.name] = names.get(device.name, 0) + 1
        again = names[device.name]
        name = device.name if again == 1 else f"{device.name}, {again}"
        taken = min(n_cores, device.compute_units) if device.kind == "cpu" else 0
        lanes.append(Lane(
            len(lanes) + 1, name, device, side, cores=taken, memory=side.memory,
            unit="" if device.kind == "cpu" else unit_of(device),
        ))  # fmt: skip
    return lanes
