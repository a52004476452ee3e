# SPDX-License-Identifier: MIT
"""Plans of hybrid tasks are kept while nothing changes, and made anew when more is known."""
from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi_jobs import HANGS_S

import controllers as ct
from controllers.estimates.estimates import Estimates
from controllers.estimates.task_key import Case
from controllers.pool.hybrid.planning import Planning, Shares
from controllers.pool.pool import Pool
from controllers.pool.share import Others
from controllers.pool.way import Way
from hitmap.comm import SerialCommunicator

N_ROWS = 128
PLUS = ct.Kernel.of("plus", """
    __kernel void plus(__global double *y, TILE(y), BOX) { CELL; HERE(y) += 1; }""")


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CONTROLLERS_ARBITER", str(tmp_path / "arbiter"))


class Planned:
    """A pool that knows how long all rows take its two parts of a CPU; which plans it has made."""

    def __init__(self, pool: Pool, estimates: Estimates, made: list[Shares]) -> None:
        self.pool, self._estimates, self.made = pool, estimates, made
        self.y = np.zeros((N_ROWS, 8))
        self.task = ct.Task("plus", ("y",), roles={"y": "updating"})
        self.task.variant(PLUS)
        self.both = ct.hybrid(self.task, cut={"y": ct.Row})
        self.n_done = 0

    def knows(self, *seconds: float) -> None:
        """More is known of times than what pools see, who looks for that from now on."""
        for lane, all_s in zip(self.pool._lanes[1:], seconds):
            way = Way("plus", self.task.variants[0], lane)
            for part in (0.25, 0.5, 1):
                for _ in range(50):
                    self._estimates.add(way.key, Case(part * self.y.nbytes), part * all_s)
            self.pool._forecast._of(way)._look()
        for tell in self.pool._forecast.when_learnt:
            tell()

    def done(self, both: ct.Hybrid | None = None) -> list[tuple[int, int]]:
        """The rows of each part of one more task, after which the program knows that it is over."""
        future = self.pool.submit(both or self.both, self.y)
        self.n_done += 1
        assert future.exception(HANGS_S) is None
        return sorted(part.job.rows for part in future.parts or [future])


@contextmanager
def planned(zero_copy: bool = True) -> Iterator[Planned]:
    """What is learnt of executions themselves is left out, as no time here is true."""
    estimates, made, shares = Estimates(None), list[Shares](), Planning.shares

    def noted(*given: Any) -> Shares:
        made.append(shares(*given))
        return made[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Planning, "shares", noted)
        with Pool(
            "cpu/1,1", 2, zero_copy, None, False, estimates, SerialCommunicator()
        ) as pool:
            pool._forecast.ended = lambda *_: None  # type: ignore[method-assign]
            pool._crew._stolen = lambda lane: None  # type: ignore[method-assign]
            found = Planned(pool, estimates, made)
            found.knows(1.0, 1.0)
            yield found
            assert (found.y == found.n_done).all() or not zero_copy
        assert (found.y == found.n_done).all()


@pytest.mark.parametrize("zero_copy", [True, False])
def test_a_plan_is_made_once_while_nothing_changes(zero_copy: bool) -> None:
    with planned(zero_copy) as its:
        first = its.done()
        n_made = [len(its.made), *(len(its.made) for _ in range(5) if its.done() == first)]
    assert first == [(0, 64), (64, N_ROWS)]
    # where cells lie changes with the first tasks
    assert len(n_made) == 6 and n_made[0] == 1 and n_made[-1] == n_made[-3] <= 3


def test_a_plan_follows_what_is_learnt_while_devices_compute() -> None:
    with planned() as its:
        its.done()
        its.knows(3.0, 1.0)
        assert its.done() == [(0, 32), (32, N_ROWS)] and len(its.made) == 1
        its.knows(99.0, 1.0)    # a side that has nothing is tried now and then: who submits looks
        found = {tuple(its.done()) for _ in range(8)}
        assert ((0, N_ROWS),) in found and len(found) > 1 and len(its.made) == 9
        its.knows(1.0, 1.0)
        n_made = len(its.made) + 1
        assert [its.done() for _ in range(3)] == 3 * [[(0, 64), (64, N_ROWS)]]
        assert len(its.made) == n_made


