# SPDX-License-Identifier: MIT
"""Kernels that who submits them enqueues, and calls that are remembered."""
from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from idle_lanes import more, wait_until_idle
from mpi_jobs import HANGS_S

import controllers as ct
from controllers.arbiter import kept
from controllers.controller.commands import Commands
from controllers.pool import crew
from controllers.pool.pool import Pool
from controllers.pool.side import known_launches

adds = ct.Task("adds", ("x", "y"), roles={"y": "updating"})
adds.variant(ct.Kernel.of("adds", """
    __kernel void adds(__global const float *x, TILE(x), __global float *y, TILE(y), BOX)
    { CELL; HERE(y) += HERE(x); }""", roles={"y": "updating"}))


@ct.task(roles={"y": "updating"})
def waits(y: Any, free: threading.Event) -> None:
    assert free.wait(HANGS_S)


class Watched:
    """Which threads enqueue launches; `error` is raised in place of the next one."""

    def __init__(self, pool: Pool, patch: pytest.MonkeyPatch) -> None:
        self.lane, self.threads = pool._lanes[1], list[threading.Thread]()
        self.error: BaseException | None = None
        issue = Commands.issue

        def noted(commands: Commands, *given: Any) -> Any:
            self.threads.append(threading.current_thread())
            if self.error is not None:
                error, self.error = self.error, None
                raise error
            return issue(commands, *given)

        patch.setattr(Commands, "issue", noted)

    def idle(self) -> None:
        wait_until_idle(self.lane)


@pytest.fixture(params=[True, False])
def pool(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Pool]:
    monkeypatch.setenv("CONTROLLERS_ARBITER", str(tmp_path / "arbiter"))
    monkeypatch.setattr(crew, "REST_S", HANGS_S)    # until leases are given back
    with ct.tasks("cpu/1", cores=2, zero_copy=request.param) as made:
        yield made


