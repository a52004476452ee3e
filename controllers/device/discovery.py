# SPDX-License-Identifier: MIT
"""The devices of this host: asked from all OpenCL drivers, one entry per physical device.

Several drivers may list the same device.  All CPU-type devices are the same CPU: the newest PoCL's
entries are kept, or else those of the first driver that has any.  GPUs and accelerators are
recognised by their PCI address where the drivers tell it, else by name and number; the entry
of the vendor's own driver is kept.  What one driver lists several times stays several.
"""
from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import cast

import pyopencl as cl

from controllers.device.device import WITHOUT_OPENCL, Device, DeviceKind
from controllers.program.program import DTYPES

_KINDS: tuple[tuple[int, DeviceKind], ...] = (
    (cl.device_type.GPU, "gpu"),
    (cl.device_type.ACCELERATOR, "accelerator"),
    (cl.device_type.CPU, "cpu"),
)
_ORDER = [kind for _, kind in _KINDS]
_AMD_PCI_TOPOLOGY = 1


@dataclass(frozen=True)
class Listing:
    """A device as driver number `driver` lists it; `address` identifies the hardware, if known."""

    driver: int
    device: Device
    address: str | None = None


def find_devices() -> list[Device]:
    """GPUs, accelerators, the CPU, and last the NumPy reference, which is always there.

    Without any OpenCL driver, the reference is all there is.  A driver that fails is left out
    with a warning, a simulator without one: it is no device of the host.
    """
    real = [listing for listing in _listings() if not is_simulator(listing.device)]
    return [*unique(real), *(make() for make in WITHOUT_OPENCL.values())]


def find_simulator() -> Device | None:
    """Oclgrind's device, which looks on while kernels run; None where it is not installed."""
    found = (listing.device for listing in _listings() if is_simulator(listing.device))
    # it rounds as NumPy does, and does not say so
    return next((replace(device, correctly_rounded_divide=True) for device in found), None)


def is_simulator(device: Device) -> bool:
    """Whether a driver lists a device that does not exist."""
    return device.platform == "Oclgrind"


def unique(listings: Iterable[Listing]) -> list[Device]:
    """One entry per physical device: GPUs, accelerators, CPU, each in the order of the drivers."""
    ranked = sorted(listings, key=_preference)
    kept: list[Listing] = []
    for listing in ranked:
        others = (other for other in kept if other.driver != listing.driver)
        if not any(_same_hardware(listing, other, ranked) for other in others):
            kept.append(listing)
    kept.sort(key=lambda listing: (_ORDER.index(listing.device.kind), listing.driver))
    return numbered([listing.device for listing in kept])


def numbered(devices: Sequence[Device]) -> list[Device]:
    """The same, where several have one name with their numbers among these."""
    names = [device.name for device in devices]
    return [
        replace(device, number=names[:at].count(device.name))
        if names.count(device.name) > 1 else device
        for at, device in enumerate(devices)
    ]  # fmt: skip


def _preference(listing: Listing) -> tuple[object, ...]:
    """Which driver to keep where several list the same device: the smallest."""
    device = listing.device
    if device.kind == "cpu":
        release = [-number for number in _release(device.version)]
        return (not device.is_pocl, release, listing.driver)
    return (device.is_pocl or "rusticl" in device.platform.lower(), [], listing.driver)


def _same_hardware(one: Listing, other: Listing, listings: Sequence[Listing]) -> bool:
    """Whether two drivers list the same device."""
    if one.device.kind != other.device.kind:
        return False
    if one.device.kind == "cpu":
        return True
    if one.address is not None and other.address is not None:
        return one.address == other.address
    return one.device.name == other.device.name and _number(one, listings) == _number(
        other, listings
    )


def _number(one: Listing, listings: Sequence[Listing]) -> int:
    """Position among the devices of this name that the same driver lists."""
    alike = [x for x in listings if x.driver == one.driver and x.device.name == one.device.name]
    return next(number for number, listing in enumerate(alike) if listing is one)


def _release(version: str) -> list[int]:
    """The numbers of a version, a pre-release counting less than its release.

    >>> _release("3.0-rc2") < _release("3.0") < _release("3.1") < _release("10.0")
    True
    """
    numbers = re.findall(r"\d+", re.split("-?rc|-?pre", version)[0])
    return [*map(int, numbers[:2]), 0 if re.search("rc|pre", version) else 1]


def _listings() -> list[Listing]:
    return [listing for number, p in enumerate(_platforms()) for listing in _list(number, p)]


def _platforms() -> list[cl.Platform]:
    try:
        return cl.get_platforms()
    except cl.Error:  # the loader reports an error where it finds no driver
        return []


def _list(number: int, platform: cl.Platform) -> list[Listing]:
    """What one driver offers; empty, with a warning, if it fails."""
    try:
        return [
            Listing(number, describe(handle, platform), pci_address(handle))
            for handle in platform.get_devices()
            if handle.available and handle.compiler_available
        ]
    except cl.Error as error:
        if "DEVICE_NOT_FOUND" not in str(error):
            warnings.warn(f"OpenCL driver {platform.name!r} is left out: {error}", stacklevel=2)
        return []


def describe(handle: cl.Device, platform: cl.Platform) -> Device:
    """A device as its driver describes it."""
    kind: DeviceKind = next((k for bit, k in _KINDS if handle.type & bit), "accelerator")
    divides = cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT
    device = Device(
        name=handle.name.strip(" \0"),
        vendor=handle.vendor.strip(" \0"),
        platform=platform.name.strip(" \0"),
        version=handle.driver_version.strip(" \0"),
        kind=kind,
        compute_units=handle.max_compute_units,
        memory_bytes=handle.global_mem_size,
        max_allocation_bytes=handle.max_mem_alloc_size,
        shares_host=kind == "cpu" and bool(handle.host_unified_memory),
        dtypes=tuple(dtype for dtype in DTYPES if dtype != "float64" or _has_float64(handle)),
        correctly_rounded_divide=bool(handle.single_fp_config & divides),
        denormals=bool(handle.single_fp_config & cl.device_fp_config.DENORM),
        divisible=kind == "cpu" and handle.max_compute_units > 1 and _has_counts(handle),
        cache_bytes=handle.global_mem_cache_size,
        local_bytes=handle.local_mem_size,
        max_items=handle.max_work_group_size,
    )
    return replace(device, handle=handle)


def _has_counts(handle: cl.Device) -> bool:
    """Whether the device can be divided by numbers of cores."""
    try:
        properties = cast("list[int]", handle.partition_properties)
    except cl.Error:
        return False
    return cl.device_partition_property.BY_COUNTS in properties


def _has_float64(handle: cl.Device) -> bool:
    return "cl_khr_fp64" in handle.extensions.split() or "cl_amd_fp64" in handle.extensions.split()


def pci_address(handle: cl.Device) -> str | None:
    """Where the device is plugged in, if the driver says it: "VENDOR DOMAIN:BUS:SLOT"."""
    extensions = handle.extensions.split()
    try:
        if "cl_nv_device_attribute_query" in extensions:
            domain, bus, slot = handle.pci_domain_id_nv, handle.pci_bus_id_nv, handle.pci_slot_id_nv
            return f"nvidia {domain:04x}:{bus:02x}:{slot:02x}"
        if "cl_amd_device_attribute_query" in extensions:
            topology = handle.topology_amd
            if topology.type == _AMD_PCI_TOPOLOGY:
                return f"amd 0000:{topology.bus & 0xFF:02x}:{topology.device & 0xFF:02x}"
    except (cl.Error, AttributeError):
        pass
    return None
