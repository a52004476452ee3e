# SPDX-License-Identifier: MIT
"""Hybrid tasks in which at least and at most so many devices take part."""
from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi_jobs import HANGS_S

import controllers as ct
from controllers.pool.device_count import DeviceCount
from controllers.pool.lane import Lane
from controllers.pool.memories import Memories
from controllers.pool.side.host_side import HostSide
from controllers.pool.way import Way

N_ROWS = 128
put = ct.Task("put rows", ("y",), roles={"y": "writing"})


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What other processes do on this machine is nothing to these tests."""
    monkeypatch.setenv("CONTROLLERS_ARBITER", str(tmp_path / "arbiter"))


@put.variant
def put_on_host(y: Any) -> None:
    y[...] = 1


PUT = ct.Kernel.of("put", """
    __kernel void put(__global double *y, TILE(y), BOX) { CELL; HERE(y) = 1; }""")
put.variant(PUT)


def places(submitted: Any, devices: str, cores: int) -> list[set[str]]:
    """Where the parts of three executions, one after the other, were sent."""
    found = []
    with ct.tasks(devices, cores=cores) as pool:
        pool._crew._stolen = lambda lane: None  # type: ignore[method-assign]
        for _ in range(3):
            y = np.zeros((N_ROWS, 4))
            pool.submit(submitted, y).result()
            assert (y == 1).all()
            ways = [one.way for one in pool.report().decisions]
            found.append({way.split(" on ")[1] for way in ways})
            pool._forecast._decided.clear()
    return found


def test_a_task_is_over_with_its_parts_whatever_cores_do() -> None:
    free, begun = threading.Event(), threading.Event()

    def busy() -> bool:
        begun.set()
        return free.wait(HANGS_S)

    task, y = ct.Task("put rows", ("y",), roles={"y": "writing"}), np.zeros((N_ROWS, 4))
    task.variant(PUT)
    hybrid = ct.hybrid(task, cut={"y": ct.Row}, devices=2)
    with ct.tasks("cpu/1,1", cores=3) as pool:
        pool._lanes[0].n_threads = 1
        other = pool.submit(busy)
        assert begun.wait(HANGS_S)
        try:
            future = pool.submit(hybrid, y)
            after = pool.submit(lambda parts: parts, future)    # which needs a core
            assert future.result(HANGS_S) is None and len(future.parts) >= 2 and (y == 1).all()
            assert future.cancel() is False and not after.done()
        finally:
            free.set()
        assert other.result(HANGS_S) and after.result(HANGS_S) is None


def n_devices(where: set[str]) -> int:
    return sum("cores" in place for place in where)


@pytest.mark.parametrize("devices", [1, (1, 2), 2, (0, 1)])
def test_so_many_devices_take_part(devices: Any) -> None:
    least, most = (devices, devices) if isinstance(devices, int) else devices
    hybrid = ct.hybrid(put, cut={"y": ct.Row}, devices=devices)
    for where in places(hybrid, "cpu/1,1", 3):
        assert least <= n_devices(where) <= most


def test_calls_of_a_series_are_done_by_so_many_devices() -> None:
    series = ct.series(put, [slice(k, k + 8) for k in range(0, N_ROWS, 8)], devices=2)
    for where in places(series, "cpu/1,1", 3):
        assert n_devices(where) == 2
    halves = ct.series(put, series.at, devices=1, shares=(1, 1))
    for where in places(halves, "cpu/1,1", 3):
        assert n_devices(where) == 1


def test_too_many_devices_and_what_is_no_number_are_refused() -> None:
    hybrid = ct.hybrid(put, cut={"y": ct.Row}, devices=(2, 3))
    with ct.tasks("cpu/1", cores=2) as pool:
        with pytest.raises(ValueError, match="at least 2 devices .* has 1 that can.*devices="):
            pool.submit(hybrid, np.zeros((N_ROWS, 4)))
        flow = ct.task(devices=1)(lambda y, *, devices: None)
        with pytest.raises(ValueError, match="a function with devices of its own .on host with 1"):
            pool.submit(ct.hybrid(flow, cut={"y": ct.Row}), np.zeros((N_ROWS, 4)))
    for wrong in (-1, (2, 1), 0):
        with pytest.raises(ValueError, match="devices, the"):
            ct.hybrid(put, cut={"y": ct.Row}, devices=wrong)
    with pytest.raises(TypeError, match="'cpu'.*devices=2"):
        ct.series(put, [None], devices="cpu")   # type: ignore[arg-type]


def test_the_fastest_devices_take_part_the_free_ones_first() -> None:
    side = HostSide(Memories())
    host = Lane(0, "the host", None, side)
    device = ct.devices()[0]
    slow, fast, middle = (Lane(n, name, device, side) for n, name in enumerate("abc", 1))
    way = Way("put", put.variants[0], host)
    every = {lane: (s, way) for lane, s in ((host, 9.0), (slow, 3.0), (fast, 1.0), (middle, 2.0))}
    assert {*DeviceCount(1, 2).chosen(every, every)} == {host, fast, middle}
    free = {lane: every[lane] for lane in (host, slow)}
    assert {*DeviceCount(1, 2).chosen(free, every)} == {host, slow}
    assert {*DeviceCount(2, 2).chosen(free, every)} == {host, slow, fast}
    assert {*DeviceCount(0, 1).chosen({fast: every[fast]}, every)} == {fast}


@pytest.mark.parametrize(("counts", "found"), [
    ([5, 0, 0], [3, 1, 1]), ([0, 5, 0], [0, 4, 1]), ([0, 1, 0], [0, 1, 0]), ([1, 0, 0], [0, 1, 0]),
    ([0, 2, 3], [0, 2, 3]),
])  # fmt: skip
def test_each_device_that_has_to_take_part_gets_a_unit(
    counts: list[int], found: list[int]
) -> None:
    side, device = HostSide(Memories()), ct.devices()[0]
    lanes = [Lane(0, "the host", None, side), *(Lane(n, "it", device, side) for n in (1, 2))]
    assert DeviceCount(2, 2).with_least(lanes, counts, 1) == found
