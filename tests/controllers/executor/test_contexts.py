# SPDX-License-Identifier: MIT
from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from controllers import Computation, Stencil
from controllers.device import Device, find_devices
from controllers.device.assignment import open_parts
from controllers.executor.contexts import may_meet, own_options
from controllers.executor.opencl import OpenCLExecutor

STAR = Stencil.of("star", [(-1, 1)] * 2, [0, 1, 0, 1, 2, 1, 0, 1, 0], 6)


@pytest.fixture(scope="module")
def whole() -> Device:
    found = [d for d in find_devices() if d.kind == "cpu" and d.is_pocl and d.divisible]
    if not found:
        pytest.skip("no CPU that can be divided")
    return found[0]


def parts_of(whole: Device, n_parts: int) -> list[OpenCLExecutor]:
    """As many of one core each, of a division that nobody else uses."""
    counts = (1,) * n_parts
    parts = open_parts([whole.divided(counts, index) for index in range(n_parts)])
    return [OpenCLExecutor(part) for part in parts]


def test_parts_of_a_division_share_a_context_as_long_as_one_is_open(whole: Device) -> None:
    parts = parts_of(whole, 2)
    assert parts[0].context is parts[1].context
    assert OpenCLExecutor(whole).context is not parts[0].context
    assert OpenCLExecutor(whole).context is not OpenCLExecutor(whole).context
    kept = weakref.ref(parts[0].context)
    del parts[0]
    gc.collect()
    assert kept() is parts[0].context
    parts.clear()
    gc.collect()
    assert kept() is None


def test_parts_have_programs_of_their_own_where_the_driver_would_mix_them_up(whole: Device) -> None:
    parts = open_parts([whole.divided((1, 1), index) for index in range(2)])
    apart = [("-DPART=0",), ("-DPART=1",)]
    for release, options in (("Release", [(), ()]), ("None+Asserts", apart)):
        version = f"OpenCL 3.0 PoCL 5.0  Linux, {release}, RELOC, LLVM 16.0.6"
        handle = SimpleNamespace(platform=SimpleNamespace(version=version))
        found = [own_options(replace(part, handle=handle)) for part in parts]   # type: ignore[arg-type]
        assert found == options
        assert own_options(replace(whole, handle=handle)) == ()     # type: ignore[arg-type]


def test_grids_that_the_driver_would_mix_up_do_not_meet(whole: Device) -> None:
    """They may be small, or small as well as large, by the widest axis of three."""
    small, large = [(60000, 8), (3,), ()], [(3,), (200, 400, 8, 9)]
    for release, expected in (("Release", [True, True]), ("None+Asserts", [True, False])):
        handle = SimpleNamespace(platform=SimpleNamespace(version=f"OpenCL 3.0 PoCL 5.0 {release}"))
        device = replace(whole, handle=handle)      # type: ignore[arg-type]
        assert [may_meet(device, shapes) for shapes in (small, large)] == expected
    assert may_meet(replace(whole, handle=None), large), "it is no OpenCL device"


def test_parts_hand_rows_over_by_commands_of_their_devices(whole: Device) -> None:
    field = np.random.default_rng(3).random((60, 70)).astype("float32")
    with Computation(STAR, field, devices="cpu/1,1") as run:
        lanes = {operation.lane for operation in run.plan.operations}
        assert lanes == {"compute"}
        run.run(40)
        found = run.gather()
    with Computation(STAR, field, devices="reference") as run:
        run.run(40)
        right = run.gather()
    assert found is not None and right is not None
    assert np.array_equal(found, right)


def test_parts_whose_memory_is_taken_for_their_own_go_through_the_host(whole: Device) -> None:
    with Computation(STAR, (60, 70), devices="cpu/1,1", zero_copy=False) as run:
        assert {"transfer"} < {operation.lane for operation in run.plan.operations}
