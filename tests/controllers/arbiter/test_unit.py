# SPDX-License-Identifier: MIT
"""Devices have the same names in all processes, and computations say which they use."""
from __future__ import annotations

import gc
import logging
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from mpi_jobs import run_ranks

from controllers import Computation, Stencil
from controllers.arbiter import Arbiter, unit_of
from controllers.device import Device, choose, find_devices, reference_device

MEAN = Stencil.of("mean", [(-1, 1)], [1, 0, 1], 2)


class Handle(SimpleNamespace):
    """What a driver says of a device; each is equal to itself alone."""

    def __eq__(self, other: object) -> bool:
        return self is other


def gpus(count: int, extensions: str = "") -> list[Device]:
    """So many alike GPUs of one driver."""
    handles = [
        Handle(
            name="GPU 9 ", extensions=extensions, pci_domain_id_nv=0, pci_bus_id_nv=0x40 + number,
            pci_slot_id_nv=0,
        )
        for number in range(count)
    ]  # fmt: skip
    for handle in handles:
        handle.platform = SimpleNamespace(get_devices=lambda: handles)
    like = replace(reference_device(), name="GPU 9", platform="Drivers", kind="gpu")
    return [replace(like, handle=cast("Any", handle)) for handle in handles]


def test_accelerators_are_named_by_their_address() -> None:
    names = [unit_of(device) for device in gpus(2, "cl_khr_fp64 cl_nv_device_attribute_query")]
    assert names == [f"device GPU 9 at nvidia 0000:{bus}:00" for bus in (40, 41)]


def test_without_an_address_they_have_a_number_among_those_of_their_name() -> None:
    assert [unit_of(device)[-8:] for device in gpus(3)] == ["number 0", "number 1", "number 2"]


def test_a_cpu_and_its_parts_are_one() -> None:
    device = choose(["cpu"], find_devices())[0]
    assert unit_of(device) == unit_of(device.divided((1, 1), 1)) == "device cpu"
    assert unit_of(reference_device()) == "device reference"


def test_computations_mark_their_devices_as_long_as_they_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("CONTROLLERS_ARBITER", str(tmp_path / "arbiter"))
    start = np.zeros(9, np.float32)
    cpu, other = (Computation(MEAN, start, devices=word) for word in ("cpu", "reference"))
    with Arbiter() as arbiter:
        assert {(*h.units, h.how) for h in arbiter.holders()} == {
            ("device cpu", "used"), ("device reference", "used")
        }  # fmt: skip
        with arbiter.acquire_node(0):       # a mark is in nobody's way
            cpu.run(1)
        cpu.close()
        del cpu
        gc.collect()
        assert [h.units for h in arbiter.holders()] == [("device reference",)]
    other.close()
    (tmp_path / "arbiter").chmod(0o777)
    with caplog.at_level(logging.INFO, "controllers"):
        Computation(MEAN, start, devices="cpu").close()
    assert "nobody is told which devices are used" in caplog.text


RANKS = """
import os, sys, time
from pathlib import Path
from mpi4py import MPI
from controllers.arbiter import Arbiter, Want

folder, rank = Path(sys.argv[1]), MPI.COMM_WORLD.rank
arbiter = Arbiter(folder / "arbiter")
cores, devices = ("core 0", "core 1", "core 2"), ("device a", "device b")
ways = [[Want(cores, 1, 2), Want(devices)], [Want(devices, 2, 2)], [Want(cores, 3, 3)]]
for turn in range(5):
    with arbiter.acquire(ways[(rank + turn) % 3:], what=f"rank {rank}") as lease:
        files = [folder / unit for units in lease.units for unit in units]
        for file in files:
            os.close(os.open(file, os.O_CREAT | os.O_EXCL))     # nobody else has it
        time.sleep(0.001)
        for file in files:
            file.unlink()
MPI.COMM_WORLD.Barrier()
sys.stdout.write(f"{rank}{os.linesep}")
"""


@pytest.mark.whole
def test_eight_ranks_share_two_devices_and_all_finish(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(RANKS)
    done = run_ranks(8, [str(program), str(tmp_path)])
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split()) == [*"01234567"]
