# SPDX-License-Identifier: MIT
"""Time per step of three stages on three fields against the loop written in PyOpenCL.

    python tools/compare_stages.py [--device SELECTOR] [--sizes 64 1024]

The hand-written loop only enqueues: three kernels a step in an in-order queue, all arguments set
before, two buffers for each field.  Both compute Yee's scheme for an electric field in the plane
and a magnetic one across it, float32 on N x N cells, on one device, in turn within one process,
and both end with the same bits.  Printed: medians over the rounds in microseconds per step, and
the median of the rounds' ratios.
"""
from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyopencl as cl

import controllers as ct
from controllers.device import choose, find_devices

Field = npt.NDArray[np.float32]
SOURCE = """
#pragma OPENCL FP_CONTRACT OFF
__kernel void across(__global const float *restrict ey, __global const float *restrict hz,
                     __global float *restrict new, const long pitch)
{
    const long c = get_global_id(1) * pitch + get_global_id(0) + 1;
    new[c] = ey[c] - 0.5f * (hz[c] - hz[c - 1]);
}
__kernel void along(__global const float *restrict ex, __global const float *restrict hz,
                    __global float *restrict new, const long pitch)
{
    const long c = (get_global_id(1) + 1) * pitch + get_global_id(0);
    new[c] = ex[c] + 0.5f * (hz[c] - hz[c - pitch]);
}
__kernel void magnetic(__global const float *restrict hz, __global const float *restrict ex,
                       __global const float *restrict ey, __global float *restrict new,
                       const long pitch)
{
    const long c = get_global_id(1) * pitch + get_global_id(0);
    new[c] = hz[c] + 0.7f * (ex[c + pitch] - ex[c] - ey[c + 1] + ey[c]);
}
"""


@ct.step
def across(ey: Any, hz: Any) -> Any:
    return dict(ey=ey - 0.5 * (hz - hz[0, -1]))


@ct.step
def along(ex: Any, hz: Any) -> Any:
    return dict(ex=ex + 0.5 * (hz - hz[-1, 0]))


@ct.step
def magnetic(hz: Any, ex: Any, ey: Any) -> Any:
    return dict(hz=hz + 0.7 * (ex[1, 0] - ex - ey[0, 1] + ey))


class HandWritten:
    """The loop as one would write it for one device."""

    def __init__(self, device: cl.Device, fields: Mapping[str, Field]) -> None:
        self._context = cl.Context([device])
        self._queue = cl.CommandQueue(self._context, device)
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        self._buffers = {
            name: [cl.Buffer(self._context, flags, hostbuf=values) for _ in range(2)]
            for name, values in fields.items()
        }
        self._n_steps = 0
        rows, columns = fields["ey"].shape
        sizes = {
            "across": (columns - 1, rows), "along": (columns, rows - 1),
            "magnetic": (columns - 1, rows - 1),
        }  # fmt: skip
        program = cl.Program(self._context, SOURCE).build()
        self._launches = []
        for old, new in ((0, 1), (1, 0)):
            ey, ex, hz = (self._buffers[name] for name in ("ey", "ex", "hz"))
            arguments = {
                "across": (ey[old], hz[old], ey[new]), "along": (ex[old], hz[old], ex[new]),
                "magnetic": (hz[old], ex[new], ey[new], hz[new]),
            }  # fmt: skip
            kernels = []
            for name, buffers in arguments.items():
                kernel = cl.Kernel(program, name)
                kernel.set_args(*buffers, np.int64(columns))
                kernels.append((kernel, sizes[name]))
            self._launches.append(kernels)

    def run(self, n_steps: int) -> None:
        """All steps, to the end of the last one."""
        queue, enqueue = self._queue, cl.enqueue_nd_range_kernel
        for _ in range(n_steps):
            for kernel, size in self._launches[self._n_steps % 2]:
                enqueue(queue, kernel, size, None)
            self._n_steps += 1
        queue.finish()

    def result(self, name: str, like: Field) -> Field:
        """A field as it is now."""
        values = np.empty_like(like)
        cl.enqueue_copy(self._queue, values, self._buffers[name][self._n_steps % 2])
        return values


def compare(selector: str, size: int, rounds: int, n_steps: int) -> None:
    """Both in turn, with as many cells along both axes; prints a line."""
    (device,) = choose([selector], find_devices())
    assert device.handle is not None, "an OpenCL device"
    rng = np.random.default_rng(0)
    fields = {name: rng.random((size, size), np.float32) for name in ("ey", "ex", "hz")}
    theirs, starts = HandWritten(device.handle, fields), dict[str, Any](fields)
    with ct.Computation(
        [across, along, magnetic], ct.Grid(y=size, x=size), dtype="float32", boundary=ct.keep(),
        devices=selector, **starts,
    ) as ours:  # fmt: skip
        runs: dict[str, Callable[[int], object]] = {
            "controllers": ours.run, "hand-written": theirs.run,
        }  # fmt: skip
        times: list[dict[str, float]] = []
        for number in range(rounds + 1):
            found = {}
            for name in [*runs][:: 1 if number % 2 else -1]:
                start = time.perf_counter()
                runs[name](n_steps)
                found[name] = (time.perf_counter() - start) / n_steps * 1e6
            times.append(found)
        for name, values in fields.items():
            assert np.array_equal(np.asarray(ours[name]), theirs.result(name, values)), name
    mine, hand = (statistics.median(row[name] for row in times[1:]) for name in runs)
    ratio = statistics.median(row["controllers"] / row["hand-written"] for row in times[1:])
    print(f"{size:6} x {size:<6} {mine:10.1f} us {hand:12.1f} us ratio {ratio:.3f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--device", default="cpu", help="as for `controllers run` (default: cpu)")
    parser.add_argument("--sizes", type=int, nargs="+", default=[64], help="N of N x N")
    parser.add_argument("--rounds", type=int, default=15, help="rounds per size (default: 15)")
    parser.add_argument("--steps", type=int, default=2000, help="steps of a round (default: 2000)")
    options = parser.parse_args()
    print(" cells          controllers     hand-written")
    for size in options.sizes:
        compare(options.device, size, options.rounds, options.steps)


if __name__ == "__main__":
    main()
