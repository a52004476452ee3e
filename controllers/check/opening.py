# SPDX-License-Identifier: MIT
"""The executor of a device, checked or not."""
from __future__ import annotations

from controllers.check.executor import CheckedExecutor
from controllers.check.oclgrind import simulator
from controllers.check.setting import Setting
from controllers.device import Device
from controllers.executor.opencl import OpenCLExecutor
from controllers.kernel.registry import SPECIALISED, KernelChoice


def device_for(device: Device, check: Setting) -> Device:
    """The device that takes the place of `device`; NoDeviceError where Oclgrind is missing."""
    return simulator() if check == "oclgrind" else device


def open_executor(
    device: Device,
    check: Setting,
    *,
    zero_copy: bool = True,
    kernel: KernelChoice = SPECIALISED,
    memory_cap: str | int | None = None,
) -> OpenCLExecutor:
    """The executor of `device`, which `device_for` has given."""
    if check == "off":
        return OpenCLExecutor(device, zero_copy=zero_copy, kernel=kernel, memory_cap=memory_cap)
    simulated = check == "oclgrind"
    return CheckedExecutor(
        device, zero_copy=zero_copy, kernel=kernel, memory_cap=memory_cap, simulated=simulated
    )
