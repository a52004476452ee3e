# SPDX-License-Identifier: MIT
from __future__ import annotations

import gc
from collections.abc import Iterator

import numpy as np
import pytest

from controllers.device import find_devices, reference_device
from controllers.executor.opencl import OpenCLExecutor
from controllers.executor.reference import ReferenceExecutor
from controllers.memory.allocation import device_memory
from controllers.memory.ledger import ENVIRONMENT, Ledger, MemoryCapError, cap_for, parse_cap, sizes
from controllers.memory.tile import SLACK
from hitmap import Shape
from hitmap.strided import Geometry

FLOAT = np.dtype("float32")
CELLS = Geometry.dense(Shape.of_extent((10, 7)))


@pytest.fixture(autouse=True)
def no_collector() -> Iterator[None]:
    """Memory goes with its last reference, not when the collector happens to come."""
    gc.disable()
    yield
    gc.enable()


def in_use(ledger: Ledger) -> dict[str, int]:
    return {purpose: nbytes for purpose, nbytes in ledger.as_dict().items() if nbytes}


def opencl(**options: object) -> OpenCLExecutor:
    device = next(d for d in find_devices() if d.kind != "reference")
    return OpenCLExecutor(device, **options)  # type: ignore[arg-type]


def test_it_counts_by_purpose_what_is_taken_and_not_yet_given_back() -> None:
    ledger = Ledger("GPU", 1000)
    ledger.take(600, "tiles")
    ledger.take(300, "device staging")
    ledger.take(50, "host images")
    ledger.give_back(200, "tiles")
    assert in_use(ledger) == {"tiles": 400, "device staging": 300, "host images": 50}
    assert (ledger.on_device, ledger.on_host) == (700, 50)
    assert (ledger.peak_on_device, ledger.peak_on_host) == (900, 50)


def test_what_was_not_taken_cannot_be_given_back() -> None:
    with pytest.raises(AssertionError, match="has been taken"):
        Ledger("GPU", 1000).give_back(1, "tiles")


@pytest.mark.parametrize("purpose", ["tiles", "alignment", "device staging", "constants"])
def test_device_memory_is_capped_whatever_it_is_for(purpose: str) -> None:
    ledger = Ledger("a GPU", 1000)
    ledger.take(990, "tiles")
    ledger.take(10, purpose)  # type: ignore[arg-type]
    with pytest.raises(MemoryCapError, match='need 1 B on "a GPU", where 1000 B .*cap is 1000 B'):
        ledger.take(1, purpose)  # type: ignore[arg-type]
    assert ledger.on_device == ledger.peak_on_device == 1000


def test_host_memory_is_counted_and_not_capped() -> None:
    ledger = Ledger("GPU", 10)
    ledger.take(1000, "host staging")
    ledger.take(1000, "host images")
    assert ledger.on_host == 2000


def test_one_allocation_is_no_larger_than_the_driver_allows() -> None:
    ledger = Ledger("GPU", 1000, largest_bytes=400)
    ledger.take(400, "tiles")
    with pytest.raises(MemoryCapError, match="one allocation of 401 B .*400 B; use more places"):
        ledger.take(401, "tiles")


def test_what_is_held_is_given_back_with_the_last_view_of_an_array() -> None:
    ledger = Ledger("GPU", 1000)
    raw = np.zeros(100, np.uint8)
    array = raw[10:50].view(FLOAT)
    ledger.hold(array, 40, "tiles")
    part = array[2:3]
    del raw, array
    assert ledger.on_device == 40
    del part
    assert ledger.on_device == 0


def test_memory_that_is_refused_is_not_counted() -> None:
    executor = opencl(memory_cap=300, zero_copy=False)
    with pytest.raises(MemoryCapError, match="cap is 300 B"):
        device_memory(executor.context, executor.ledger, 301, "tiles")
    with pytest.raises(MemoryCapError, match="one allocation"):
        device_memory(executor.context, Ledger("GPU", 1000, 200), 201, "tiles")
    tile = executor.tile(CELLS, FLOAT)
    with pytest.raises(MemoryCapError, match="tiles need 280 B"):
        executor.tile(CELLS, FLOAT)
    assert in_use(executor.ledger) == {"tiles": tile.nbytes}


