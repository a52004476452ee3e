# SPDX-License-Identifier: MIT
"""What computes without OpenCL is a class and two rows: nothing else has to know of it."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from controllers import Computation, Controller, Kernel, Stencil, reference_run
from controllers.device import Device, choose, find_devices
from controllers.device.device import WITHOUT_OPENCL, reference_device
from controllers.device.event import Command, in_order
from controllers.executor.executor import Folding
from controllers.executor.reference import ReferenceExecutor
from controllers.memory.tile import Tile
from controllers.placement.opening import OPEN
from controllers.program.program import Program
from controllers.program.surroundings import Surroundings
from controllers.program.sweep import Sweep
from controllers.settings.execution import Execution
from hitmap import SerialCommunicator, Shape
from hitmap.strided import consecutive

MEAN = Stencil.of("mean", [(-1, 1)] * 2, [0, 1, 0, 1, 2, 1, 0, 1, 0], 6).program("float32")
EXTENT = (13, 9)


class Abacus(ReferenceExecutor):
    """Computes four cells of a row at a time; its memory is the host's."""

    n_launches = 0

    def launch_command(
        self, program: Program, sweep: Sweep, reads: Mapping[str, Tile],
        writes: Mapping[str, Tile], over: Shape, around: Surroundings,
        folding: Folding | None = None, part: int = 0,
    ) -> Command:  # fmt: skip
        Abacus.n_launches += 1
        assert folding is None, "it folds nothing"
        parts = consecutive(over, 4)
        return in_order([
            super(Abacus, self).launch_command(program, sweep, reads, writes, few, around)
            for few in parts
        ])  # fmt: skip


def abacus() -> Device:
    kind: Any = "abacus"
    return replace(reference_device(), name="an abacus", kind=kind)


def opened(device: Device, program: Program, execution: Execution) -> Abacus:
    return Abacus(device, memory_cap=execution.memory_cap)


@pytest.fixture(autouse=True)
def with_abacus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WITHOUT_OPENCL, "abacus", abacus)
    monkeypatch.setitem(OPEN, "abacus", opened)


@pytest.mark.parametrize("devices", ["abacus", ["abacus", "reference"], ["abacus", "abacus"]])
def test_it_is_named_opened_and_computes(devices: str | list[str]) -> None:
    field = np.random.default_rng(0).random(EXTENT, np.float32)
    Abacus.n_launches = 0
    with Computation(MEAN, field, devices=devices, comm=SerialCommunicator()) as run:
        run.run(4)
        result, text, kernels = run.gather(), run.explain(), run.report().kernels
    assert result is not None
    assert np.array_equal(result, reference_run(MEAN, field, 4, (False, False)))
    assert Abacus.n_launches
    assert "an abacus: stage mean by kernel abacus (without OpenCL), build options: none" in text
    assert {kernel.device for kernel in kernels} <= {"an abacus", "reference"}


def test_it_is_listed_and_never_chosen_by_default() -> None:
    listed = find_devices()
    assert [device.name for device in listed][-2:] == ["reference", "an abacus"]
    assert "an abacus" not in {device.name for device in choose([], listed)}
    assert [device.name for device in choose(["abacus:0"], listed)] == ["an abacus"]
    with pytest.raises(ValueError, match="only a CPU can be divided, an abacus is none"):
        choose(["abacus/1,1"], listed)


def test_kernels_are_for_others() -> None:
    mine = Kernel.of("mine", "NEW(u) = HERE(u);")
    with pytest.raises(ValueError, match="the abacus device .* cannot run the kernel 'mine'"):
        Computation(MEAN, EXTENT, devices="abacus", kernel=mine, comm=SerialCommunicator())
    with pytest.raises(ValueError, match="the abacus device .* runs no kernels"):
        Controller("abacus")
