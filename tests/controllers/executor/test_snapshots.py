# SPDX-License-Identifier: MIT
"""Snapshots: the cells as they were, whatever comes after, and memory that others may have."""
from __future__ import annotations

import gc
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, TimeoutError
from typing import Any

import numpy as np
import numpy.typing as npt
import pyopencl as cl
import pytest

from controllers.device import find_devices
from controllers.executor import snapshots as module
from controllers.executor.opencl import OpenCLExecutor
from controllers.executor.snapshots import Snapshots
from controllers.memory.ledger import MemoryCapError
from controllers.memory.tile import Tile
from hitmap import Shape
from hitmap.strided import Geometry

BOX = Shape((3, -2), (40, 61))
KIB = 1 << 10


def opened(memory_cap: int | None = None) -> OpenCLExecutor:
    device = next(one for one in find_devices() if one.kind == "cpu")
    return OpenCLExecutor(device, zero_copy=False, memory_cap=memory_cap)


@pytest.fixture
def executor() -> Iterator[OpenCLExecutor]:
    yield opened()


def filled(executor: OpenCLExecutor, box: Shape, dtype: str, seed: int = 0) -> tuple[Tile, Any]:
    tile = executor.tile(Geometry.padded(box), np.dtype(dtype))
    values = np.random.default_rng(seed).integers(0, 200, box.extent).astype(dtype)
    executor.move_to(tile, box, values)
    return tile, values


def arrived(found: tuple[npt.NDArray[Any], Any] | None) -> npt.NDArray[Any]:
    assert found is not None
    found[1].result()
    return found[0]


@pytest.mark.parametrize("piece", [module.PIECE, KIB])
def test_cells_are_those_of_then_though_the_transfer_comes_later(
    executor: OpenCLExecutor, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PIECE", piece)
    tile, values = filled(executor, BOX, "float32")
    snapshots = Snapshots(executor)
    held = cl.UserEvent(executor.context)
    cl.enqueue_barrier(snapshots.lane.queue, wait_for=[held])
    found = snapshots.take(tile, tile.strided(BOX))
    snapshots.settle()
    executor.clear(tile)
    executor.wait()         # steps do not wait for what is on its way
    assert found is not None and not found[1].done()
    held.set_status(cl.command_execution_status.COMPLETE)
    assert np.array_equal(arrived(found), values)
    snapshots.close()


def test_the_next_copy_waits_until_the_one_before_it_has_left(executor: OpenCLExecutor) -> None:
    tile, values = filled(executor, BOX, "float64")
    snapshots = Snapshots(executor)
    held = cl.UserEvent(executor.context)
    cl.enqueue_barrier(snapshots.lane.queue, wait_for=[held])
    first = snapshots.take(tile, tile.strided(BOX))
    snapshots.settle()
    executor.move_to(tile, BOX, values + 1)
    with ThreadPoolExecutor() as others:
        taking = others.submit(snapshots.take, tile, tile.strided(BOX))
        with pytest.raises(TimeoutError):
            taking.result(0.05)
        assert executor.ledger.as_dict()["snapshots"] == 8 * BOX.n_cells
        held.set_status(cl.command_execution_status.COMPLETE)
        second = taking.result()
    snapshots.settle()
    assert np.array_equal(arrived(first), values)
    assert np.array_equal(arrived(second), values + 1)
    snapshots.close()


@pytest.mark.parametrize("seed", range(6))
def test_boxes_and_steps_are_those_of_numpy(
    executor: OpenCLExecutor, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PIECE", 100)       # bytes
    rng, snapshots = random.Random(seed), Snapshots(executor)
    dtype = rng.choice(["uint8", "int16", "float32", "float64"])
    lower = tuple(rng.randrange(-3, 4) for _ in range(rng.randrange(1, 5)))
    box = Shape(lower, tuple(low + rng.randrange(1, 9) for low in lower))
    tile, values = filled(executor, box, dtype, seed)
    for _ in range(4):
        first = [rng.randrange(low, high) for low, high in zip(box.lower, box.upper)]
        end = [rng.randrange(one, high) + 1 for one, high in zip(first, box.upper)]
        part = Shape(tuple(first), tuple(end))
        steps = [rng.choice([1, 1, 2, 3, -1, -2]) for _ in first]
        cells = tile.strided(part).stepped(steps)
        right = values[part.slices(box.lower)][tuple(slice(None, None, step) for step in steps)]
        assert cells.extent == right.shape
        assert np.array_equal(arrived(snapshots.take(tile, cells)), right)
        snapshots.settle()
    snapshots.close()


def test_fields_leave_one_after_another_where_there_is_little_room() -> None:
    box = Shape((0, 0), (16, 16))       # 1 KiB
    executor = opened(8 * KIB)
    tiles = [filled(executor, box, "float32", seed) for seed in range(5)]
    snapshots = Snapshots(executor)
    for _ in range(2):
        taken = [snapshots.take(tile, tile.strided(box)) for tile, _ in tiles]
        snapshots.settle()
        assert executor.ledger.as_dict()["snapshots"] == 2 * KIB     # 5, and a sixteenth free
        for found, (_, values) in zip(taken, tiles):
            assert np.array_equal(arrived(found), values)
            assert found is not None
            snapshots.buffers.give(found[0])
    large, _ = filled(executor, Shape((0, 0), (16, 17)), "float32")
    assert snapshots.take(large, large.strided(large.geometry.box)) is None
    snapshots.close()
    assert executor.ledger.as_dict()["snapshots"] == 0


def test_memory_is_given_back_where_a_tile_needs_it() -> None:
    box = Shape((0, 0), (16, 32))       # 2 KiB
    executor = opened(6 * KIB)
    tile, values = filled(executor, box, "float32")
    snapshots = Snapshots(executor)
    found = snapshots.take(tile, tile.strided(box))
    snapshots.settle()
    assert executor.ledger.on_device == 2 * KIB and executor.ledger.as_dict()["snapshots"]
    others = [filled(executor, box, "float32", seed)[0] for seed in (1, 2)]
    assert executor.ledger.as_dict()["snapshots"] == 0
    assert np.array_equal(arrived(found), values)
    with pytest.raises(MemoryCapError):
        executor.tile(Geometry.padded(box), np.dtype("float32"))
    assert snapshots.take(tile, tile.strided(box)) is None
    others.clear()
    gc.collect()
    assert np.array_equal(arrived(snapshots.take(tile, tile.strided(box))), values)
    snapshots.close()


def test_a_device_without_the_memory_that_its_cap_promises_has_no_room(
    executor: OpenCLExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    tile, values = filled(executor, BOX, "float32")
    snapshots, copy_command = Snapshots(executor), executor.copy_command

    def without_memory(*given: Any) -> Any:
        raise cl.MemoryError("clEnqueueNDRangeKernel", cl.status_code.MEM_OBJECT_ALLOCATION_FAILURE)

    monkeypatch.setattr(executor, "copy_command", lambda *given: without_memory)
    assert snapshots.take(tile, tile.strided(BOX)) is None
    assert executor.ledger.as_dict()["snapshots"] == 0
    monkeypatch.setattr(executor, "copy_command", copy_command)
    assert np.array_equal(arrived(snapshots.take(tile, tile.strided(BOX))), values)
    snapshots.close()
