# SPDX-License-Identifier: MIT
"""Devices are found once each, chosen by name, and shared among the ranks of a host."""
from __future__ import annotations

from dataclasses import replace

import pytest

from controllers.device import Device, NoDeviceError, assign, choose, find_devices, reference_device
from controllers.device.assignment import plan_assignment
from controllers.device.device import DeviceKind
from controllers.device.discovery import Listing, unique
from controllers.device.naming import selector_of


def device(name: str, kind: DeviceKind, units: int = 4, **changes: object) -> Device:
    plain = Device(
        name=name,
        vendor="Maker",
        platform="Driver",
        version="1.0",
        kind=kind,
        compute_units=units,
        memory_bytes=2**30,
        max_allocation_bytes=2**28,
        shares_host=kind == "cpu",
        dtypes=("float32", "float64"),
        divisible=kind == "cpu" and units > 1,
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


H200 = device("NVIDIA H200", "gpu", 132, vendor="NVIDIA Corporation", platform="NVIDIA CUDA")
RADEON = device("gfx90a", "gpu", 104, vendor="Advanced Micro Devices, Inc.")
CPU = device("Xeon", "cpu", 8, platform="Portable Computing Language", version="3.0")
REFERENCE = reference_device()
MIXED = [H200, H200, RADEON, CPU, REFERENCE]


def names(devices: list[Device]) -> list[str]:
    return [device.name for device in devices]


def test_the_cpu_of_several_drivers_is_one_cpu_and_the_newest_pocl_is_kept() -> None:
    old, new, final = (replace(CPU, version=v) for v in ("2.1", "3.0-rc2", "3.0"))
    other = replace(CPU, platform="Intel(R) OpenCL", version="2026.1", name="Xeon (Intel)")
    listings = [Listing(n, d) for n, d in enumerate((other, old, final, new))]
    assert unique(listings) == [final]
    assert unique(listings[:2]) == [old]
    assert unique(listings[:1]) == [other]


def test_what_one_driver_lists_several_times_stays_several() -> None:
    assert unique([Listing(0, CPU), Listing(0, CPU), Listing(1, replace(CPU, version="1"))]) == [
        CPU, CPU,
    ]  # fmt: skip
    twins = unique([Listing(0, H200), Listing(0, H200), Listing(0, RADEON)])
    assert twins == [H200, H200, RADEON]
    assert [one.number for one in twins] == [0, 1, None]


def test_a_gpu_that_two_drivers_list_is_one_gpu_by_address_or_by_name_and_number() -> None:
    by_pocl = replace(H200, platform="Portable Computing Language", name="CUDA H200")
    same = [Listing(0, by_pocl, "nvidia 0:1:0"), Listing(1, H200, "nvidia 0:1:0")]
    assert unique(same) == [H200]
    assert len(unique([same[0], Listing(1, H200, "nvidia 0:2:0")])) == 2
    twice_each = [Listing(driver, H200) for driver in (0, 1) for _ in range(2)]
    assert unique(twice_each) == [H200, H200]


def test_gpus_come_before_accelerators_before_the_cpu() -> None:
    fpga = device("FPGA", "accelerator")
    listings = [Listing(n, d) for n, d in enumerate((CPU, fpga, RADEON, H200))]
    assert unique(listings) == [RADEON, H200, fpga, CPU]


@pytest.mark.parametrize(
    ("selectors", "expected"),
    [
        ([], [H200, H200, RADEON]),
        (["gpu"], [H200, H200, RADEON]),
        (["NVidia"], [H200, H200]),
        (["nvidia:1"], [H200]),
        (["gpu:2"], [RADEON]),
        (["advanced micro"], [RADEON]),
        (["cpu", "gfx90a"], [CPU, RADEON]),
        (["nvidia", "gpu"], [H200, H200, RADEON]),
        (["portable"], [CPU]),
        (["reference", "reference"], [REFERENCE, REFERENCE]),
        (["cpu/8"], [CPU]),
    ],
)
def test_devices_are_chosen_by_kind_name_and_position(
    selectors: list[str], expected: list[Device]
) -> None:
    assert choose(selectors, MIXED) == expected


def test_equal_devices_are_told_apart() -> None:
    twins = [H200, replace(H200)]
    assert [d is t for d, t in zip(choose(["nvidia"], twins), twins)] == [True, True]
    assert choose(["nvidia:1", "nvidia"], twins)[0] is twins[1]


def test_a_cpu_is_divided_by_cores() -> None:
    parts = choose(["cpu/1,5"], MIXED)
    assert names(parts) == ["Xeon (1 of 8 cores)", "Xeon (5 of 8 cores)"]
    assert [part.compute_units for part in parts] == [1, 5]
    assert choose(["xeon:0/1,5", "cpu/1,5"], MIXED) == parts
    assert choose(["cpu/1,5:1"], MIXED) == parts[1:]
    assert choose(["cpu/1,5:1", "xeon:0/1,5:0", "cpu/1,5"], MIXED) == parts[::-1]


@pytest.mark.parametrize(
    ("selectors", "message"),
    [
        (["0"], "by kind or name.*'0'"),
        ([""], "by kind or name"),
        ([":1"], "by kind or name"),
        (["cpu/a"], "by kind or name"),
        (["intel"], "no device fits 'intel'.*NVIDIA H200.*Xeon.*reference"),
        (["nvidia:2"], "positions count from 0 and 2 devices fit"),
        (["gpu:0/1,1"], "only a CPU"),
        (["cpu/4,5"], "9 cores in all.*has 8"),
        (["cpu/1,0"], "at least one core"),
        (["cpu/1,1:2"], "cpu/1,1:2.*count from 0 and there are 2"),
        (["gpu/1,1"], "say which one.*gpu:0/1,1"),
        (["cpu", "cpu/1,1"], "share cores"),
        (["cpu/2,1", "cpu/1,1"], "share cores"),
    ],
)
def test_a_selector_that_cannot_be_met_is_refused(selectors: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        choose(selectors, MIXED)


@pytest.mark.parametrize("selectors", [[], ["gpu"], ["cpu/1,1"]])
def test_without_opencl_there_is_no_device(selectors: list[str]) -> None:
    with pytest.raises(NoDeviceError, match="reference"):
        choose(selectors, [REFERENCE])
    assert choose(["reference"], [REFERENCE]) == [REFERENCE]


def test_by_default_the_cpu_where_there_is_no_gpu() -> None:
    assert choose([], [CPU, REFERENCE]) == [CPU]


def test_ranks_get_contiguous_shares_in_order() -> None:
    chosen = [H200, H200, RADEON]
    assert plan_assignment(chosen, 1) == [chosen]
    assert plan_assignment(chosen, 2) == [[H200, H200], [RADEON]]
    assert plan_assignment(chosen, 3) == [[H200], [H200], [RADEON]]


def test_a_gpu_is_not_shared() -> None:
    for local_rank in range(3):
        with pytest.raises(NoDeviceError, match="3 ranks.*2 device.*start 2"):
            assign([H200, RADEON], local_rank, 3)


@pytest.mark.parametrize(
    ("n_ranks", "cores"),
    [(2, [4, 4]), (3, [3, 3, 2]), (8, [1] * 8), (11, [1] * 11)],
)
def test_a_cpu_is_split_by_cores_among_its_ranks(n_ranks: int, cores: list[int]) -> None:
    shares = [share for (share,) in plan_assignment([CPU], n_ranks)]
    assert [share.compute_units for share in shares] == cores
    assert all(share.part is not None and share.part.whole == CPU for share in shares)
    indices = [share.part.index for share in shares if share.part is not None]
    assert indices == [rank % 8 for rank in range(n_ranks)]


def test_parts_are_split_within_their_cores() -> None:
    shares = [share for (share,) in plan_assignment(choose(["cpu/2,5"], MIXED), 5)]
    assert [share.compute_units for share in shares] == [1, 1, 1, 3, 2]
    counts = {share.part.counts for share in shares if share.part is not None}
    assert counts == {(1, 1, 5), (2, 3, 2)}


def test_ranks_beyond_the_gpus_share_the_cpu_which_leaves_a_core_to_the_gpus() -> None:
    shares = [share for (share,) in plan_assignment([H200, CPU], 4)]
    assert names(shares) == [
        "NVIDIA H200", "Xeon (3 of 8 cores)", "Xeon (2 of 8 cores)", "Xeon (2 of 8 cores)",
    ]  # fmt: skip
    assert names(plan_assignment([H200, CPU], 1)[0]) == ["NVIDIA H200", "Xeon (7 of 8 cores)"]


def test_the_reference_is_shared_freely() -> None:
    assert plan_assignment([REFERENCE], 3) == [[REFERENCE]] * 3
    assert plan_assignment([REFERENCE, REFERENCE], 3) == [[REFERENCE]] * 3


def test_a_cpu_that_cannot_be_divided_is_refused_to_several_ranks() -> None:
    with pytest.raises(NoDeviceError, match="cannot divide"):
        plan_assignment([replace(CPU, divisible=False)], 2)
    single = device("Old", "cpu", 1)
    assert plan_assignment([single], 3) == [[single]] * 3


def test_strict_float32_division_asks_the_compiler_for_it_or_is_refused() -> None:
    assert CPU.strict_options("float32", True) == ["-cl-fp32-correctly-rounded-divide-sqrt"]
    assert CPU.strict_options("float32", False) == CPU.strict_options("float64", True) == []
    loose = replace(CPU, correctly_rounded_divide=False)
    assert loose.strict_options("float32", False) == []
    with pytest.raises(ValueError, match=r"Xeon.*divisions.*float64"):
        loose.strict_options("float32", True)
    with pytest.raises(ValueError, match=r"Xeon.*float64"):
        replace(CPU, denormals=False).strict_options("float32", False)
    with pytest.raises(ValueError, match=r"float64.*float32"):
        replace(CPU, dtypes=("float32",)).strict_options("float64", False)


def test_the_devices_of_this_host_can_be_chosen_and_opened() -> None:
    devices = find_devices()
    assert devices[-1] == reference_device()
    for found in devices[:-1]:
        assert found.handle is not None
        assert found.handle.max_compute_units == found.compute_units
        assert "float32" in found.dtypes


def test_a_part_of_the_cpu_is_opened_as_a_sub_device() -> None:
    devices = find_devices()
    if not any(d.divisible for d in devices):
        pytest.skip("no CPU device that can be divided by cores")
    opened = [assign(choose(["cpu:0"], devices), rank, 2) for rank in range(2)]
    opened.append(assign(choose(["cpu:0/1,1"], devices), 0, 1))
    for parts in opened:
        for part in parts:
            assert part.handle is not None and part.part is not None
            assert part.handle.max_compute_units == part.compute_units
            assert part.handle != part.part.whole.handle
    assert len(opened[2]) == 2


def test_a_device_that_is_divided_again_has_the_same_parts() -> None:
    """Sub-devices are never given back, so there must not be more with each computation."""
    devices = find_devices()
    if not any(d.divisible for d in devices):
        pytest.skip("no CPU device that can be divided by cores")
    first, again = (
        [part.handle for rank in range(2) for part in assign(choose(["cpu:0"], found), rank, 2)]
        for found in (devices, find_devices())
    )
    assert first == again
    assert len(set(first)) == 2


def test_devices_and_parts_have_selectors_that_name_them() -> None:
    for device in find_devices():
        name = selector_of(device)
        assert choose([name], find_devices()) == [device]
        if device.kind == "cpu" and device.divisible:
            part = device.divided((1,), 0)
            assert selector_of(part) == f"{name}/1:0"
            assert choose([f"{name}/1:0"], find_devices()) == [part]
