# SPDX-License-Identifier: MIT
"""Hybrid tasks of functions of items give the bits of the undivided function, by all maps."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from random_items import RandomItems
from sample import sample

import controllers as ct
from controllers.language.each import Each
from controllers.program.items import ArrayKind

N = 37
SHARES = [[1, 1, 1], [0, 3, 1], [5, 1, 0], [0, 0, 1], [1, 0, 0], None]
POOLS = [("cpu/1,1", True), ("cpu/1,1", False), ("cpu/1", False), ((), True)]


@ct.each
def relaxed(
    x: ct.Near(-2, 1), y: ct.Row, every: ct.All, line: ct.Column, *, i: ct.Index, w: float = 0.5
) -> dict:  # type: ignore[type-arg, valid-type]
    found = x.sum(axis=0) * w + y   # type: ignore[attr-defined]
    return {
        "new": found,
        "far": abs(every - y[0]).min() * i + line.sum(),    # type: ignore[index, operator]
        "total": ct.accumulate(found / 3),
        "above": ct.accumulate(y[0] > 0.5),     # type: ignore[index]
    }


RESULTS = ("new", "far", "total", "above")
relax = ct.Task("relax", (*RESULTS, "x", "y", "every", "line", "w"),
                roles=dict.fromkeys(RESULTS, "writing"))  # fmt: skip
relax.variant(relaxed)
relax.variant(relaxed, on="host")


def given() -> list[Any]:
    draw = np.random.default_rng(1)
    return [draw.random((N, 3)), draw.random((N, 3)), draw.random(7), draw.random((9, N))]


def rooms() -> list[Any]:
    return [np.zeros((N, 3)), np.zeros(N), np.ones(3), np.ones(1)]


def with_shares(task: ct.Task, shares: Sequence[float] | None, n_sides: int) -> Any:
    """Of so many sides, some with nothing to do."""
    some = None if shares is None or not sum(shares[:n_sides]) else shares[:n_sides]
    return ct.hybrid(task, shares=some)


@pytest.mark.parametrize(("devices", "zero_copy"), sample(POOLS, 2))
@pytest.mark.parametrize("shares", sample(SHARES, 3))
def test_parts_have_the_bits_of_the_whole(
    shares: Sequence[float] | None, devices: Any, zero_copy: bool
) -> None:
    arrays, right = given(), relaxed(*given(), w=0.3)
    with ct.tasks(devices, cores=3, zero_copy=zero_copy) as pool:
        n_sides = len(pool._lanes)
        for task in (relax, with_shares(relax, shares, n_sides), relax):
            found = rooms()
            pool.submit(task, *found, *arrays, w=0.3).result(60)
            pool.wait(60)
            for name, array in zip(RESULTS, found):
                assert np.array_equal(array, np.broadcast_to(right[name], array.shape)), name


def test_a_function_is_traced_once_for_all_parts() -> None:
    @ct.each
    def near(x: ct.Near(-1, 1)) -> dict:  # type: ignore[type-arg, valid-type]
        return {"y": x[0] + 2 * x[2]}   # type: ignore[index]

    task = ct.Task("near", ("y", "x"), roles={"y": "writing"})
    task.variant(near)
    x, y, z = np.random.default_rng(1).random((64, 5)), np.zeros((64, 5)), np.zeros((64, 5))
    with ct.tasks("cpu/1,1", cores=2, zero_copy=False) as pool:
        for shares in ((1, 1), (1, 3), (5, 1)):
            pool.submit(ct.hybrid(task, shares=shares), y, x)
            pool.submit(ct.hybrid(task, shares=shares[::-1]), z, y)     # rows that others hold
        pool.wait(60)
    assert np.array_equal(z, near(near(x)["y"])["y"])
    assert len(near._lowered) == 1


def task_of(items: RandomItems, each: Each, arrays: dict[str, Any]) -> tuple[ct.Task, list[Any]]:
    """As a task, and arrays for what it returns."""
    right = items.by_numpy(3.0)
    made = each.lowered({name: ArrayKind(x.shape, x.dtype.name) for name, x in arrays.items()})
    task = ct.Task("random", (*right, *arrays, "a"), roles=dict.fromkeys(right, "writing"))
    task.variant(each)
    task.variant(each, on="host")
    found = []
    for name in right:
        if name in made.sums:
            found.append(np.full(made.sums[name] or (1,), 7.0))
        else:
            found.append(np.full(made.results[name].shape, 7, made.results[name].dtype))
    return task, found


@pytest.mark.parametrize("seed", sample(range(40), 6))
def test_random_functions_of_items_in_parts(seed: int) -> None:
    items = RandomItems(seed)
    each, right = items.each, items.by_numpy(3.0)
    devices, zero_copy = POOLS[seed % 4]
    task, found = task_of(items, each, items.arrays)
    with ct.tasks(devices, cores=3, zero_copy=zero_copy) as pool:
        shares = np.random.default_rng(seed).random(len(pool._lanes)).tolist()
        pool.submit(ct.hybrid(task, shares=shares), *found, *items.arrays.values(), a=3.0)
        pool.wait(60)
    for array, (name, one) in zip(found, right.items(), strict=True):
        assert np.array_equal(array, np.atleast_1d(one)), name


@ct.each
def weighed(x: ct.Row, w: ct.Row) -> dict:  # type: ignore[type-arg]
    return {"total": ct.accumulate(x * w)}


weigh = ct.Task("weigh", ("total", "x", "w"), roles={"total": "writing"})
weigh.variant(weighed)
weigh.variant(weighed, on="host")


@pytest.mark.parametrize("merging", ["changed", "whole"])
def test_sums_of_parts_are_added_to_what_is_there(merging: Any) -> None:
    x, w = np.arange(40.0), np.arange(40.0) % 3
    cut = {"total": ct.accumulate, "x": ct.Row, "w": ct.Row}
    for shares in ((1, 1, 1), (1, 0, 2), (0, 1, 0)):
        total = np.full(1, 5.0)
        with ct.tasks("cpu/1,1", cores=3, zero_copy=False) as pool:
            both = ct.hybrid(weigh, cut=cut, merging=merging, shares=shares)
            pool.submit(both, total, x, w)
            pool.submit(both, total, x, w).result(60)
        assert total[0] == 5 + 2 * (x * w).sum()


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64"])
def test_sums_are_rounded_once_whatever_the_shares(dtype: str) -> None:
    draw = np.random.default_rng(5)
    x = (draw.random(200) * 2.0 ** draw.integers(-20, 20, 200) * 64).astype(dtype)
    w, right = x[::-1].copy(), weighed(x, x[::-1].copy())["total"]
    for shares in ((1, 1, 1), (1, 5, 0), (0, 0, 1)):
        total = np.full(1, 5.0)
        with ct.tasks("cpu/1,1", cores=3, zero_copy=False) as pool:
            pool.submit(ct.hybrid(weigh, shares=shares), total, x, w).result(60)
        assert total[0] == right


def test_functions_of_python_are_no_side_of_exact_sums() -> None:
    task = ct.Task("weigh", weigh.parameters, roles=weigh.roles)
    task.variant(lambda total, x, w: np.sum(x * w, out=total[:1], keepdims=True))
    task.variant(weighed)
    x, total = np.random.default_rng(2).random(50), np.zeros(1)
    with ct.tasks("cpu/1", cores=2) as pool:
        pool.submit(ct.hybrid(task), total, x, x).result(60)
        pool.wait(60)
        variants = {one.variant for one in pool.report().tasks if one.task == "weigh"}
    assert variants == {"each"} and total[0] == weighed(x, x)["total"]


@ct.each
def smoothed(x: ct.Near(-1, 1)) -> dict:  # type: ignore[type-arg, valid-type]
    return {"y": x[0] + x[2]}   # type: ignore[index]


smooth = ct.Task("smooth", ("y", "x"), roles={"y": "writing"})
smooth.variant(smoothed)


def test_a_part_has_to_be_given_what_its_items_read() -> None:
    x, y = np.arange(9.0), np.zeros(9)
    with ct.tasks("cpu/1", cores=2) as pool:
        for word in (ct.Row, ct.Near(0, 1), ct.Near(-2, 0), ct.Column):
            x = x.reshape(3, 3) if word is ct.Column else x
            room = y.reshape(x.shape)
            with pytest.raises(ValueError, match="functions of items read what cut= says"):
                pool.submit(ct.hybrid(smooth, cut={"y": ct.Row, "x": word}), room, x)
            x = x.reshape(9)
        for word in (ct.All, ct.Near(-1, 1), ct.Near(-3, 2)):
            pool.submit(ct.hybrid(smooth, cut={"y": ct.Row, "x": word}), y, x).result(60)
            assert y.tolist() == smoothed(x)["y"].tolist()


def test_what_does_not_suit_sums_is_refused() -> None:
    x = np.arange(9.0)
    with ct.tasks("cpu/1", cores=2) as pool:
        for room in (np.zeros(2), np.zeros(1, np.float32), np.zeros(1, np.int64)):
            error = pool.submit(weigh, room, x, x).exception(60)
            assert "sums 'total' over all items, to 1 of float64" in str(error)
        cut = {"y": ct.accumulate, "x": ct.Row}
        made = ct.Task("rows", ("y", "x"), roles={"y": "writing"})
        made.variant(ct.each(rows))
        error = pool.submit(ct.hybrid(made, cut=cut), np.zeros(9), x).exception(60)
        assert "row by row, and parts of it are to be added up" in str(error.__cause__)
        unnamed = ct.Task("weigh", ("sum", "x", "w"), roles={"sum": "writing"})
        unnamed.variant(weighed)
        error = pool.submit(unnamed, np.zeros(1), x, x).exception(60)
        assert "returns total, and the task has no array of this name" in str(error)


def rows(x: ct.Row) -> dict:  # type: ignore[type-arg]
    return {"y": x * 2}


def test_rows_of_arrays_of_three_axes_lie_together() -> None:
    task = ct.Task("rows", ("y", "x"), roles={"y": "writing"})
    task.variant(ct.each(rows))
    x, y = np.random.default_rng(3).random((8, 4, 5)), np.zeros((8, 4, 5))
    with ct.tasks("cpu/1", cores=2, zero_copy=False) as pool:
        pool.submit(task, y[2:6], x[3:7]).result(60)
        pool.submit(ct.hybrid(task, shares=(1,)), y[:2, 1:3], x[:2, 1:3]).result(60)
        with pytest.raises(ValueError, match="whose rows are whole"):
            pool.submit(task, y[:, :, 1:3], x[:, :, 1:3])
        task.variant(lambda y, x: np.multiply(x, 2, out=y))
        pool.submit(task, y[7:, :, 1:3], x[7:, :, 1:3]).result(60)
    assert np.array_equal(y[2:6], x[3:7] * 2) and np.array_equal(y[:2, 1:3], x[:2, 1:3] * 2)
    assert np.array_equal(y[7, :, 1:3], x[7, :, 1:3] * 2) and not y[7, :, 3:].any()


def test_there_may_be_no_items() -> None:
    task = ct.Task("rows", ("y", "x"), roles={"y": "writing"})
    task.variant(lambda y, x: np.multiply(x, 2, out=y))
    task.variant(ct.each(rows))
    with ct.tasks("cpu/1", cores=2) as pool:
        pool.submit(ct.hybrid(task), np.zeros((0, 3)), np.zeros((0, 3))).result(60)


def test_parts_of_a_function_in_opencl_c() -> None:
    @ct.each(private={"best": ("float64", 2)}, opencl_c="""
        best[0] = x(-1, 0) + x(1, 0);
        best[1] = factor * every(ROWS(every) - 1, 0);
        y_new(0) = best[0] + best[1] + INDEX(0);
        total_new(0) = best[0];
    """)
    def text(
        x: ct.Near(-1, 1), every: ct.All, *, factor: float = 1, i: ct.Index
    ) -> dict:  # type: ignore[type-arg, valid-type]
        found = x[0] + x[2]     # type: ignore[index]
        best = factor * every[-1]   # type: ignore[index]
        return {"y": found + best + i, "total": ct.accumulate(found)}

    task = ct.Task("text", ("y", "total", "x", "every", "factor"),
                   roles={"y": "writing", "total": "writing"})  # fmt: skip
    task.variant(text)
    draw = np.random.default_rng(4)
    room, x, every, total = np.zeros(120), draw.random(70), draw.random(5), np.zeros(1)
    y = room[30:90]
    with ct.tasks("cpu/1,1", cores=2, zero_copy=False) as pool:
        for shares in ((1, 2), (3, 1)):
            both = ct.hybrid(task, shares=shares)
            pool.submit(both, y, total, x[5:65], every, factor=2.5).result(60)
            pool.wait(60)
            right = text(x[5:65], every, factor=2.5)
            assert np.array_equal(y, right["y"]) and total[0] == right["total"]
    assert np.count_nonzero(room) == 60


def test_an_error_of_a_part_is_that_of_its_sums() -> None:
    x, total = np.arange(9.0), np.zeros(1)
    with ct.tasks("cpu/1", cores=2) as pool:
        future = pool.submit(ct.hybrid(weigh), total, x, x, z=3)
        assert isinstance(future.exception(60), ct.TaskError)
        reads = pool.submit(np.sum, total)
        assert isinstance(reads.exception(60), ct.TaskError)
        pool.submit(ct.hybrid(weigh), total, x, x).result(60)
        assert total[0] == (x * x).sum()
