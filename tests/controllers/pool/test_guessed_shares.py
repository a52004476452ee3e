# SPDX-License-Identifier: MIT
"""Shares of tasks that were submitted before anything was known of them: who has time does more."""
from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from mpi_jobs import HANGS_S

import controllers as ct
from controllers.device.listing import devices
from controllers.estimates.estimate import Estimate
from controllers.estimates.estimates import Estimates
from controllers.pool.hybrid.cutting import Cutting
from controllers.pool.hybrid.division import divided, unknown
from controllers.pool.hybrid.side import Side, likely
from controllers.pool.job import Job
from controllers.pool.pool import Pool
from hitmap.comm import SerialCommunicator

N_ROWS, WIDTH, N_TASKS = 512, 512, 4
FEW = 8     # rows, with which a side begins
KERNEL = ct.Kernel.of("slow", """
    __kernel void slow(__global double *y, TILE(y), BOX) {
        CELL;
        double v = HERE(y);
        for (int i = 0; i < 400; i++) v = v * 1.0000001 + 1e-9 * i;
        HERE(y) += 1 + (v > 1e30);
    }""")  # fmt: skip


def plus_one(y: Any) -> None:
    y += 1


def new_task(on_host: Callable[[Any], None]) -> ct.Task:
    """For the host and for devices, of which nothing is known."""
    task = ct.Task("slow", ("y",), roles={"y": "updating"})
    task.variant(on_host)
    task.variant(KERNEL)
    return task


def opened() -> Pool:
    """A core for functions, and one that is a device."""
    return Pool("cpu/1", 2, True, None, False, Estimates(None), SerialCommunicator())


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CONTROLLERS_ARBITER", str(tmp_path / "arbiter"))


def until(is_so: Callable[[], bool], what: str) -> None:
    end_s = time.perf_counter() + HANGS_S
    while not is_so():
        assert time.perf_counter() < end_s, what
        time.sleep(1e-3)


def test_a_device_helps_with_shares_that_were_guessed() -> None:
    """The host, which has nearly all of new tasks, waits until a device has done some of that."""
    y, rows_on_host = np.zeros((N_ROWS, WIDTH)), list[int]()

    def on_host(y_part: Any) -> None:
        rows_on_host.append(len(y_part))
        if len(rows_on_host) == 1:      # all are submitted, and the device has done its parts
            until(lambda: bool((y[-FEW:] == N_TASKS).all()), "trials")
        if len(rows_on_host) == 2:
            until(lambda: bool((y[:-FEW] == 2).any()), "a device that helps")
        time.sleep(0.3 * len(y_part) / N_ROWS)
        y_part += 1

    task = new_task(on_host)
    with opened() as pool:
        both = ct.hybrid(task, cut={"y": ct.Row})
        futures = [pool.submit(both, y) for _ in range(N_TASKS)]
        assert [future.exception(HANGS_S) for future in futures] == [None] * N_TASKS
    assert (y == N_TASKS).all()
    assert rows_on_host[0] == N_ROWS - FEW and max(rows_on_host[1:]) < N_ROWS - FEW


@pytest.mark.parametrize(("known_s", "help_s"), [
    ((8.0, 2.0, None), 2.0 / 64), ((8.0, 2.0, 2.0), 1.0 / 64), ((None, 2.0, 2.0), None),
    ((8.0, None, None), None),
])  # fmt: skip
def test_help_is_what_others_are_known_to_do_when_the_share_begins(
    known_s: tuple[float | None, ...], help_s: float | None
) -> None:
    ways: list[Any] = [SimpleNamespace(number=n) for n in range(len(known_s))]
    sides = [Side(way) for way in ways]
    times = 0.0     # what is known

    def known(way: Any, size: float, cores: int) -> Estimate | None:
        seconds = known_s[way.number]
        if seconds is None or not times:
            return None
        return Estimate.about(times * size * seconds, 0.0, "history")

    def refresh() -> None:
        nonlocal times
        times = 1.0

    forecast: Any = SimpleNamespace(
        is_new=lambda way: way.number == 0, known=known, refresh=refresh
    )
    shares = [(sides[0], 62), (sides[1], 1), (sides[2], 1)]
    cuts = Cutting(forecast).cut(64.0, 64, 64, shares, is_divided=True)
    assert [one.rows for one in cuts] == [[(0, 62)], [(62, 63)], [(63, 64)]]
    assert [one.goes_up for one in cuts] == [True, False, False]
    job: Any = SimpleNamespace(size=62 / 64, rows=(0, 62), seconds=1e-3)
    assert cuts[0].help_s is not None
    assert cuts[0].help_s(job) is None, "nothing is known of its side"
    times = 1e-4
    assert cuts[0].help_s(job) is None and job.seconds == 1e-3, "who is so fast needs no help"
    times = 2.0     # until what has ended lately is looked at
    assert cuts[0].help_s(job) == pytest.approx(help_s)
    assert job.seconds == (1e-3 if help_s is None else 8.0 * 62 / 64)


