# SPDX-License-Identifier: MIT
"""Shares of which nobody is sure are several parts, of which who is early takes the small ones."""
from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi_jobs import HANGS_S

import controllers as ct
from controllers.estimates.estimate import Estimate
from controllers.estimates.estimates import Estimates
from controllers.estimates.task_key import Case
from controllers.pool.hybrid.tails import parts_of
from controllers.pool.pieces import LEAST_S
from controllers.pool.pool import Pool
from controllers.pool.way import Way
from hitmap.comm import SerialCommunicator

N_ROWS, WIDTH = 128, 8
WHOLE_S = 0.4
PLUS = ct.Kernel.of("plus", """
    __kernel void plus(__global double *y, TILE(y), BOX) { CELL; HERE(y) += 1; }""",
                    roles={"y": "updating"})  # fmt: skip
SURE, UNSURE = (1.0, 1.0, 1.0, 1.0), (0.6, 0.8, 1.2, 1.4)


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CONTROLLERS_ARBITER", str(tmp_path / "arbiter"))


def task_of(host: Any, device: Any = PLUS) -> ct.Task:
    made = ct.Task("plus", ("y",), roles={"y": "updating"})
    made.variant(host)
    made.variant(device)
    return made


@contextmanager
def knowing(
    task: ct.Task, scatter: tuple[float, ...], of_device: tuple[float, ...] = ()
) -> Iterator[Pool]:
    """A pool of two sides that have each done all of a task in such times, and parts of it."""
    estimates = Estimates(None)
    with Pool("cpu/1", 2, True, None, False, estimates, SerialCommunicator()) as pool:
        for variant, lane in zip(task.variants, pool._lanes):
            key = Way(task.name, variant, lane).key
            for part in (0.25, 0.5, 0.75, 1.0):
                for factor in (lane.device and of_device) or scatter:
                    size = part * N_ROWS * WIDTH * 8
                    estimates.add(key, Case(size), WHOLE_S * part * factor)
        yield pool


def counts(pool: Pool) -> tuple[int, int]:
    """How many pieces of tasks the host has done, and how many a device."""
    tasks = [one for one in pool.report().tasks if one.task == "plus"]
    on_host = sum(one.count for one in tasks if one.where == "the host")
    return on_host, sum(one.count for one in tasks) - on_host


def plus_on_host(y: Any) -> None:
    y += 1


@pytest.mark.parametrize(("scatter", "n_parts"), [(SURE, 1), (UNSURE, 6)])
def test_a_share_is_cut_as_far_as_its_estimate_is_unsure(
    scatter: tuple[float, ...], n_parts: int
) -> None:
    task, y = task_of(plus_on_host), np.zeros((N_ROWS, WIDTH))
    with knowing(task, scatter) as pool:
        pool._crew._stolen = lambda lane: None  # type: ignore[method-assign]
        pool.submit(ct.hybrid(task, cut={"y": ct.Row}), y).result(HANGS_S)
        assert [*counts(pool)] == [n_parts, n_parts]
        pool.submit(ct.hybrid(task, cut={"y": ct.Row}, shares=(1, 1)), y).result(HANGS_S)
        assert [*counts(pool)] == [n_parts + 1] * 2, "shares that are fixed are not cut"
    assert (y == 2).all()


@pytest.mark.parametrize(("slower", "n_parts"), [(1.0, 6), (30.0, 1)])
def test_a_sure_share_is_cut_for_who_may_be_early(slower: float, n_parts: int) -> None:
    """Unless that one is so slow that it could take little."""
    task, y = task_of(plus_on_host), np.zeros((N_ROWS, WIDTH))
    with knowing(task, tuple(slower * one for one in UNSURE), SURE) as pool:
        pool._crew._stolen = lambda lane: None  # type: ignore[method-assign]
        pool.submit(ct.hybrid(task, cut={"y": ct.Row}), y).result(HANGS_S)
        assert counts(pool)[1] == n_parts
    assert (y == 1).all()


def test_shares_of_functions_of_items_have_tails() -> None:
    @ct.each
    def squared(x: ct.Row) -> dict:  # type: ignore[type-arg]
        return {"y": x * x}

    task = ct.Task("plus", ("y", "x"), roles={"y": "writing"})
    task.variant(lambda y, x: np.multiply(x, x, out=y))
    task.variant(squared)
    x = np.full((N_ROWS, WIDTH), 3.0)
    y = np.zeros_like(x)
    with knowing(task, UNSURE) as pool:
        pool._crew._stolen = lambda lane: None  # type: ignore[method-assign]
        pool.submit(ct.hybrid(task, cut={"y": ct.Row, "x": ct.Row}), y, x).result(HANGS_S)
        assert min(counts(pool)) > 1
    assert (y == 9).all() and len(squared._lowered) == 1


def test_who_is_early_does_the_small_parts_of_who_is_late() -> None:
    free = threading.Event()

    def late(y: Any) -> None:
        assert free.wait(HANGS_S)
        y += 1

    task, y = task_of(late), np.zeros((N_ROWS, WIDTH))
    with knowing(task, UNSURE) as pool:
        future = pool.submit(ct.hybrid(task, cut={"y": ct.Row}), y)
        until_s = time.monotonic() + HANGS_S
        while pool.report().n_stolen < 1 and time.monotonic() < until_s:
            time.sleep(1e-3)
        free.set()
        assert future.exception(HANGS_S) is None and pool.report().n_stolen >= 1
    assert (y == 1).all()


@pytest.mark.parametrize("unsure", [0.0, 0.03, 0.04, 0.09, 0.1])
@pytest.mark.parametrize("whose", ["its own", "another side's"])
def test_a_tail_is_the_nearest_number_of_eighths(unsure: float, whose: str) -> None:
    """A sixteenth that nobody may take costs more than the pieces of an eighth."""
    own, others = (unsure, 0.0) if whose == "its own" else (0.0, unsure)
    first = parts_of(64, 1, Estimate.about(0.1, own, "history"), others)[0]
    assert first == (0, {0.0: 64, 0.03: 64, 0.04: 56, 0.09: 56, 0.1: 48}[unsure])


@pytest.mark.parametrize("n_rows", [47, 67, 512])
def test_of_many_workers_nobody_has_twice_the_larger_pieces(n_rows: int) -> None:
    known = Estimate.about(0.2, 0.4, "history")
    counts = [last - first for first, last in parts_of(n_rows, 15, known)]
    assert sum(counts) == n_rows and counts == sorted(counts, reverse=True)


@pytest.mark.parametrize(("seconds", "n_each"), [(0.05, 2), (0.1, 3), (0.2, 4), (2.0, 4)])
def test_many_workers_have_pieces_as_short_as_they_can_be_handed_out(
    seconds: float, n_each: int
) -> None:
    """One by one: 15 of them take 4 ms to begin, and who is late is late by half a piece."""
    known = Estimate.about(seconds, 0.5, "history")
    counts = [last - first for first, last in parts_of(512, 15, known)]
    assert len(counts) == 15 * n_each
    assert min(counts) / 512 * seconds * 15 >= LEAST_S * 15 / 4 * 0.9
