# SPDX-License-Identifier: MIT
"""Devices: found, described, chosen by name or kind, and assigned to the ranks of a host."""
from controllers.device.assignment import assign
from controllers.device.device import Device, NoDeviceError, Part, reference_device
from controllers.device.discovery import find_devices
from controllers.device.selection import choose

__all__ = [
    "Device", "NoDeviceError", "Part", "assign", "choose", "find_devices", "reference_device",
]  # fmt: skip
