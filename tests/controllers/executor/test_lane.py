# SPDX-License-Identifier: MIT
from __future__ import annotations

from threading import Thread

import numpy as np
import pyopencl as cl
import pytest
from mpi_jobs import HANGS_S

from controllers.device import assign, choose, find_devices
from controllers.executor.lane import Lane
from controllers.executor.opened_device import OpenedDevice
from controllers.kernel.build import build

SOURCE = """
__kernel void congruent(__global uint *cells, const uint number, const int n_times)
{
    const int i = get_global_id(0);
    uint cell = cells[i];
    for (int time = 0; time < n_times; ++time)
        cell = 1664525 * cell + number;
    cells[i] = cell;
}
"""
N_CELLS, N_STEPS, N_TIMES = 64, 8, 100_000


def lanes() -> list[Lane]:
    devices = [device.handle for device in find_devices() if device.handle is not None]
    return [Lane(cl.Context([device]), device) for device in devices]


def test_commands_of_a_lane_run_in_order_whichever_of_them_are_timed() -> None:
    for lane in lanes():
        context = lane.queue.context
        kernel = cl.Kernel(build(context, "congruent", SOURCE), "congruent")
        buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE, 4 * N_CELLS)
        cl.enqueue_fill_buffer(lane.queue, buffer, np.uint32(1), 0, 4 * N_CELLS)
        right, found = 1, np.empty(N_CELLS, np.uint32)
        for step in range(N_STEPS):
            n_times = 1 if step % 2 else N_TIMES    # what comes after long work takes no time
            lane.time(bool(step % 2))
            kernel.set_args(buffer, np.uint32(step), np.int32(n_times))
            cl.enqueue_nd_range_kernel(lane.queue, kernel, (N_CELLS,), (N_CELLS,))
            for _ in range(n_times):
                right = (1664525 * right + step) % 2**32
        cl.enqueue_copy(lane.queue, found, buffer)
        assert set(found.tolist()) == {right}


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


def test_every_queue_of_a_part_of_a_device_is_of_that_part() -> None:
    (device,) = assign(choose(["cpu/1"], find_devices()), 0, 1)
    for zero_copy in (True, False):
        opened = OpenedDevice(device, zero_copy, None)
        lanes = [opened.compute_lane, opened.transfer_lane, opened.retrieve_lane, opened.lane()]
        queues = [queue for lane in lanes for queue in (lane.timed, lane._untimed)]
        if opened.results is not None:
            queues.append(opened.results)
        assert {queue.device.max_compute_units for queue in queues} == {1}
        assert all(queue.device == device.handle for queue in queues)


@pytest.mark.parametrize("n_before", [0, 1])
def test_commands_of_a_lane_may_come_beside_each_other(n_before: int) -> None:
    """Until it is finished, which waits for all."""
    for lane in lanes():
        for _ in range(n_before):
            lane.alternate()
        held = cl.UserEvent(lane.queue.context)
        first = cl.enqueue_marker(lane.queue, wait_for=[held])
        lane.queue.flush()
        lane.alternate()
        cl.enqueue_marker(lane.queue).wait()    # which would wait for ever in order
        finishing = Thread(target=lane.finish, daemon=True)
        finishing.start()
        finishing.join(0.1)
        assert finishing.is_alive(), "the first one is not over"
        held.set_status(cl.command_execution_status.COMPLETE)
        finishing.join(HANGS_S)
        assert not finishing.is_alive()
        assert first.command_execution_status == cl.command_execution_status.COMPLETE
