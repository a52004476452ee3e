# SPDX-License-Identifier: MIT
"""Devices: tried, found, described, chosen by name or kind, and assigned to the ranks of a host.

What describes them needs no OpenCL; what finds and opens them loads it when asked for.
"""
from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from controllers.device.device import Device, NoDeviceError, Part, reference_device
from controllers.device.probe import probe
from controllers.device.remedy import explained, problems
from controllers.device.selection import choose
from controllers.device.verdict import Verdict, computing, loading_usable

if TYPE_CHECKING:
    from controllers.device.assignment import assign
    from controllers.device.discovery import find_devices, find_simulator, is_simulator
    from controllers.device.usable import choose_usable, probe_wanted

_HOMES = {
    "assign": "assignment",
    "choose_usable": "usable",
    "find_devices": "discovery",
    "find_simulator": "discovery",
    "is_simulator": "discovery",
    "probe_wanted": "usable",
}
__all__ = [
    "Device", "NoDeviceError", "Part", "Verdict", "assign", "choose", "choose_usable",
    "computing", "explained", "find_devices", "find_simulator", "is_simulator", "loading_usable",
    "probe", "probe_wanted", "problems", "reference_device",
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'controllers.device' has no attribute {name!r}")
    return getattr(importlib.import_module(f"controllers.device.{_HOMES[name]}"), name)
