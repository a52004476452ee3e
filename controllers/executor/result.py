# SPDX-License-Identifier: MIT
"""A few numbers on their way to the host, which waits for them while the device goes on."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyopencl as cl

from controllers.device.event import Event
from controllers.executor.opened_device import OpenedDevice

_COPY: Callable[..., Event] = cl.enqueue_copy


class Result:
    """Numbers that are downloaded again and again, to `array`.

    From a device with memory of its own through a queue of its own, to pinned memory: in the queue
    of kernels a driver may tell of the end of a download with that of what comes after it.
    """

    def __init__(self, executor: OpenedDevice, n_words: int) -> None:
        self._lane, self._queue = executor.compute_lane, executor.results
        self.array: npt.NDArray[Any] = np.zeros(n_words, np.int64)
        if self._queue is not None:
            self.array = executor.staging(n_words, self.array.dtype)
            self.array[...] = 0

    @property
    def is_apart(self) -> bool:
        """Whether kernels go on meanwhile, so that what is downloaded must stay as it is."""
        return self._queue is not None

    def download(self, source: cl.Buffer, after: Event | None, first: int = 0) -> Event:
        """From memory that a command of the queue of kernels has written, the last one `after`.

        first: the first word.
        """
        start = first * self.array.itemsize
        if self._queue is None:
            return _COPY(
                self._lane.queue, self.array, source, src_offset=start, is_blocking=False
            )
        self._lane.queue.flush()    # or the other queue might wait for ever
        done = _COPY(
            self._queue, self.array, source, src_offset=start, is_blocking=False,
            wait_for=None if after is None else [after],
        )  # fmt: skip
        self._queue.flush()
        return done