def test_another_plan_is_made_where_others_hold_a_side(monkeypatch: pytest.MonkeyPatch) -> None:
    with planned() as its:
        its.done()
        with monkeypatch.context() as patch:
            held = Others(frozenset({its.pool._lanes[1].number}), 0)
            patch.setattr(its.pool._share, "others", lambda: held)
            assert [its.done() for _ in range(3)] == 3 * [[(0, N_ROWS)]]
        assert [its.done(), its.done()] == 2 * [[(0, 64), (64, N_ROWS)]]


def test_another_plan_is_made_while_a_side_is_busy() -> None:
    with planned() as its:
        its.done()
        its.pool._forecast._free_s[its.pool._lanes[1]] += 0.5
        assert its.done() == [(0, 32), (32, N_ROWS)] and len(its.made) == 2
        its.pool.wait()
        assert its.done() == [(0, 64), (64, N_ROWS)]


def test_another_plan_is_made_where_cells_have_to_be_moved() -> None:
    def plus_one(y: Any) -> None:
        y += 1

    with planned(zero_copy=False) as its:
        for _ in range(5):
            its.done()
        n_made = len(its.made)
        its.done()
        assert len(its.made) == n_made
        assert its.pool.submit(plus_one, ct.updating(its.y)).exception(HANGS_S) is None
        its.n_done += 1
        its.done()
        assert len(its.made) == n_made + 1


def test_another_plan_is_made_for_other_maps_and_sizes() -> None:
    with planned() as its:
        its.done()
        assert its.done(ct.hybrid(its.task, cut={"y": ct.Row}, shares=(1, 3))) == [
            (0, 32), (32, N_ROWS)
        ]  # fmt: skip
        assert its.done() == [(0, 64), (64, N_ROWS)]
        n_made = len(its.made)
        its.task.size = lambda y: 2.0 * y.nbytes
        assert its.done() == [(0, 64), (64, N_ROWS)] and len(its.made) == n_made + 1


def test_a_plan_that_did_not_pay_is_not_kept() -> None:
    with planned() as its:
        its.done()
        kind = its.pool._composites._planning.worth._kinds[its.made[0].kind]
        kind.longer.extend([9.0] * 4)
        assert its.done() in ([(0, N_ROWS)], [(0, N_ROWS), (0, N_ROWS)]) and len(its.made) == 2


def test_plans_are_those_that_would_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of tasks that are awaited, whose results are asked for, and of some that are not."""
    held, found = list[bool](), Planning.rows

    def checked(
        its: Planning, hybrid: Any, cut: Any, whole: Any, n_rows: int, jobs: Any
    ) -> tuple[Any, Any]:
        plan, ways = whole.call.plan, whole.may_run
        held.append(plan is not None and its._holds(plan, hybrid, whole))
        shares, rows = found(its, hybrid, cut, whole, n_rows, jobs)
        if held[-1]:
            whole.may_run, kept = ways, whole.may_run
            fresh = its.shares(hybrid, cut, whole, n_rows, n_rows, jobs)
            assert fresh == shares and whole.may_run == kept
            assert its._cut(whole.size, n_rows, fresh) == rows
        return shares, rows

    monkeypatch.setattr(Planning, "rows", checked)
    random = np.random.default_rng(2)
    with planned(zero_copy=False) as its:
        for n in range(60):
            future = its.pool.submit(its.both, its.y)
            its.n_done += 1
            if random.integers(4) or n > 50:
                assert future.exception(HANGS_S) is None
            if not random.integers(8):
                assert future.result(HANGS_S) is None
    assert len(held) == 60 and any(held[:50]) and any(held[50:])


def test_plans_hold_no_arrays_and_no_tasks() -> None:
    with planned() as its:
        z = np.zeros((N_ROWS, 8))
        task = ct.Task("plus", ("y",), roles={"y": "updating"})
        task.variant(PLUS)
        both = ct.hybrid(task, cut={"y": ct.Row})
        gone = [weakref.ref(one) for one in (z, task, both)]
        for _ in range(2):
            assert its.pool.submit(both, z).exception(HANGS_S) is None
        assert len(its.made) == 1 and (z == 2).all()
        del z, task, both
        its.pool.wait()
        its.done()      # threads let go of what they have done
        gc.collect()
        assert [one() for one in gone] == [None] * 3
