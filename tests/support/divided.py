# SPDX-License-Identifier: MIT
"""What tests of divided runs share: a stencil of unlike reach on each side, and a CPU in two."""
from __future__ import annotations

import os

import pytest

from controllers import Stencil
from controllers.device import find_devices

LOPSIDED = Stencil.of("lopsided", [(-1, 1), (-1, 2)], [1, 2, 1, 0, 2, 4, 2, 1, 2, 1, 1, 3], 20)
HAS_CPU = any(device.kind == "cpu" and device.handle is not None for device in find_devices())
two_cores = pytest.mark.skipif(
    not HAS_CPU or (os.cpu_count() or 1) < 2, reason="divides a CPU in two"
)
