# SPDX-License-Identifier: MIT
"""Devices chosen among those whose drivers were seen to work."""
from __future__ import annotations

from collections.abc import Sequence

from controllers.device.device import Device, NoDeviceError
from controllers.device.discovery import find_devices
from controllers.device.remedy import explained
from controllers.device.selection import choose
from controllers.device.verdict import Verdict, computing, loading_usable


def choose_usable(wanted: Sequence[str], verdicts: Sequence[Verdict]) -> list[Device]:
    """The devices that are wanted, of those that a kernel was seen to run on.

    Errors as of `choose`; they name the drivers that were left out.
    """
    with loading_usable(verdicts):
        found = computing(find_devices(), verdicts)
    try:
        return choose(wanted, found)
    except (NoDeviceError, ValueError) as error:
        raise explained(error, found, verdicts) from None
