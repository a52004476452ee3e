# SPDX-License-Identifier: MIT
"""Devices: tried, found, described, chosen by name or kind, and assigned to the ranks of a host."""
from controllers.device.assignment import assign
from controllers.device.device import Device, NoDeviceError, Part, reference_device
from controllers.device.discovery import find_devices, find_simulator, is_simulator
from controllers.device.probe import probe
from controllers.device.remedy import explained, problems
from controllers.device.selection import choose
from controllers.device.usable import choose_usable
from controllers.device.verdict import Verdict, computing, loading_usable

__all__ = [
    "Device", "NoDeviceError", "Part", "Verdict", "assign", "choose", "choose_usable",
    "computing", "explained", "find_devices", "find_simulator", "is_simulator", "loading_usable",
    "probe", "problems", "reference_device",
]  # fmt: skip
