# SPDX-License-Identifier: MIT
"""All ways to open a controller on this host: every OpenCL device, with one image and with two."""
from __future__ import annotations

from functools import partial

import pytest
from _pytest.mark import ParameterSet

from controllers import Controller
from controllers.device import choose, find_devices


def ways_to_open(*, two_images: bool = False) -> list[ParameterSet]:
    """Parameters for a fixture: functions that open a controller; perhaps of two images only."""
    ways = []
    for kind in sorted({device.kind for device in find_devices()} - {"reference"}):
        device = choose([f"{kind}:0"], find_devices())[0]
        if device.shares_host and not two_images:
            ways.append(pytest.param(partial(Controller, device), id=f"{kind}, one image"))
        separate = partial(Controller, device, zero_copy=False)
        ways.append(pytest.param(separate, id=f"{kind}, two images"))
    return ways
