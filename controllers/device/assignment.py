# SPDX-License-Identifier: MIT
"""Which of the chosen devices a rank gets: the ranks of a host share the list in order.

The decision is a pure function of the list and the ranks, the same on all of them; only
opening the parts of a CPU is left to the rank that uses them.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import cast

import pyopencl as cl

from controllers.device.device import Device, NoDeviceError
from hitmap.cut import split_even

MAX_DIVISIONS = 64  # of devices into parts that a process keeps


def assign(chosen: Sequence[Device], local_rank: int, n_local: int) -> list[Device]:
    """The devices of rank `local_rank` of the `n_local` ranks of this host, ready for use.

    Contiguous shares of the list; with fewer devices than ranks, a CPU is divided by its cores
    among the ranks that share it, each getting at least one.  NoDeviceError, on all ranks of
    the host, where a rank would get none because GPUs are not shared.
    """
    return open_parts(plan_assignment(chosen, n_local)[local_rank])


def plan_assignment(chosen: Sequence[Device], n_local: int) -> list[list[Device]]:
    """For each rank of a host the devices it gets; parts are not opened yet."""
    if not chosen:
        raise NoDeviceError("no device was chosen")
    devices = _leave_a_core(chosen)
    if n_local <= len(devices):
        cuts = split_even(len(devices), n_local)
        return [devices[a:b] for a, b in zip(cuts, cuts[1:])]
    n_ranks = _ranks_per_device(devices, n_local)
    return [[share] for d, n in zip(devices, n_ranks) for share in _shares(d, n)]


def _leave_a_core(chosen: Sequence[Device]) -> list[Device]:
    """Beside a GPU, a whole CPU gives up one core, to the thread that drives the GPU."""
    beside_gpu = any(device.kind in ("gpu", "accelerator") for device in chosen)
    return [
        d.divided((d.compute_units - 1,), 0)
        if beside_gpu and d.kind == "cpu" and d.divisible and d.part is None
        else d
        for d in chosen
    ]


def _ranks_per_device(devices: Sequence[Device], n_local: int) -> list[int]:
    """How many ranks use each of fewer devices: one each, and the others where it can be shared."""
    shared = [
        number for number, device in enumerate(devices)
        if device.kind == "cpu" or not device.uses_opencl
    ]  # fmt: skip
    if not shared:
        names = ", ".join(device.name for device in devices)
        raise NoDeviceError(
            f"{n_local} ranks on this host but {len(devices)} device(s), which cannot be shared: "
            f"{names}; start {len(devices)} rank(s) per host, or add a CPU with --device cpu"
        )
    cuts = split_even(n_local - (len(devices) - len(shared)), len(shared))
    counts = [1] * len(devices)
    for number, a, b in zip(shared, cuts, cuts[1:]):
        counts[number] = b - a
    return counts


def _shares(device: Device, n_ranks: int) -> list[Device]:
    """One device divided among `n_ranks` ranks; more ranks than cores share the cores in turn."""
    if n_ranks == 1 or not device.uses_opencl or device.compute_units == 1:
        return [device] * n_ranks
    if not device.divisible:
        raise NoDeviceError(
            f"{n_ranks} ranks of this host would share {device.name}, whose driver cannot divide "
            f"it by cores; start 1 rank per host, or use PoCL"
        )
    cuts = split_even(device.compute_units, min(n_ranks, device.compute_units))
    counts = tuple(b - a for a, b in zip(cuts, cuts[1:]))
    return [device.divided(counts, rank % len(counts)) for rank in range(n_ranks)]


def open_parts(devices: Sequence[Device]) -> list[Device]:
    """The same devices, those that are parts with the handles of their sub-devices."""
    ready = []
    for device in devices:
        if device.part is not None:
            whole, counts = device.part.whole.handle, device.part.counts
            assert whole is not None, "only OpenCL devices are divided"
            device = replace(device, handle=sub_devices(whole, counts)[device.part.index])
        ready.append(device)
    return ready


@lru_cache(MAX_DIVISIONS)
def sub_devices(whole: cl.Device, counts: tuple[int, ...]) -> tuple[cl.Device, ...]:
    """The parts of a device, the same at each call, since sub-devices are never given back.

    PyOpenCL retains them once more than it releases them (docs/decisions/0022-parts-are-kept.md).
    """
    return tuple(whole.create_sub_devices(_by_counts(counts)))


def _by_counts(counts: tuple[int, ...]) -> list[cl.device_partition_property]:
    """What OpenCL takes: the property, its values, 0; typed as if it were properties only."""
    values = [cl.device_partition_property.BY_COUNTS, *counts, 0]
    return cast("list[cl.device_partition_property]", values)
