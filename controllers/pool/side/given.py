# SPDX-License-Identifier: MIT
"""What a job is given, as functions and kernels take it: arrays, tiles of arrays, and numbers."""
from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

import numpy as np

from controllers.controller.access import ArrayAccess
from controllers.memory.tile import Tile
from controllers.pool.data import Touch
from controllers.pool.job import Job, TaskFuture


def argument(given: Any, touches: Any, *, whole: bool = False) -> Any:
    """What a function gets for an argument; `touches` are those of arrays, in order.

    whole: of a part of a task, the array that it is a part of.
    """
    if isinstance(given, (np.ndarray, ArrayAccess)):
        touch: Touch = next(touches)
        view = (touch.origin if whole else touch.view).view()
        if not touch.writes:
            view.flags.writeable = False
        return view
    return value_of(given)


def value_of(given: Any) -> Any:
    """The result of a future that is done; anything else is itself."""
    return Future.result(given, 0) if isinstance(given, TaskFuture) else given


def named_tiles(
    touches: Sequence[Touch], tiles: Sequence[Tile]
) -> dict[str, tuple[Touch, Tile]]:
    """Touches with their tiles, whose cells are counted from the first one of each array."""
    found = {}
    for touch, tile in zip(touches, tiles):
        geometry = touch.at.geometry
        assert geometry is not None, "what a device was chosen for"
        found[touch.name] = touch, Tile(geometry, tile.dtype, tile.host, tile.buffer)
    return found


def numbers_of(job: Job) -> dict[str, Any]:
    """The other arguments, by name."""
    if len(job.touches) == len(job.args) + len(job.kwargs):
        return {}
    named = job.task.named(job.args, job.kwargs)
    arrays = {touch.name for touch in job.touches}
    found = {name: value_of(given) for name, given in named if name not in arrays}
    for name, value in found.items():
        if getattr(value, "shape", ()) != ():
            raise ValueError(
                f"task {job.task.name!r}: {name!r} is a result with axes, which a kernel cannot "
                f"take; write it to an array that both tasks are given"
            )
    return found
