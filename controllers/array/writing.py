# SPDX-License-Identifier: MIT
"""NumPy's functions that write into an array, where that is a field or a slice of one."""
from __future__ import annotations

from typing import Any

import numpy as np

REFUSED = {np.put, np.place, np.putmask, np.put_along_axis, np.fill_diagonal}


def copy_to(target: Any, source: Any, casting: str = "same_kind", where: Any = True) -> None:
    """What `np.copyto` does; TypeError for another casting than assignments have."""
    if casting != "same_kind":
        raise TypeError(
            f"np.copyto to a field casts within a kind, got casting={casting!r}; convert the "
            f"values before, by astype"
        )
    target[...] = source if where is True else np.where(where, source, target)


def refuse(name: str) -> None:
    """TypeError for what would write into a copy."""
    raise TypeError(
        f"np.{name} writes into an array, and cells of fields are on devices; assign them, as "
        f"u[u < 0] = 0"
    )
