# SPDX-License-Identifier: MIT
"""Tasks on devices: kernels with views of arrays, moves of stale cells, what is refused."""
from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import controllers as ct
from controllers.pool.pool import Pool

blur = ct.Task("blur", ("new", "old", "factor"), roles={"new": "writing"})
blur.variant(ct.Kernel.of("blur", """
    __kernel void blur(__global float *new, __global const float *old, const float factor,
                       TILE(new), TILE(old), BOX)
    { CELL; HERE(new) = factor * HERE(old) + INDEX(0); }""", roles={"new": "writing"}), over="new")

to_squares = ct.Task("squares", ("squares", "x"), roles={"squares": "writing"})


@to_squares.variant
@ct.each
def squares_of(x: ct.Row) -> dict:  # type: ignore[type-arg]
    return {"squares": x * x}


@ct.task(roles={"y": "updating"})
def more(y: Any, x: Any) -> None:
    y += x


@pytest.mark.parametrize("zero_copy", [True, False])
def test_kernels_count_cells_from_the_first_one_that_they_are_given(zero_copy: bool) -> None:
    a, b = np.ones((6, 5), np.float32), np.zeros((4, 9), np.float32)
    with ct.tasks("cpu", zero_copy=zero_copy) as pool:
        pool.submit(blur, b[1:3, 4:], a[3:5], factor=7)
        pool.submit(blur, b[0, :3], a[2, 2:], factor=pool.submit(float, "2"))
        pool.submit(more, b[:1, 2:4], 1)
        pool.submit(to_squares, b[3:, :5], b[2:3, 4:])
    assert b[:3].tolist() == [
        [2, 3, 5, 1, 0, 0, 0, 0, 0], [0] * 4 + [7] * 5, [0] * 4 + [8] * 5
    ]  # fmt: skip
    assert b[3].tolist() == [64] * 5 + [0] * 4


def moved(pool: Pool) -> tuple[int, int]:
    """Bytes to the device and from it."""
    return pool._memories.nbytes[1, True], pool._memories.nbytes[1, False]


def test_reads_move_the_stale_cells_alone() -> None:
    a, b = np.ones((6, 5), np.float32), np.zeros((6, 5), np.float32)
    with ct.tasks("cpu", zero_copy=False) as pool:
        pool.submit(blur, b[:4], a[:4], 1)      # 4 rows up, none of what is written
        pool.submit(blur, b[2:], a[2:], 1)      # 2 more
        pool.submit(more, a[1:2], 1)
        last = pool.submit(blur, b, a, 1)       # 1 that the host has written
        last.exception(60)
        assert moved(pool) == (140, 0)
        assert last.result(60) is None and moved(pool) == (140, 120)
        pool.wait()
        assert moved(pool) == (140, 120), "the host has them all"
        a += 1      # it is ours again
        pool.submit(blur, b, a, 1).result(60)
        assert moved(pool) == (260, 240)
    assert b[1].tolist() == [4.0] * 5


@pytest.mark.parametrize("zero_copy", [True, False])
def test_a_program_waits_for_all_and_goes_on(zero_copy: bool) -> None:
    a, b = np.ones((6, 5), np.float32), np.zeros((6, 5), np.float32)
    with ct.tasks("cpu", zero_copy=zero_copy) as pool:
        for n in range(1, 4):
            pool.submit(blur, b, a, 2)
            pool.submit(blur, a[1:], b[1:], 1)
            pool.wait()
            assert (a[0] == 1).all() and a[1, 0] == b[1, 0]
            a[1:] = n
    assert b[1].tolist() == [5] * 5


@pytest.mark.whole
def test_arrays_leave_a_device_that_is_full() -> None:
    arrays = [np.full((256, 256), n, np.float32) for n in range(6)]     # 256 KiB each
    results = [np.zeros((256, 256), np.float32) for _ in arrays]
    with ct.tasks("cpu", zero_copy=False, memory_cap="800k") as pool:
        for _ in range(2):
            for array, result in zip(arrays, results):
                pool.submit(blur, result, array, 1)
                pool.submit(blur, array, result, 2)
    for n, array in enumerate(arrays):
        assert array[0, 0] == 4 * n and array[2, 7] == 4 * n + 18
    with pytest.raises(ct.TaskError, match="MemoryCapError: tiles need"), ct.tasks(
        "cpu", zero_copy=False, memory_cap="300k"
    ) as pool:
        pool.submit(blur, results[0], arrays[0], 1)


put = ct.Task("put", ("y", "value"), roles={"y": "writing"})
put.variant(ct.Kernel.of("put", """
    __kernel void put(__global float *y, const float value, TILE(y), BOX)
    { CELL; HERE(y) = value; }""", roles={"y": "writing"}))


