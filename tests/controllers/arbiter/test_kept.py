# SPDX-License-Identifier: MIT
"""Leases that lie idle between tasks: reused by the same wants, and in nobody's way."""
from __future__ import annotations

import random
import threading
from pathlib import Path

import pytest
from arbiter_jobs import CORES, DEVICES, drawn

from controllers.arbiter import Arbiter, Kept, Want
from controllers.arbiter import kept as kept_module

SOON_S = 60
TWO, DEVICE = ((Want(CORES, 1, 2),),), ((Want(DEVICES[:1]),),)


def test_the_same_wants_have_the_same_lease_as_long_as_nobody_waits(tmp_path: Path) -> None:
    with Arbiter(tmp_path / "arbiter") as arbiter, Arbiter(tmp_path / "arbiter") as other:
        kept = Kept(arbiter)
        with kept.held(TWO) as first, kept.held(TWO) as second:
            assert not {*first.units[0]} & {*second.units[0]}
        with kept.held(TWO) as again:
            assert again in (first, second)
        waiting = other.request([[Want(CORES, 5, 5)]])
        assert waiting.poll() is None and arbiter.is_waited()
        with kept.held(DEVICE):     # what lies idle is given back first
            assert waiting.poll() is not None
        waiting.cancel()
        assert not other.holders() or [h.units for h in other.holders()] == [DEVICES[:1]]
        kept.rest()
        assert other.holders() == [] and not arbiter.is_waited()


@pytest.mark.parametrize("is_over", [True, False])
def test_others_wait_for_no_more_than_a_slice(
    is_over: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_module, "SLICE_S", 0 if is_over else 3600)
    with Arbiter(tmp_path / "arbiter") as arbiter, Arbiter(tmp_path / "arbiter") as other:
        kept = Kept(arbiter)
        with kept.held(TWO) as lease:
            waiting = other.request([[Want(CORES, 5, 5)]])
            assert waiting.poll() is None
        if is_over:
            assert waiting.poll() is not None
            return
        with kept.held(TWO) as again:
            assert again is lease and waiting.poll() is None
        kept.rest()
        assert waiting.poll() is not None


def test_it_is_looked_for_others_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s, looks = [1000.0], []
    monkeypatch.setattr(kept_module.time, "monotonic", lambda: now_s[0])
    with Arbiter(tmp_path / "arbiter") as arbiter:
        kept, is_waited = Kept(arbiter), arbiter.is_waited
        monkeypatch.setattr(arbiter, "is_waited", lambda: looks.append(now_s[0]) or is_waited())
        for _ in range(100):
            now_s[0] += kept_module.LOOK_S / 4
            with kept.held(TWO) as lease:
                pass
        assert not looks, "its slice is not over"
        now_s[0] = lease.since + kept_module.SLICE_S
        for _ in range(40):
            now_s[0] += kept_module.LOOK_S / 4
            with kept.held(TWO) as again:
                assert again is lease
        assert 8 <= len(looks) <= 11
        kept.rest()


def test_a_lease_of_less_than_the_most_is_not_kept(tmp_path: Path) -> None:
    with Arbiter(tmp_path / "arbiter") as arbiter, Arbiter(tmp_path / "arbiter") as other:
        kept = Kept(arbiter)
        rest = other.acquire([[Want(CORES, 4, 4)]])
        with kept.held(TWO) as lease:
            assert len(lease.units[0]) == 1
        rest.release()
        with kept.held(TWO) as lease:
            assert len(lease.units[0]) == 2


def test_a_task_that_fails_gives_back_what_it_held(tmp_path: Path) -> None:
    with Arbiter(tmp_path / "arbiter") as arbiter:
        kept = Kept(arbiter)
        with pytest.raises(ZeroDivisionError), kept.held(TWO):
            raise ZeroDivisionError
        kept.rest()
        assert arbiter.holders() == []


def test_threads_of_two_pools_all_finish_and_share_nothing(tmp_path: Path) -> None:
    """What lies idle in one thread never stops another one that waits."""
    arbiters = [Arbiter(tmp_path / "arbiter") for _ in range(2)]
    pools = [Kept(arbiter) for arbiter in arbiters]
    held, done, lock = set[str](), list[int](), threading.Lock()

    def tasks(number: int) -> None:
        kept, draws = pools[number % 2], random.Random(number)
        wanted = [tuple(map(tuple, drawn(draws))) for _ in range(3)]
        for _ in range(25):
            with kept.held(draws.choice(wanted)) as lease:
                mine = {unit for units in lease.units for unit in units}
                with lock:
                    assert not mine & held
                    held.update(mine)
                with lock:
                    held.difference_update(mine)
        kept.rest()     # as a thread that finds no task does
        done.append(number)

    threads = [threading.Thread(target=tasks, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SOON_S)
    assert sorted(done) == [*range(8)] and not held
    for arbiter in arbiters:
        arbiter.close()
