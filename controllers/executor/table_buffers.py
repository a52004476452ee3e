# SPDX-License-Identifier: MIT
"""Device memory that holds the tables of a launch: what given values are along an axis."""
from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from controllers.executor.opened_device import OpenedDevice
from controllers.kgt.text.given import Table
from controllers.program.surroundings import Surroundings
from hitmap.shape import Shape


def table_buffers(
    device: OpenedDevice, tables: Iterable[Table], over: Shape, around: Surroundings, dtype: str
) -> dict[str, object]:
    """What tables hold for a box, by their parameters."""
    found: dict[str, object] = {}
    for table in tables:
        axis = table.of.axis
        low = tuple(table.low if at == axis else 0 for at in range(over.n_axes))
        high = tuple(table.high if at == axis else 0 for at in range(over.n_axes))
        values = around.value(table.of, over.grow(low, high), dtype)
        found[table.name] = device.constants(np.ascontiguousarray(values.reshape(-1)))
    return found