def test_a_known_kernel_for_an_idle_device_is_enqueued_by_who_submits_it(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched, y, here = Watched(pool, monkeypatch), np.zeros(9, np.float32), threading.main_thread()
    for n in range(4):
        pool.submit(more, y, 2).exception(HANGS_S)
        watched.idle()
        assert (watched.threads[-1] is here) == (n > 0), "the first one is bound by its thread"
    pool.submit(more, y, 3).exception(HANGS_S)
    assert watched.threads[-1] is here, "a number that is new"
    watched.idle()
    pool.submit(more, np.zeros(9, np.float32), 3).exception(HANGS_S)
    assert watched.threads[-1] is not here, "an array that is new"
    watched.idle()
    free = threading.Event()
    before = pool.submit(waits, y, free)
    last = pool.submit(more, y, 2)
    free.set()
    assert last.exception(HANGS_S) is before.exception(HANGS_S) is None
    assert watched.threads[-1] is not here, "it had to wait"
    assert len(watched.threads) == 7
    pool.wait()
    assert (y == 13).all()


def test_an_error_of_a_launch_is_the_futures_whoever_enqueues_it(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched, y = Watched(pool, monkeypatch), np.zeros(9, np.float32)
    pool.submit(more, y, 2).result(HANGS_S)
    watched.idle()
    watched.error = RuntimeError("no room")
    failed, after = pool.submit(more, y, 2), pool.submit(more, y, 2)
    assert watched.threads[1] is threading.main_thread()
    error = failed.exception(HANGS_S)
    assert isinstance(error, ct.TaskError) and error.__cause__ is not None
    assert "no room" in str(error.__cause__) and error.device == watched.lane.name
    assert isinstance(after.exception(HANGS_S), ct.TaskError), "it reads what is spoilt"
    watched.idle()
    assert not failed.cancel() and pool._share._budget._free == 2
    z = np.zeros(9, np.float32)
    pool.submit(more, z, 1).result(HANGS_S)
    assert (z == 1).all()


def test_nothing_is_begun_that_reads_what_is_spoilt_until_the_pool_has_waited(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched, y, z = Watched(pool, monkeypatch), np.zeros(9, np.float32), np.zeros(9, np.float32)
    for array in (y, z):
        pool.submit(more, array, 2).result(HANGS_S)
    watched.idle()
    free = threading.Event()
    blocked = pool.submit(waits, np.zeros(3), free)
    cancelled = pool.submit(more, y, blocked)
    assert cancelled.cancel()
    free.set()
    blocked.exception(HANGS_S)
    watched.idle()
    with pytest.raises(CancelledError):
        pool.submit(more, y, 2).result(HANGS_S)
    watched.error = RuntimeError("no room")
    assert isinstance(pool.submit(more, z, 2).exception(HANGS_S), ct.TaskError)
    watched.idle()
    assert isinstance(pool.submit(more, z, 2).exception(HANGS_S), ct.TaskError), "it reads that"
    pool.wait()
    for array in (y, y, z, z):      # cells have to be moved before the first one of each
        watched.idle()
        pool.submit(more, array, 2).exception(HANGS_S)
    assert watched.threads[-1] is threading.main_thread()
    pool.wait()
    assert (y == 6).all() and (z == 6).all()


def test_a_launch_is_found_by_its_tiles_and_forgotten_with_the_oldest(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_launches, "MOST_KNOWN", 4)
    known: Any = pool._lanes[1].side._known     # type: ignore[attr-defined]
    arrays = [np.zeros(9, np.float32) for _ in range(3)]
    for by in (1, 2, 3):
        for array in arrays:
            pool.submit(more, array, by).result(HANGS_S)
    assert len(known._newest) == 4 and len(known._bound) == 3
    assert sum(len(bound.launches) for bound in known._bound.values()) == 4
    for array in arrays:
        assert (array == 6).all()
    (datum,) = (one for one in pool._submissions.data.all() if one.owner() is arrays[2])
    datum.tiles.clear()     # as where there is no more room for it
    datum.in_place.clear()
    gc.collect()
    assert len(known._newest) == 2 and len(known._bound) == 2
    del datum
    arrays[2][:] = 0
    pool.wait()
    pool.submit(more, arrays[2], 3).result(HANGS_S)
    assert (arrays[2] == 3).all() and len(known._bound) == 3


def test_what_is_known_of_calls_goes_with_their_arrays_and_tasks(pool: Pool) -> None:
    known = pool._submissions._calls._known
    base = np.zeros((4, 6), np.float32)
    view = base[1:3]
    mine = ct.Task("mine", ("y",), roles={"y": "updating"})
    mine.variant(lambda y: y.__iadd__(1))
    for _ in range(3):
        pool.submit(mine, view).result(HANGS_S)
        pool.submit(np.sum, view, 0).result(HANGS_S)
    assert len(known) == 2 and (base[1:3] == 3).all() and not base[0].any()
    pool.wait()
    del mine
    gc.collect()
    assert len(known) == 1, "the function is numpy's"
    del view
    gc.collect()
    assert not known


def test_an_array_that_was_changed_is_looked_at_anew(pool: Pool) -> None:
    y = np.zeros(12, np.float32)
    whole = pool.submit(more, y, 1)
    assert whole.result(HANGS_S) is None
    y.shape = (3, 4)
    pool.submit(more, y, 1).result(HANGS_S)
    y.dtype = np.int32      # type: ignore[misc]
    with pytest.raises(ValueError, match="one dtype"):
        pool.submit(more, y, 1)
    y.dtype = np.float32    # type: ignore[misc]
    assert (y == 2).all()
    y.flags.writeable = False
    with pytest.raises(ValueError, match="writeable"):
        pool.submit(more, y, 1)


def test_roles_that_are_said_in_the_call_are_another_call(pool: Pool) -> None:
    a, b = np.ones(5), np.zeros(5)
    for _ in range(3):
        pool.submit(np.copyto, ct.writing(b), a)
        with pytest.raises(ct.TaskError, match="read-only"):
            pool.submit(np.copyto, b, a).result(HANGS_S)
    pool.submit(np.add, a, a, out=ct.writing(b)).result(HANGS_S)
    assert (b == 2).all()


def called(names: list[str], call: Callable[..., Any], *given: Any) -> Any:
    """What `call` returns; the functions of Python's that this thread calls for it are noted."""

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            names.append(frame.f_code.co_name)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        return call(*given)
    finally:
        sys.setprofile(before)


def test_of_a_task_that_was_submitted_before_few_functions_are_called(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "LOOK_S", HANGS_S)    # until others are asked for again
    watched, x, y = Watched(pool, monkeypatch), np.ones(9, np.float32), np.zeros(9, np.float32)
    do, in_thread, counts = pool._crew._do, list[str](), list[tuple[int, int, int]]()
    monkeypatch.setattr(pool._crew, "_do", lambda job: called(in_thread, do, job))
    for _ in range(24):
        in_submit = list[str]()
        in_thread.clear()
        future = called(in_submit, pool.submit, adds, x, y)
        assert future.exception(HANGS_S) is None
        watched.idle()
        if watched.threads[-1] is threading.main_thread():
            counts.append((in_submit.index("noted"), len(in_submit), len(in_thread)))
    # now and then estimates are made, and what is known is tidied; a busy machine adds a wait
    to_enqueue, all_of_submit, to_end = map(min, zip(*counts))
    own_memory = pool._memories.any
    assert to_enqueue <= (29 if own_memory else 25)
    assert all_of_submit <= (89 if own_memory else 61)
    assert to_end <= (52 if own_memory else 43)
