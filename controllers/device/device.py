# SPDX-License-Identifier: MIT
"""A `Device` describes what can compute: an OpenCL device, a part of one, or the NumPy reference.

It is a value that can be compared, printed and planned with; only `handle` ties it to a driver.
"""
from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from controllers.process.error import ControllersError
from controllers.program.program import DTYPES

if TYPE_CHECKING:
    import pyopencl as cl

# the build option for float32 divisions with the bits of IEEE 754
ROUNDED_DIVIDE = "-cl-fp32-correctly-rounded-divide-sqrt"

DeviceKind = Literal["gpu", "accelerator", "cpu", "reference"]


class NoDeviceError(ControllersError, RuntimeError):
    """There is no device to run on; the message says what would help."""

    __module__ = "controllers"


@dataclass(frozen=True)
class Device:
    """One physical device, or a part of one.

    memory_bytes, max_allocation_bytes: what the driver reports; it enforces neither sum.
    shares_host: kernels can use the host's memory in place.
    dtypes: "float32", where supported "float64", and the integer types.
    correctly_rounded_divide, denormals: what float32 arithmetic offers.
    divisible: can be divided by its cores.
    cache_bytes: of the cache in front of its memory, as far as the driver tells.
    local_bytes, max_items: of a work-group.
    number: of several of the same name on this host, which one; None of the only one.
    handle: the driver's object; None for the reference, and for a `part` that `assign` has not
        opened yet.
    """

    name: str
    vendor: str
    platform: str
    version: str
    kind: DeviceKind
    compute_units: int
    memory_bytes: int
    max_allocation_bytes: int
    shares_host: bool
    dtypes: tuple[str, ...]
    correctly_rounded_divide: bool = True
    denormals: bool = True
    divisible: bool = False
    cache_bytes: int = 0
    local_bytes: int = 0
    max_items: int = 0
    part: Part | None = None
    number: int | None = field(default=None, compare=False)
    handle: cl.Device | None = field(default=None, compare=False, repr=False)

    def __repr__(self) -> str:
        units, memory = self.compute_units, self.memory_bytes / 2**30
        return f"<Device {self.name}: {self.kind}, {units} compute units, {memory:.1f} GiB>"

    @property
    def uses_opencl(self) -> bool:
        """Whether it runs kernels, by a driver."""
        return self.kind not in WITHOUT_OPENCL

    @property
    def is_pocl(self) -> bool:
        """Whether its driver is PoCL."""
        return "portable computing language" in self.platform.lower()

    @property
    def capacity_bytes(self) -> int:
        """What its memory holds: of a device that shares the host's memory, all of that.

        Drivers of CPUs report what they please, such as a fifth of it.
        """
        return host_memory_bytes() if self.shares_host else self.memory_bytes

    def divided(self, counts: tuple[int, ...], index: int) -> Device:
        """Part `index` of this device, divided into parts of `counts` cores; not opened.

        A part itself is divided by dividing the whole more finely.
        """
        if self.part is not None:
            part = self.part
            finer = (*part.counts[: part.index], *counts, *part.counts[part.index + 1 :])
            return part.whole.divided(finer, part.index + index)
        return replace(
            self,
            name=f"{self.name} ({counts[index]} of {self.compute_units} cores)",
            compute_units=counts[index],
            part=Part(self, counts, index),
            handle=None,
        )

    def check_dtype(self, dtype: str) -> None:
        """ValueError unless the device computes in `dtype`."""
        if dtype not in self.dtypes:
            raise ValueError(
                f"{self.name} does not compute in {dtype}, only in {', '.join(self.dtypes)}; "
                f"choose another device or dtype"
            )

    def strict_options(self, dtype: str, divides: bool) -> list[str]:
        """Build options for strict arithmetic in `dtype`, for a kernel that divides or does not.

        ValueError where the device lacks a correctly rounded operation that the kernel needs.
        """
        self.check_dtype(dtype)
        if dtype != "float32":
            return []
        if not self.denormals:
            raise ValueError(
                f"{self.name} rounds float32 numbers below {np.finfo('float32').tiny} to 0, so its "
                f"results differ from those of other devices; use float64 or another device"
            )
        if not divides:
            return []
        if not self.correctly_rounded_divide:
            raise ValueError(
                f"{self.name} does not round float32 divisions and square roots correctly, so its "
                f"results differ from those of other devices; use float64, a factor that is a "
                f"power of two, or another device"
            )
        return [ROUNDED_DIVIDE]


@dataclass(frozen=True)
class Part:
    """Number `index` of the parts of `counts` cores into which a device is divided."""

    whole: Device
    counts: tuple[int, ...]
    index: int


def reference_device() -> Device:
    """The NumPy reference: one core of the host, no OpenCL."""
    memory = host_memory_bytes()
    return Device(
        name="reference",
        vendor="NumPy",
        platform="host",
        version=np.__version__,
        kind="reference",
        compute_units=1,
        memory_bytes=memory,
        max_allocation_bytes=memory,
        shares_host=True,
        dtypes=DTYPES,
    )


# What computes without OpenCL, by its kind, which is the word that selects it: always there, usable
# by several ranks at once, never chosen by default.  `controllers.placement.opening` opens it.
WITHOUT_OPENCL: dict[str, Callable[[], Device]] = {"reference": reference_device}


def host_memory_bytes() -> int:
    """The physical memory of this host."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
