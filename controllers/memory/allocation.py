# SPDX-License-Identifier: MIT
"""OpenCL memory in the account of a ledger, for as long as there is a reference to it."""
from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyopencl as cl

from controllers.memory.ledger import HostPurpose, Ledger, Purpose


class _Buffer(cl.Buffer):
    """A buffer that can be referenced weakly, which PyOpenCL's own cannot."""


def device_memory(
    context: cl.Context, ledger: Ledger, nbytes: int, purpose: Purpose
) -> cl.Buffer:
    """Memory of the context's device; `MemoryCapError` where it exceeds the cap."""
    ledger.check(nbytes, purpose)
    buffer = _Buffer(context, cl.mem_flags.READ_WRITE, nbytes)
    ledger.hold(buffer, nbytes, purpose)
    return buffer


def pinned_memory(
    queue: cl.CommandQueue,
    ledger: Ledger,
    n_elements: int,
    dtype: np.dtype[Any],
    purpose: HostPurpose,
) -> npt.NDArray[Any]:
    """Host memory that the device of `queue` reaches fast."""
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.ALLOC_HOST_PTR
    pinned = cl.Buffer(queue.context, flags, n_elements * dtype.itemsize)
    access: Any = cl.map_flags.READ | cl.map_flags.WRITE
    array: npt.NDArray[Any]
    array, _ = cl.enqueue_map_buffer(queue, pinned, access, 0, (n_elements,), dtype)
    ledger.hold(array, array.nbytes, purpose)
    return array
