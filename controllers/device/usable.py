# SPDX-License-Identifier: MIT
"""Devices chosen among those whose drivers were seen to work."""
from __future__ import annotations

from collections.abc import Sequence

from controllers.device.device import WITHOUT_OPENCL, Device, NoDeviceError
from controllers.device.discovery import Listing, find_devices, is_simulator, unique
from controllers.device.probe import probe_for
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


def probe_wanted(everyone: Sequence[Sequence[str]]) -> list[Verdict]:
    """The verdicts to choose devices by; `everyone` holds the selectors of each who will.

    Where one of them would get no device because of verdicts that are kept, the drivers that
    failed are tried again: before OpenCL is loaded, which reads its drivers but once.
    """
    return probe_for(lambda found: all(_has(wanted, found) for wanted in everyone))


def offered(verdicts: Sequence[Verdict]) -> list[tuple[Listing, Verdict]]:
    """The devices that a run can use, as their drivers list them; not one per physical device."""
    return [
        (Listing(number, tried.device, tried.address), verdict)
        for number, verdict in enumerate(verdicts)
        if verdict.usable
        for tried in verdict.tried
        if not tried.problem and not is_simulator(tried.device)
    ]


def _has(wanted: Sequence[str], verdicts: Sequence[Verdict]) -> bool:
    """Whether there is what is wanted, as far as it is known without loading a driver."""
    if any(verdict.outcome == "untried" for verdict in verdicts):
        return True
    devices = unique(listing for listing, _ in offered(verdicts))
    try:
        return bool(choose(wanted, [*devices, *(make() for make in WITHOUT_OPENCL.values())]))
    except (NoDeviceError, ValueError):
        return False
