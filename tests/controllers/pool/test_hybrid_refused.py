# SPDX-License-Identifier: MIT
"""Hybrid tasks that cannot be, and those that fail or are cancelled."""
from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import controllers as ct
from controllers.pool.hybrid.division import divided


def copy(new: Any, old: Any, factor: float = 1) -> None:
    new[...] = old * factor


copied = ct.Task("copied", ("new", "old"), roles={"new": "writing"})
copied.variant(copy)
ROWS = {"new": ct.Row, "old": ct.Row}


@pytest.mark.parametrize(("make", "text"), [
    (lambda: ct.hybrid(copied), "no function of items, which would say"),
    (lambda: ct.hybrid(copied, merge=copy), "either cut=, or split="),
    (lambda: ct.hybrid(copied, split=copy, cut=ROWS), "either cut=, or split="),
    (lambda: ct.hybrid(copied, cut={"new": ct.All, "old": ct.Row}), "writes 'new', of which each"),
    (lambda: ct.hybrid(copied, cut={"new": ct.Near(0, 1)}), "writes 'new', of which each"),
    (lambda: ct.hybrid(copied, cut={"old": ct.Row}), "writes 'new', of which each"),
    (lambda: ct.hybrid(copied, cut={"new": ct.accumulate}), "how many rows there are"),
    (lambda: ct.hybrid(copied, cut={**ROWS, "z": ct.Row}), "no parameter 'z' .* new, old"),
    (lambda: ct.hybrid(copied, cut={"new": "row"}), "'new' is cut by 'row'; give ct.Row"),
    (lambda: ct.hybrid(copied, cut=ROWS, shares=(1, -1)), r"not negative, got \(1, -1\)"),
    (lambda: ct.hybrid(copied, cut=ROWS, shares=(0, 0)), "not negative"),
    (lambda: ct.hybrid(copied, cut=ROWS, merging="all"), "changed, whole, got 'all'"),
    (lambda: ct.hybrid(copied, cut=ROWS, parts=0), "at least 1, got 0"),
    (lambda: ct.series(copied, []), "no call; give one at least"),
    (lambda: ct.series(copied, [[1, 2, 1]]), "names a row twice"),
    (lambda: ct.series(copied, [[0.5]]), "numbers of rows, a slice or None"),
])  # fmt: skip
def test_what_does_not_say_how_it_is_cut_is_refused(make: Callable[[], Any], text: str) -> None:
    with pytest.raises((TypeError, ValueError), match=text):
        make()


near = ct.hybrid(copied, cut={"new": ct.Row, "old": ct.Near(-1, 1)})
whole = ct.hybrid(copied, cut=ROWS)
a, b = np.zeros((9, 2)), np.ones((9, 2))
READ_ONLY = np.zeros(9)
READ_ONLY.flags.writeable = False


@pytest.mark.parametrize(("given", "args", "text"), [
    (near, (a, b), "keyword-only parameter rows"),
    (whole, (a, b[:8]), "unlike numbers of rows: new 9, old 8"),
    (whole, (a, 3.0), "'old' is cut, and an array is expected, got float"),
    (whole, (a, np.ones(())), "'old' has 0 axes"),
    (whole, (a[1:], a[:-1]), "writes cells of '.*' that another part is given"),
    (whole, (a[::2], b[::2]), "slices with the step 1"),
    (ct.hybrid(copied, cut=ROWS, shares=(1, 1)), (a, b), "2 shares .* 1 sides: the host"),
    (ct.series(copied, [[0], [9]]), (a, b), "rows from 9 to 9, and the array has 9 rows"),
    (ct.series(copied, [[0], [8]]), (a, [b]), "2 calls, and a list of 1 values"),
    (ct.series(copied, [[0], [8]]), ("a", b), "the array to which is added, got str"),
    (ct.series(copied, [None]), (READ_ONLY, b), "can only be read"),
    (ct.hybrid(copied, split=copy), (a,), "missing a required argument|missing"),
])  # fmt: skip
def test_arrays_that_cannot_be_cut_are_refused(given: Any, args: Any, text: str) -> None:
    with ct.tasks((), cores=2) as pool:
        with pytest.raises((TypeError, ValueError), match=text):
            pool.submit(given, *args)
        assert pool.submit(np.sum, b).result() == 18, "and nothing else is"


