# SPDX-License-Identifier: MIT
from __future__ import annotations

import numpy as np
import pyopencl as cl
import pytest

from controllers.device import find_devices
from controllers.executor.lane import Lane
from controllers.kernel.build import build

SOURCE = """
__kernel void add_to_twice(__global int *cells, const int number)
{
    const int i = get_global_id(0);
    cells[i] = 2 * cells[i] + number;
}
"""
N_CELLS, N_STEPS = 1 << 15, 20


def lanes() -> list[Lane]:
    devices = [device.handle for device in find_devices() if device.handle is not None]
    return [Lane(cl.Context([device])) for device in devices]


def test_commands_of_a_lane_run_in_order_whichever_of_them_are_timed() -> None:
    for lane in lanes():
        context = lane.queue.context
        kernel = cl.Kernel(build(context, "add_to_twice", SOURCE), "add_to_twice")
        buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE, 4 * N_CELLS)
        cl.enqueue_fill_buffer(lane.queue, buffer, np.int32(1), 0, 4 * N_CELLS)
        right, found = np.ones(N_CELLS, np.int32), np.empty(N_CELLS, np.int32)
        for step in range(N_STEPS):
            lane.time(step % 3 == 0)
            kernel.set_args(buffer, np.int32(step))
            cl.enqueue_nd_range_kernel(lane.queue, kernel, (N_CELLS,), None)
            right = 2 * right + np.int32(step)
        cl.enqueue_copy(lane.queue, found, buffer)
        assert np.array_equal(found, right)


def test_a_lane_times_commands_until_it_is_told_otherwise_and_after_its_end() -> None:
    for lane in lanes():
        first = cl.enqueue_marker(lane.queue)
        lane.time(False)
        second = cl.enqueue_marker(lane.queue)
        lane.time(False)        # nothing changes
        lane.finish()
        assert first.profile.end > 0
        with pytest.raises(cl.RuntimeError, match="PROFILING_INFO_NOT_AVAILABLE"):
            _ = second.profile.end
        lane.restart()
        third = cl.enqueue_marker(lane.queue)
        third.wait()
        assert third.profile.end >= first.profile.end
