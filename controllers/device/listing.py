# SPDX-License-Identifier: MIT
"""The devices of this host, for people and programs that choose among them."""
from __future__ import annotations

import warnings

import controllers.device  # what finds devices is loaded when it is asked for
from controllers.device.device import Device
from controllers.device.probe import probe
from controllers.device.remedy import problems
from controllers.device.verdict import computing, loading_usable


def devices() -> list[Device]:
    """The devices of this host that compute, each physical device once.

    `device.kind`, `device.name` or a part of the name chooses it: `devices="gpu"`.  Warns of
    drivers that do not work.
    """
    verdicts = probe()
    with loading_usable(verdicts):
        found = computing(controllers.device.find_devices(), verdicts)
    for text in problems(verdicts):
        warnings.warn(text, RuntimeWarning, stacklevel=2)
    return found
