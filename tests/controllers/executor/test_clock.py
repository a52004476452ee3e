# SPDX-License-Identifier: MIT
from __future__ import annotations

import time

import pytest
from mpi_jobs import run_ranks

from controllers.device import assign, choose, find_devices
from controllers.executor.clock import Clock, Reading, root_reading
from controllers.executor.opencl import OpenCLExecutor
from hitmap import SerialCommunicator

SHIFTED = """
import time
from controllers.executor.clock import root_reading
from hitmap import default_communicator
comm = default_communicator()
shift = 10**12 * comm.rank
reading = root_reading(comm, lambda: time.perf_counter_ns() + shift)
off = reading.there - shift - reading.here      # all ranks are on one host
assert abs(off) <= reading.error_ns < 10**9, (off, reading)
same = root_reading(comm)
assert same.there == same.here and same.error_ns < 10**9, same
print("aligned")
"""


def test_a_drift_between_two_readings_is_followed_both_ways() -> None:
    clock = Clock(Reading(1000, 5000))
    clock.add(Reading(2000, 6100, error_ns=7))
    assert [clock.here(moment) for moment in (1000, 1500, 2000)] == [5000, 5550, 6100]
    assert [clock.there(moment) for moment in (5000, 5550, 6100)] == [1000, 1500, 2000]
    assert clock.error_ns == 7


def test_the_last_two_readings_count() -> None:
    clock = Clock(Reading(0, 0))
    clock.add(Reading(10, 1000))
    clock.add(Reading(20, 1010))
    assert clock.here(15) == 1005


def test_a_clock_without_a_reading_is_our_own() -> None:
    assert Clock().here(123) == Clock().there(123) == 123


def test_a_single_process_is_aligned_with_itself() -> None:
    reading = root_reading(SerialCommunicator())
    assert (reading.there, reading.error_ns) == (reading.here, 0)


def test_ranks_find_the_clock_of_rank_0_within_the_error_they_state() -> None:
    job = run_ranks(3, SHIFTED)
    assert (job.returncode, job.stdout.count("aligned")) == (0, 3), job.stderr


def test_what_was_queued_narrows_the_bracket_unless_it_contradicts_it() -> None:
    certain = Reading.of_command(10**9, 130, 140, 5100, 5110, 5190)
    assert certain == Reading(140, 5150, 40)
    assert Reading.of_command(128, 130, 140, 5100, 5110, 5190).error_ns == 5


@pytest.mark.parametrize("pause_s", [0.0, 0.2])
def test_commands_of_a_device_lie_between_their_call_and_the_end_of_the_wait(
    pause_s: float,
) -> None:
    import pyopencl as cl

    (device,) = assign(choose(["cpu:0"], find_devices()), 0, 1)
    executor = OpenCLExecutor(device)
    time.sleep(pause_s)
    called = time.perf_counter_ns()
    event = cl.enqueue_marker(executor.compute)
    event.wait()
    done = time.perf_counter_ns()
    executor.read_clock()
    error = 2 * executor.clock.error_ns
    start, end = executor.clock.here(event.profile.start), executor.clock.here(event.profile.end)
    assert called - error <= start <= end <= done + error
    assert executor.clock.age_ns < 60 * 10**9
