# SPDX-License-Identifier: MIT
"""Hybrid tasks: what sides make together is what the task makes alone, whatever their shares."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from sample import sample

import controllers as ct
from controllers.pool.hybrid.hybrid import Part
from controllers.pool.pool import Pool

SHARES = [[1, 1, 1], [0, 3, 1], [5, 1, 0], [0, 0, 1], [1, 0, 0], None]
N_CORES = 3     # of which two devices have one each

blur = ct.Task("blur", ("new", "old", "weight"), roles={"new": "writing"})


@blur.variant
def blur_on_host(new: Any, old: Any, weight: float, *, rows: slice) -> None:
    for row in range(rows.start, rows.stop):
        near = old[max(row - 1, 0)] + old[min(row + 1, len(old) - 1)]
        new[row] = weight * near + row


blur.variant(ct.Kernel.of("blur", """
    __kernel void blur(__global double *new, __global const double *old, const double weight,
                       const long n, TILE(new), TILE(old), BOX)
    {
        CELL;
        const long up = INDEX(0) > 0 ? INDEX(0) - 1 : 0;
        const long down = INDEX(0) < n - 1 ? INDEX(0) + 1 : n - 1;
        HERE(new) = weight * (AT(old, up, INDEX(1)) + AT(old, down, INDEX(1))) + INDEX(0);
    }""", roles={"new": "writing"}, scalars={"n": 37}))
blurred = {"new": ct.Row, "old": ct.Near(-1, 1)}


def where(pool: Pool, task: str) -> set[str]:
    return {one.where for one in pool.report().tasks if one.task == task}


def opened(**options: Any) -> Pool:
    return ct.tasks("cpu/1,1", cores=N_CORES, zero_copy=False, **options)


@pytest.mark.parametrize("shares", sample(SHARES, 2))
def test_a_cut_task_is_the_task_whatever_the_shares(shares: Sequence[float] | None) -> None:
    old = np.random.default_rng(1).random((37, 5))
    right, new, again = np.zeros_like(old), np.zeros_like(old), np.zeros_like(old)
    both = ct.hybrid(blur, cut=blurred, shares=shares)
    with opened() as pool:
        pool.submit(both, new, old, 0.5)
        pool.submit(both, again, new, weight=0.25)      # each part after those that it reads
        pool.submit(both, new, again, 2.0).result()
        assert shares is None or len(where(pool, "blur")) == sum(map(bool, shares))
        assert where(pool, "blur")
        found = new.copy()
    for weight, one, other in ((0.5, right, old), (0.25, again, right), (2.0, right, again)):
        blur_on_host(one, other, weight, rows=slice(0, 37))
    assert np.array_equal(found, right) and np.array_equal(new, right)


@ct.task
@ct.each
def nearest(x: ct.Row, every: ct.All, *, unit: float = 1) -> ct.float64:
    return abs(every - x).min() / unit


def test_functions_of_items_say_how_they_are_cut() -> None:
    draw = np.random.default_rng(1)
    points, every, far = draw.random(50), draw.random(9), np.zeros(50)
    with opened() as pool:
        both = ct.hybrid(nearest, shares=(1, 3))
        pool.submit(both, far, points, every, unit=0.5)
        pool.wait()
        assert len(where(pool, "nearest")) == 2
    assert np.array_equal(far, abs(points[:, None] - every).min(axis=1) / 0.5)


def test_the_host_does_parts_on_all_its_cores() -> None:
    @ct.task(name="twice", roles={"y": "updating"})
    def twice(y: Any) -> None:
        y *= 2

    y = np.arange(20.0)
    with ct.tasks((), cores=4) as pool:
        pool.submit(ct.hybrid(twice, cut={"y": ct.Row}), y[5:]).result()
        assert next(one.count for one in pool.report().tasks if one.task == "twice") == 4
    assert y.tolist() == [*range(5), *range(10, 40, 2)]


def sums(shares: Sequence[float] | None, merging: Any, values: Any) -> Any:
    """Of values by rows of a table, on three sides."""
    add = ct.Task("add", ("total", "table", "x"), roles={"total": "writing"})

    @add.variant
    def on_host(total: Any, table: Any, x: Any) -> None:
        total[...] = 0
        np.add.at(total, table, x[:, None])

    total, table = np.ones(7), np.random.default_rng(2).integers(0, 7, (40, 3))
    cut = {"total": ct.accumulate, "table": ct.Row, "x": ct.Row}
    with ct.tasks((), cores=2) as pool:
        both = ct.hybrid(add, cut=cut, parts=6, merging=merging, shares=shares)
        for _ in range(2):
            pool.submit(both, total, table, values)
        pool.wait()
        assert next(one.count for one in pool.report().tasks if one.task == "add") == 12
    return total


@pytest.mark.parametrize("merging", ["changed", "whole"])
def test_what_parts_accumulate_is_summed(merging: Any) -> None:
    values = np.arange(40.0)
    right = np.ones(7)
    np.add.at(right, np.random.default_rng(2).integers(0, 7, (40, 3)), 2 * values[:, None])
    assert np.array_equal(sums(None, merging, values), right)


gather = ct.Task("gather", ("out", "x", "table"), roles={"out": "writing"})


@gather.variant
def gather_on_host(out: Any, x: Any, table: Any) -> None:
    out[...] = 0
    for column in table.T:
        out += x[column] * 1.5


gather.variant(ct.Kernel.of("gather", """
    __kernel void gather(__global double *out, __global const double *x,
                         __global const long *table, TILE(out), TILE(x), TILE(table), BOX)
    {
        CELL;
        double sum = 0;
        for (long k = 0; k < 3; ++k) sum += AT(x, AT(table, INDEX(0), k), INDEX(1)) * 1.5;
        HERE(out) = sum;
    }""", roles={"out": "writing"}))


def gathered(shares: Sequence[float] | None, merging: Any, whole_numbers: bool) -> Any:
    draw = np.random.default_rng(3)
    at = [np.sort(draw.choice(30, n, replace=False)) for n in (4, 9, 1, 12, 7)]
    tables = [draw.integers(0, 30, (len(rows), 3)) for rows in at]
    x = draw.integers(0, 9, (30, 2)) * (10.0 if whole_numbers else 1 / 7)
    y, right = np.ones((30, 2)), np.ones((30, 2))
    with opened() as pool:
        middle = ct.series(gather, at, merging=merging, shares=shares)
        pool.submit(middle, y, x, tables)
        pool.submit(middle, y, x, table=tables).result()
        if shares is not None:
            assert len(where(pool, "gather")) == sum(map(bool, shares))
    for _ in range(2):
        for rows, table in zip(at, tables):
            out = np.zeros((len(rows), 2))
            gather_on_host(out, x, table)
            right[rows] += out
    return y, right


@pytest.mark.parametrize("shares", SHARES)
def test_a_series_has_the_same_bits_whoever_does_it(shares: Sequence[float] | None) -> None:
    found, right = gathered(shares, "changed", whole_numbers=False)
    assert np.array_equal(found, right)


@pytest.mark.parametrize("shares", sample(SHARES[1:], 4))
def test_a_series_may_be_summed_by_sides(shares: Sequence[float] | None) -> None:
    found, right = gathered(shares, "whole", whole_numbers=True)     # which are not rounded
    assert np.array_equal(found, right)


def split(shares: Sequence[float], new: Any, old: Any, factor: float) -> list[tuple[Any, ...]]:
    upto = np.rint(np.cumsum([0, *shares]) * len(old)).astype(int)
    return [(np.zeros(b - a), old[a:b], factor) for a, b in zip(upto, upto[1:])]


def merge(parts: Sequence[Part], new: Any, old: Any, factor: float) -> list[float]:
    assert sum(part.share for part in parts) == 1
    new[:] = np.concatenate([part.arguments[0] for part in parts])
    return [part.share for part in parts]


scale = ct.Task("scale", ("new", "old", "factor"), roles={"new": "writing"})


@scale.variant
def scale_on_host(new: Any, old: Any, factor: float) -> float:
    new[:] = old * factor
    return float(new.sum())


scale.variant(ct.Kernel.of("scale", """
    __kernel void scale(__global double *new, __global const double *old, const double factor,
                        TILE(new), TILE(old), BOX)
    { CELL; HERE(new) = HERE(old) * factor; }""", roles={"new": "writing"}))


@pytest.mark.parametrize("shares", sample(SHARES[::-1], 3))
def test_functions_of_the_user_split_and_merge(shares: Sequence[float] | None) -> None:
    a, b = np.arange(64.0), np.zeros(64)
    both = ct.hybrid(scale, split=split, merge=merge, shares=shares)
    with opened() as pool:
        pool.submit(both, b, a, 3.0)
        factor = pool.submit(float, "2") if shares is None else 2.0     # then on cores alone
        back = pool.submit(both, a, b, factor)
        total = pool.submit(np.sum, a)
        assert total.result() == 6 * 63 * 32
        if shares is not None:
            wanted = [one / sum(shares) for one in shares if one]
            assert back.result() == pytest.approx(wanted, abs=1 / 64)
            assert len(where(pool, "scale")) == len(wanted)
    assert np.array_equal(a, 6 * np.arange(64.0))


def test_parts_that_write_their_cells_need_no_merging() -> None:
    def rows(shares: Sequence[float], new: Any, old: Any, factor: float) -> list[tuple[Any, ...]]:
        upto = np.rint(np.cumsum([0, *shares]) * len(old)).astype(int)
        return [(new[a:b], old[a:b], factor) for a, b in zip(upto, upto[1:])]

    a, b = np.arange(64.0), np.zeros(64)
    both = ct.hybrid(scale, split=rows)
    with opened() as pool:
        for _ in range(3):
            pool.submit(both, b, a, 3.0)
            pool.submit(both, a, b, 1.0)
    assert np.array_equal(a, 27 * np.arange(64.0))


def moved(pool: Pool) -> int:
    """Bytes to and from all devices."""
    return sum(pool._memories.nbytes.values())


more = ct.Task("more", ("y", "x"), roles={"y": "updating"})


@more.variant
def more_on_host(y: Any, x: Any) -> None:
    y += x


more.variant(ct.Kernel.of("more", """
    __kernel void more(__global double *y, __global const double *x, TILE(y), TILE(x), BOX)
    { CELL; HERE(y) += HERE(x); }"""))
on_devices = ct.Task("scale", scale.parameters, roles=scale.roles)
on_devices.variant(scale.variants[1].body)


def test_what_is_replicated_is_there_in_each_memory() -> None:
    x, y, z = np.arange(9.0), np.ones(9), np.zeros(9)
    with ct.tasks("cpu/1", cores=2, zero_copy=False) as pool:
        pool.submit(on_devices, z, y, 2.0).result()
        pool.submit(ct.replicated(more), y[2:], x[2:]).result()     # never tried, so it is there
        before = moved(pool)
        pool.submit(on_devices, z, y, 2.0)
        pool.submit(np.sum, y).result()
        assert moved(pool) == before, "neither has to be told"
        pool.submit(more_on_host, ct.updating(y), x)
        assert pool.submit(on_devices, z, y, 2.0).result() is None
        assert moved(pool) > before
    right = np.ones(9)
    right[2:] += x[2:]
    assert np.array_equal(y, right + x) and np.array_equal(z, 2 * y)


@pytest.mark.parametrize("shares", [(1, 0), (1, 1)])
def test_parts_give_nothing_back_whoever_does_them(shares: tuple[int, int]) -> None:
    @ct.task(roles={"y": "updating"})
    def told(y: Any) -> str:
        y += 1
        return "a value of which nobody could say whose it is"

    told.variant(ct.Kernel.of("told", """
        __kernel void told(__global double *y, TILE(y), BOX) { CELL; HERE(y) += 1; }"""))
    y = np.zeros((8, 2))
    with ct.tasks("cpu/1", cores=2) as pool:
        future = pool.submit(ct.hybrid(told, cut={"y": ct.Row}, shares=shares), y)
        assert future.result(60) is None and (y == 1).all()
        pool.wait(60)
        assert pool.report().n_jobs == (1 if shares == (1, 0) else 3), "one side does it at once"
