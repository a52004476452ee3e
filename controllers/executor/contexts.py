# SPDX-License-Identifier: MIT
"""OpenCL contexts: one for each device; of PoCL, one for all parts into which a device is divided.

Commands wait on the device for events of their own context alone, and use its memory alone.  So
parts of one context hand cells over without the host.
"""
# docs/decisions/0109-parts-share-a-context.md
from __future__ import annotations

from collections.abc import Iterable
from math import prod
from weakref import WeakValueDictionary

import pyopencl as cl

from controllers.device import Device
from controllers.device.assignment import sub_devices

ASSERTS = "+Asserts"    # in the version of a PoCL that looks whether what it counts is right
SMALL_GRID = 65535      # items along an axis, from which PoCL takes a kernel for larger grids ...
MOST_ROUNDED = 4096     # ... of whole work-groups

# By the whole and its division, while a part is open.
_OF_PARTS: WeakValueDictionary[tuple[cl.Device, tuple[int, ...]], cl.Context]
_OF_PARTS = WeakValueDictionary()


def own_options(device: Device) -> tuple[str, ...]:
    """What all builds of a device are given, so that its programs are no other device's.

    PoCL, up to 5.0, counts who uses compiled kernels in a list for all devices, and after a launch
    takes the first one of its program and work-group, of whatever grid.  Where parts launch a
    program with small and large grids at the same time, counts end below 0, which ends the process
    with a PoCL that has assertions, as Ubuntu 24.04's does (`pocl_release_dlhandle_cache`).
    """
    if device.part is None or not _asserts(device):
        return ()
    return (f"-DPART={device.part.index}",)


def may_meet(device: Device, shapes: Iterable[tuple[int, ...]]) -> bool:
    """Whether a device can do a program over parts of such arrays at the same time.

    Not with grids which that PoCL takes for small and for large ones (`own_options`).
    """
    widest = max(max((prod(shape[:-2]), *shape[-2:])) for shape in shapes)
    return widest + MOST_ROUNDED < SMALL_GRID or not _asserts(device)


def _asserts(device: Device) -> bool:
    """Whether it is one of a PoCL that has assertions."""
    handle = device.handle
    return handle is not None and device.is_pocl and ASSERTS in handle.platform.version


def context_of(device: Device) -> cl.Context:
    """A context for an OpenCL device; the same one for all parts of a division of PoCL's."""
    assert device.handle is not None, "an OpenCL device"
    if device.part is None or not device.is_pocl:
        return cl.Context([device.handle])
    whole, counts = device.part.whole.handle, device.part.counts
    assert whole is not None, "only OpenCL devices are divided"
    context = _OF_PARTS.get((whole, counts))
    if context is None:
        context = _OF_PARTS[whole, counts] = cl.Context([*sub_devices(whole, counts)])
    return context