def halves(shares: Sequence[float], new: Any, old: Any) -> Any:
    return [(new, old)]


@pytest.mark.parametrize(("split", "text"), [
    (lambda shares, new, old: [], "0 parts for 1 shares"),
    (lambda shares, new, old: 7, "a list or tuple of parts is expected"),
    (lambda shares, new, old: [7], "a list or tuple of arguments is expected"),
    (lambda shares, new, old: 1 / 0, "ZeroDivisionError"),
])  # fmt: skip
def test_what_split_gives_is_checked(split: Any, text: str) -> None:
    with ct.tasks((), cores=2) as pool:
        future = pool.submit(ct.hybrid(copied, split=split), a.copy(), b)
        assert text in str(future.exception(60))


def test_parts_of_unlike_shares_may_not_share_cells() -> None:
    def same(shares: Sequence[float], new: Any, old: Any) -> Any:
        return [(new, old) for _ in shares]

    scaled = ct.Task("scaled", ("new", "old"), roles={"new": "writing"})
    scaled.variant(copy)
    scaled.variant(ct.Kernel.of("scaled", """
        __kernel void scaled(__global double *new, __global const double *old,
                             TILE(new), TILE(old), BOX)
        { CELL; HERE(new) = HERE(old); }""", roles={"new": "writing"}))
    with ct.tasks("cpu/1", cores=2) as pool:
        future = pool.submit(ct.hybrid(scaled, split=same, shares=(1, 1)), a.copy(), b)
        assert "that another part is given, too" in str(future.exception(60))


def test_an_error_of_a_part_is_that_of_the_task() -> None:
    def fails(new: Any, old: Any) -> None:
        if old[0, 0] >= 4:
            raise KeyError("a part")

    failing = ct.Task("failing", ("new", "old"), roles={"new": "writing"})
    failing.variant(fails)
    new = np.zeros((9, 2))
    with ct.tasks((), cores=3) as pool:
        future = pool.submit(ct.hybrid(failing, cut=ROWS), new, np.arange(18.0).reshape(9, 2))
        reads = pool.submit(np.sum, new)
        error = future.exception(60)
        assert isinstance(error, ct.TaskError) and error.task == "failing"
        assert isinstance(error.__cause__, KeyError)
        assert isinstance(reads.exception(60), ct.TaskError)
        pool.wait()     # which raises nothing that was seen


def test_a_hybrid_task_is_cancelled_as_a_whole() -> None:
    begun, gate = threading.Event(), threading.Event()

    def waits(array: Any) -> None:
        begun.set()
        assert gate.wait(60)

    new, old = np.zeros((9, 2)), np.ones((9, 2))
    with ct.tasks((), cores=2) as pool:
        pool.submit(waits, ct.updating(old))
        future = pool.submit(whole, new, old)
        split = pool.submit(ct.hybrid(copied, split=halves), new, old)
        assert begun.wait(60)
        assert future.cancel() and split.cancel() and split.cancelled()
        gate.set()
        assert pool.submit(whole, new, old).result() is None
        done = pool.submit(whole, new, old)
        assert done.result() is None and not done.cancel()
    assert new.sum() == 18


def test_units_are_divided_so_that_all_end_soonest() -> None:
    def line(start: float, each: float) -> Any:
        return lambda first, last: start * (first < last) + each * (last - first)

    def unknown(first: int, last: int) -> float:
        return 0.0 if last - first < 2 else float("inf")

    assert divided([line(0, 1), line(0, 3)], 64) == [48, 16]
    assert divided([line(50, 1), line(0, 1)], 64) == [7, 57]
    assert divided([line(0, 1), line(0, 2), line(0, 4)], 70) == [40, 20, 10]
    assert divided([line(0, 1), line(60, 1)], 64) in ([62, 2], [64, 0])
    assert divided([line(0, 1), unknown], 64) == [63, 1], "to be known"
    assert divided([unknown, unknown, unknown], 64) == [62, 1, 1]
    assert divided([unknown, unknown, unknown], 2) == [1, 1, 0]
    assert divided([line(0, 1)], 5) == [5]
