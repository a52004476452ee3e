# SPDX-License-Identifier: MIT
"""Devices of all ranks become controllers, and these get places."""
from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

import pytest
from mpi_jobs import run_ranks

from controllers.device import Device, NoDeviceError, find_devices, reference_device, usable
from controllers.executor.opencl import OpenCLExecutor
from controllers.executor.reference import ReferenceExecutor
from controllers.language.weights import Stencil
from controllers.placement.placement import Placement, open_controllers
from controllers.program.program import Program
from controllers.settings.execution import Execution
from hitmap import SerialCommunicator

PROGRAM = Stencil.of("mean", [(-1, 1)], [1, 0, 1], 2).program("float32")
COMM = SerialCommunicator()


def place_on(
    comm: SerialCommunicator,
    devices: str | Sequence[str] | None,
    program: Program,
    n_each: int = 1,
    *,
    zero_copy: bool = True,
) -> Placement:
    execution = Execution(devices=devices, zero_copy=zero_copy)
    return open_controllers(comm, program, execution).consecutive(n_each)


RANKS = """
import controllers.placement.placement as placement
from controllers.device import NoDeviceError, usable
from controllers.placement.placement import open_controllers
from controllers.language.weights import Stencil
from controllers.settings.execution import Execution
from hitmap import default_communicator

def place_on(comm, devices, program, n_each=1):
    return open_controllers(comm, program, Execution(devices=devices)).consecutive(n_each)

comm = default_communicator()
program = Stencil.of("mean", [(-1, 1)], [1, 0, 1], 2).program("float32")

placed = place_on(comm, "reference", program)
assert placed.ranks == (0, 1, 2) and placed.places == (comm.rank,)
assert {place.device for place in placed.locations} == {"reference"}

errors = []
for devices in ("no-such-device" if comm.rank == 1 else "reference", "cpu:0/0", "7"):
    try:
        place_on(comm, devices, program)
    except ValueError as error:
        errors.append(str(error))
usable.find_devices, find_devices = lambda: [], usable.find_devices
try:
    place_on(comm, None, program)
except NoDeviceError as error:
    errors.append(str(error))
usable.find_devices = find_devices
everyone = comm.gather(errors)
if comm.rank == 0:
    assert everyone == [errors] * 3
    print(*errors, sep="\\n")

devices = ["reference", "reference"] if comm.rank == 1 else ["reference"]
placement.node_ranks = lambda comm: (0, 1)      # as if on hosts of their own
placed = place_on(comm, devices, program, 2)
assert placed.n_places == 8 and placed.ranks == (0, 0, 1, 1, 1, 1, 2, 2)
assert [place.controller for place in placed.locations] == [0, 0, 0, 0, 1, 1, 0, 0]
mine = {0: (0, 1), 1: (2, 3, 4, 5), 2: (6, 7)}[comm.rank]
assert placed.places == mine
assert len({*map(id, placed.executors.values())}) == len(mine) // 2
assert placed.executors[mine[0]] is placed.executors[mine[1]]
everyone = comm.gather(placed.locations)
assert comm.rank != 0 or everyone == [placed.locations] * 3
"""


def test_one_process_gets_one_place_per_device_and_controller() -> None:
    placed = place_on(COMM, ["reference", "reference"], PROGRAM, 3)
    assert [(place.rank, place.controller) for place in placed.locations] == [
        (0, 0), (0, 0), (0, 0), (0, 1), (0, 1), (0, 1),
    ]  # fmt: skip
    assert placed.places == (0, 1, 2, 3, 4, 5)
    assert placed.executors[0] is placed.executors[2] is not placed.executors[3]
    assert all(isinstance(e, ReferenceExecutor) for e in placed.executors.values())
    assert all(place.shares_host for place in placed.locations)


@pytest.mark.parametrize("selector", ["reference", ["reference"], ("reference",)])
def test_one_selector_needs_no_list(selector: str | list[str]) -> None:
    assert place_on(COMM, selector, PROGRAM).n_places == 1


def test_an_opencl_device_is_opened_with_its_kernels_built() -> None:
    device = next(d for d in find_devices() if d.kind != "reference")
    for zero_copy in (True, False):
        placed = place_on(COMM, f"{device.kind}:0", PROGRAM, zero_copy=zero_copy)
        (controller,) = placed.executors.values()
        (location,) = placed.locations
        assert isinstance(controller, OpenCLExecutor)
        assert location.device == device.name
        assert location.shares_host == controller.shares_host == (zero_copy and device.shares_host)


def test_a_host_without_devices_says_what_would_help(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usable, "find_devices", lambda: [reference_device()])
    for selector in (None, "gpu"):
        with pytest.raises(NoDeviceError, match="PoCL"):
            place_on(COMM, selector, PROGRAM)


def test_a_device_that_lacks_the_dtype_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    device = next(d for d in find_devices() if d.kind != "reference")
    narrow: Device = replace(device, dtypes=("float32",))
    monkeypatch.setattr(usable, "find_devices", lambda: [narrow])
    program = Stencil.of("mean", [(-1, 1)], [1, 0, 1], 2).program("float64")
    with pytest.raises(ValueError, match=r"float64.*another device or dtype"):
        place_on(COMM, None, program)


@pytest.mark.whole
def test_ranks_share_a_host_have_places_in_order_and_raise_the_error_of_one_with_its_name() -> None:
    job = run_ranks(3, RANKS)
    assert job.returncode == 0, job.stderr
    unknown, no_core, number, nothing = job.stdout.splitlines()
    assert unknown.startswith("rank 1: no device fits 'no-such-device'")
    assert no_core.startswith("rank 0: ") and "at least one core" in no_core
    assert number.startswith("rank 0: ") and "'7'" in number
    assert nothing.startswith("rank 0: no OpenCL device") and "PoCL" in nothing


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="leaves a process one core of several")
def test_a_cpu_with_more_threads_than_cores_is_told_of() -> None:
    program = Stencil.of("s", [(-1, 1)], [1, 0, 1], 2).program("float32")
    everything = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(everything)})
    try:
        with pytest.warns(RuntimeWarning, match="may use 1 of the .* cores.*doctor"):
            open_controllers(SerialCommunicator(), program, Execution(devices="cpu:0"))
    finally:
        os.sched_setaffinity(0, everything)
