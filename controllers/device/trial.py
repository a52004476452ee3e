# SPDX-License-Identifier: MIT
"""Tries one driver, in a process of its own that the driver may abort or keep for ever.

    python -m controllers.device.trial LIBRARY

builds a small kernel on every device, runs it and looks at what it computed.  Each finding is a
line of JSON, each device is announced before it is used: the last line names it.
"""
from __future__ import annotations

import ctypes
import json
import resource
import sys
import time
import warnings
from dataclasses import fields

import numpy as np
import pyopencl as cl

from controllers.device.device import Device
from controllers.device.discovery import describe, pci_address
from controllers.device.driver import Driver, loading_only
from controllers.device.verdict import MARK
from controllers.process.foreign_options import without_foreign_options
from controllers.process.invoker import keep_invokers_in_memory

_N = 64
_SOURCE = """
__kernel void trial(__global int *x) {
    const size_t i = get_global_id(0);
    x[i] = 3 * x[i] + (int)i;
}
"""


def main(library: str) -> None:
    """Say what the driver offers and what became of it."""
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))     # a driver's core file is huge
    warnings.simplefilter("ignore")
    try:
        with loading_only([Driver(library)]):
            platforms = cl.get_platforms()
    except cl.Error:
        platforms = []
    if not platforms:
        _say(empty=_why_nothing(library))
    for platform in platforms:
        handles = _devices(platform)
        if not handles:
            _say(empty=f"offers no device ({platform.name.strip()})")
        for handle in handles:
            device = describe(handle, platform)
            plain = {f.name: getattr(device, f.name) for f in fields(Device) if f.compare}
            _say(device=plain, address=pci_address(handle))
            start = time.perf_counter()
            problem = _try(handle)
            _say(problem=problem, seconds=time.perf_counter() - start)


def _devices(platform: cl.Platform) -> list[cl.Device]:
    try:
        found = platform.get_devices()
    except cl.Error:
        return []
    return [handle for handle in found if handle.available and handle.compiler_available]


def _try(handle: cl.Device) -> str:
    """What is wrong with a device; empty if it computes as it should."""
    numbers = np.arange(_N, dtype=np.int32)
    keep_invokers_in_memory()
    try:
        context = cl.Context([handle])
        queue = cl.CommandQueue(context)
        with without_foreign_options():
            program = cl.Program(context, _SOURCE).build(cache_dir=False)  # type: ignore[arg-type]
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        buffer = cl.Buffer(context, flags, hostbuf=numbers)
        cl.Kernel(program, "trial")(queue, (_N,), None, buffer)
        result = np.empty_like(numbers)
        cl.enqueue_copy(queue, result, buffer)
    except cl.Error as error:
        return " ".join(str(error).split())[:400]
    wrong = int(np.count_nonzero(result != 4 * numbers))
    return f"computed {wrong} of {_N} numbers wrongly" if wrong else ""


def _why_nothing(library: str) -> str:
    """Why the loader got no platform out of a library."""
    if library:
        try:
            ctypes.CDLL(library)
        except OSError as error:
            return f"cannot be loaded: {error}"
    return "offers no OpenCL platform"


def _say(**facts: object) -> None:
    print(MARK + json.dumps(facts), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
