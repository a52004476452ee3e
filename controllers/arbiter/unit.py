# SPDX-License-Identifier: MIT
"""Devices as units: the same name in all processes of a node, whatever else these see."""
from __future__ import annotations

import logging
from collections.abc import Sequence

from controllers.arbiter.mark import Mark
from controllers.device.device import Device
from controllers.device.discovery import pci_address

_logger = logging.getLogger(__name__)


def unit_of(device: Device) -> str:
    """The unit for a device: by where it is plugged in, or else its driver, name and number there.

    All CPU devices are one, as are their parts; what computes on its cores asks for those.
    """
    whole = device if device.part is None else device.part.whole
    handle = whole.handle
    if handle is None or whole.kind == "cpu":
        return f"device {whole.kind}"
    address = pci_address(handle)
    if address is not None:
        return f"device {whole.name} at {address}"
    alike = [other for other in handle.platform.get_devices() if other.name == handle.name]
    number = alike.index(handle) if handle in alike else 0
    return f"device {whole.name} of {whole.platform}, number {number}"


def marked(devices: Sequence[Device], what: str) -> Mark | None:
    """Say that `what` computes on these; None where that cannot be said."""
    try:
        return Mark([*dict.fromkeys(map(unit_of, devices))], what)
    except OSError as error:    # runs do not depend on it
        _logger.info("nobody is told which devices are used: %s", error)
        return None