@pytest.mark.parametrize("zero_copy", [True, False])
def test_launches_are_remembered_with_their_numbers_and_without_their_arrays(
    zero_copy: bool,
) -> None:
    a, b = np.ones(8, np.float32), np.ones(8, np.float32)
    with ct.tasks("cpu", zero_copy=zero_copy) as pool:
        known = pool._lanes[1].side._known._newest  # type: ignore[attr-defined]
        for value in (0.0, -0.0, 2, np.float32(2), 0.0, -0.0):
            for y in (a, a[2:5], b):
                pool.submit(put, y, value).result(60)
                assert (y == value).all() and (np.signbit(y) == np.signbit(value)).all()
        assert len(known) == 12, "3 arrays with 4 numbers"
        gone = weakref.ref(a)
        del a, y
        pool.wait(60)
        pool.submit(put, b, 2).result(60)
        gc.collect()
        assert gone() is None and len(known) == 4
        b.flags.writeable = False
        read = np.zeros(8, np.float32)
        pool.submit(blur, read, b, 1).result(60)
        b.flags.writeable = True
        pool.submit(put, b, 7).result(60)
    assert (b == 7).all() and read[3] == 5


def test_what_kernels_cannot_take_is_refused() -> None:
    a, b = np.ones((6, 6), np.float32), np.ones((6, 6), np.float32)
    with ct.tasks("cpu") as pool:
        for new, old in ((b[:, ::2], a[:, ::2]), (b, a.T), (b, a.view(np.int32)), (b, b)):
            pool.submit(np.sum, a)      # counts them as float32
            with pytest.raises(ValueError, match="kernels alone, which take arrays and slices"):
                pool.submit(blur, new, old, 1)
        assert pool.submit(blur, b[::2], a[::2], 1).exception(60) is None, "rows may be apart"
        error = pool.submit(blur, b, a[:4], 1).exception(60)
        assert isinstance(error, ct.TaskError) and "out of the cells" in str(error)
        assert error.variant == "opencl" and "EPYC" not in error.task and error.device
        error = pool.submit(blur, b, a, np.ones(3).sum).exception(60)
        assert isinstance(error.__cause__, TypeError)
        made = pool.submit(np.zeros, 3)
        error = pool.submit(blur, b, a, made).exception(60)
        assert "is a result with axes" in str(error)
        error = pool.submit(to_squares, b[:3], a).exception(60)
        assert "give one like it" in str(error)
        with pytest.raises(ValueError, match="got 'reference'"):
            ct.tasks("reference")


def test_arrays_that_a_driver_has_no_allocation_for_are_left_to_others() -> None:
    """Parts of one are no less: kernels are given the whole, of which they compute some rows."""
    task = ct.Task("put", ("y", "n"), roles={"y": "writing"})
    task.variant(ct.Kernel.of("put", """
        __kernel void put(__global float *y, TILE(y), BOX, const int n) { CELL; HERE(y) = n; }""",
        roles={"y": "writing"}))  # fmt: skip
    with_cores = ct.Task("either", ("y", "n"), roles={"y": "writing"})
    with_cores.variant(task.variants[0].body)
    with_cores.variant(lambda y, n: y.fill(n))
    large, small = np.zeros((64, 8), np.float32), np.zeros((32, 8), np.float32)
    with ct.tasks("cpu/1", cores=2) as pool:
        lane = pool._lanes[1]
        assert lane.device is not None
        lane.device = replace(lane.device, max_allocation_bytes=1024)
        pool.submit(task, small, 3).result(60)
        for given in (task, ct.hybrid(task, cut={"y": ct.Row})):
            with pytest.raises(ValueError, match="array of 2 KiB, and drivers .* at most 1 KiB"):
                pool.submit(given, large[:8], 3)
        for given in (with_cores, ct.hybrid(with_cores, cut={"y": ct.Row})):
            pool.submit(given, large, 4).result(60)
            assert (large == 4).all()
            large[...] = 0
        assert {one.lane for one in pool._ends.newest if one.task == "either"} == {"the host"}
    assert (small == 3).all()


def test_a_task_of_a_function_of_items_writes_its_result() -> None:
    @ct.task
    @ct.each
    def nearest(x: ct.Row, every: ct.All, *, unit: float = 9) -> ct.float32:
        return abs(every - x).min() / unit

    points = np.float32([1, 5, 7, 2])
    far = np.zeros(4, np.float32)
    with ct.tasks("cpu") as pool:
        pool.submit(nearest, far, points, np.float32([6, 0]), unit=0.5)
    assert far.tolist() == [2, 2, 2, 4]
    with ct.tasks(()) as pool, pytest.raises(ValueError, match="none can be done on the host"):
        pool.submit(nearest, far, points, points)