def test_shares_that_are_known_or_wanted_are_no_guesses() -> None:
    sides = [Side(SimpleNamespace(number=n)) for n in range(2)]     # type: ignore[arg-type]
    forecast: Any = SimpleNamespace(is_new=lambda way: False, known=lambda *_: None)
    shares = [(sides[0], 32), (sides[1], 32)]
    assert [one.help_s for one in Cutting(forecast).cut(1.0, 64, 64, shares, is_divided=True)] == [
        None, None
    ]  # fmt: skip
    forecast.is_new = lambda way: True
    for its, is_divided in ((shares, False), (shares[:1], True)):
        cuts = Cutting(forecast).cut(1.0, 64, 64, its, is_divided=is_divided)
        assert all(one.help_s is None for one in cuts)


@pytest.mark.parametrize(("kinds", "n_workers", "who"), [
    (["gpu"], 15, 1), (["cpu"], 15, 0), (["cpu", "gpu"], 1, 2), (["gpu", "gpu"], 1, 1),
])  # fmt: skip
def test_new_tasks_are_given_to_the_class_that_is_fastest(
    kinds: list[str], n_workers: int, who: int
) -> None:
    cpu = replace(next(one for one in devices() if one.kind == "cpu"), compute_units=2)
    lanes = [None, *(replace(cpu, kind=kind) for kind in kinds)]    # type: ignore[arg-type]
    sides = [
        Side(SimpleNamespace(lane=SimpleNamespace(device=one)), 1, 1 if one else n_workers)   # type: ignore[arg-type]
        for one in lanes
    ]  # fmt: skip
    assert likely(sides) == who
    counts = divided([unknown(64)] * len(sides), 64, likely=who)
    assert sum(counts) == 64 and counts.index(max(counts)) == who and min(counts) == 1


def test_a_new_task_is_divided_by_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("controllers.pool.hybrid.side.class_rate", lambda device: 2.0)
    y = np.zeros((N_ROWS, 8))
    task = new_task(plus_one)
    with opened() as pool:
        future = pool.submit(ct.hybrid(task, cut={"y": ct.Row}), y)
        assert future.exception(HANGS_S) is None
    assert {part.job.rows for part in future.parts} == {(0, FEW), (FEW, N_ROWS)}
    assert (y == 1).all()


def test_functions_split_by_what_is_known_when_they_do() -> None:
    y, seen = np.zeros((N_ROWS, WIDTH)), list[tuple[float, ...]]()

    def split(shares: tuple[float, ...], y: Any) -> list[tuple[Any]]:
        seen.append(shares)
        row = min(max(1, round(shares[0] * N_ROWS)), N_ROWS - 1)
        return [(y[:row],), (y[row:],)]

    def on_host(y_part: Any) -> None:
        time.sleep(0.1 * len(y_part) / N_ROWS)
        y_part += 1

    task = new_task(on_host)
    with opened() as pool:
        both = ct.hybrid(task, split=split)
        futures = [pool.submit(both, ct.updating(y)) for _ in range(N_TASKS)]
        assert [future.exception(HANGS_S) for future in futures] == [None] * N_TASKS
        fixed = pool.submit(ct.hybrid(task, split=split, shares=(1, 3)), ct.updating(y))
        assert fixed.exception(HANGS_S) is None
    assert (y == N_TASKS + 1).all() and seen.pop() == (0.25, 0.75)
    assert seen[0] == (63 / 64, 1 / 64) != seen[-1] and sum(seen[-1]) == pytest.approx(1)


@pytest.mark.parametrize(("known_s", "shares"), [
    ((3.0, 1.0), [0.25, 0.75]), ((999.0, 1.0), [1 / 64, 63 / 64]), ((3.0, None), None),
    ((1.0, 999.0, 1.0), [0.5 - 1 / 64, 1 / 64, 0.5]),
])  # fmt: skip
def test_shares_are_as_large_as_trials(
    known_s: tuple[float | None, ...], shares: list[float] | None
) -> None:
    sides = [Side(SimpleNamespace(number=n)) for n in range(len(known_s))]  # type: ignore[arg-type]

    def known(way: Any, size: float, cores: int) -> Estimate | None:
        seconds = known_s[way.number]
        return None if seconds is None else Estimate.about(seconds, 0.1, "history")

    forecast: Any = SimpleNamespace(refresh=lambda: None, known=known)
    found = Cutting(forecast).shares_by_now(1.0, sides)
    assert found == (None if shares is None else pytest.approx(shares, abs=1e-3))
    assert found is None or sum(found) == pytest.approx(1)


@pytest.mark.parametrize("awaits_help", [True, False])
def test_who_is_to_help_is_woken_and_has_a_core(awaits_help: bool) -> None:
    with opened() as pool:
        host, device = pool._lanes
        ways: list[Any] = [SimpleNamespace(lane=lane) for lane in (host, device)]
        job = Job(0, ct.Task("slow"), (), {}, [], pool, ways)
        job.placed, job.pieces = ways[0], SimpleNamespace(
            look_for_help=lambda: None, awaits_help=awaits_help, n_left=2
        )
        bells = [SimpleQueue[bool](), SimpleQueue[bool]()]
        for lane, bell in zip((host, device), bells):
            lane.bells = [bell]
        with pool._lock:
            pool._crew.push(job)
            assert [bell.qsize() for bell in bells] == [1, awaits_help]
            host.running = {object(): 0.0}  # type: ignore[dict-item]
            assert pool._crew._has_room(host) != awaits_help
            host.running, host.ready, host.bells, device.bells = {}, [], [], []