def test_an_executor_counts_tiles_of_its_own_memory() -> None:
    executor = opencl(zero_copy=False)
    tile, staging = executor.tile(CELLS, FLOAT), executor.staging(12, FLOAT)
    packed, linear = executor.device_staging(5, FLOAT), tile.linear
    everything = {"tiles": 280, "device staging": 32, "host staging": 48}
    assert in_use(executor.ledger) == everything
    del tile        # its buffer is still there
    assert in_use(executor.ledger) == everything
    del linear, packed
    assert in_use(executor.ledger) == {"host staging": 48}
    part = staging[3:4]
    del staging
    assert in_use(executor.ledger) == {"host staging": 48}
    del part
    assert in_use(executor.ledger) == {}


@pytest.mark.parametrize("make", [opencl, lambda: ReferenceExecutor(reference_device())])
def test_tiles_that_are_used_in_place_are_the_devices(make: object) -> None:
    executor = make()  # type: ignore[operator]
    if not executor.shares_host:
        pytest.skip("the device has memory of its own")
    tile, staging = executor.tile(CELLS, FLOAT), executor.staging(12, FLOAT)
    assert in_use(executor.ledger) == {"tiles": 280, "alignment": SLACK, "host staging": 48}
    linear = tile.linear
    del tile, staging
    assert in_use(executor.ledger) == {"tiles": 280, "alignment": SLACK}
    del linear
    assert in_use(executor.ledger) == {}


@pytest.mark.parametrize("make", [opencl, lambda: ReferenceExecutor(reference_device())])
def test_cells_that_are_moved_from_a_tile_are_a_host_image(make: object) -> None:
    executor = make()  # type: ignore[operator]
    tile = executor.tile(CELLS, FLOAT)
    cells = executor.move_from(tile, Shape.of_extent((2, 7)))
    assert executor.ledger.as_dict()["host images"] == 56
    del cells
    assert executor.ledger.as_dict()["host images"] == 0


def test_the_cap_is_what_is_wanted_else_the_environments_else_all_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    assert cap_for(2**34) == 2**34
    monkeypatch.setenv(ENVIRONMENT, "")
    assert cap_for(2**34) == 2**34
    monkeypatch.setenv(ENVIRONMENT, "512m")
    assert cap_for(2**34) == 2**29
    assert cap_for(2**34, "1.5g") == 3 * 2**29
    assert opencl().ledger.cap_bytes == ReferenceExecutor(reference_device()).ledger.cap_bytes
    monkeypatch.setenv(ENVIRONMENT, "lots")
    assert cap_for(2**34, 1000) == 1000
    with pytest.raises(ValueError, match=f"variable {ENVIRONMENT}: .* such as .*got 'lots'"):
        cap_for(2**34)


def test_a_cpu_may_take_the_hosts_memory_whatever_its_driver_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    with open("/proc/meminfo", encoding="ascii") as file:
        in_all = int(next(line for line in file if line.startswith("MemTotal")).split()[1]) * 1024
    for device in find_devices():
        expected = in_all if device.shares_host else device.memory_bytes
        assert device.capacity_bytes == expected
    for zero_copy in (True, False):
        executor = opencl(zero_copy=zero_copy)
        assert executor.ledger.cap_bytes == executor.device.capacity_bytes


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [("1", 1), (7, 7), ("1k", 1024), ("2K", 2048), ("512m", 2**29), ("4g", 2**32), ("1T", 2**40),
     ("4GiB", 2**32), ("4 gb", 2**32), (" 0.5m ", 2**19)],
)  # fmt: skip
def test_caps_have_units(text: str | int, nbytes: int) -> None:
    assert parse_cap(text) == nbytes


@pytest.mark.parametrize("text", ["", "g", "0", "-1", -5, "4x", "1e9", "4 g b", "nan", "0.2"])
def test_what_is_no_number_of_bytes_is_refused(text: str | int) -> None:
    with pytest.raises(ValueError, match="such as 512m or 4g, got"):
        parse_cap(text)


def test_sizes_that_differ_look_different() -> None:
    assert sizes(2**40 + 2**39, 2**30) == ["1.5 TiB", "1 GiB"]
    assert sizes(2**30, 2**30 + 1) == [f"{2**30} B", f"{2**30 + 1} B"]
    assert sizes(0, 2**50) == ["0 B", "1024 TiB"]
