# SPDX-License-Identifier: MIT
"""Device memory is zeroed by a kernel of ours: the drivers' own filling fails for large buffers."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyopencl as cl

from controllers.kernel.build import build
from controllers.kgt.text.fixed import fixed_source

GROUP = 64
MAX_ITEMS = 1 << 18     # more than any device runs at once
VECTOR_NBYTES = 16


class Clearing:
    """Zeroes buffers of one context; its kernel is built, with `options`, for the first of them."""

    def __init__(self, queue: cl.CommandQueue, options: Sequence[str] = ()) -> None:
        self._queue, self._options = queue, options
        self._program: cl.Program | None = None

    def run(self, buffer: cl.Buffer, nbytes: int) -> None:
        """The first `nbytes` bytes become 0; returns when they are."""
        if self._program is None:
            source = fixed_source("clear")
            self._program = build(self._queue.context, "clear", source, self._options)
        kernel = cl.Kernel(self._program, "clear")
        kernel.set_args(buffer, np.int64(nbytes))
        n_groups = -(-max(1, nbytes) // (VECTOR_NBYTES * GROUP))
        n_items = min(GROUP * n_groups, MAX_ITEMS)
        cl.enqueue_nd_range_kernel(self._queue, kernel, (n_items,), (GROUP,)).wait()
