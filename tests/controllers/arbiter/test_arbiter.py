# SPDX-License-Identifier: MIT
"""Leases of cores and devices: given all at once, in turn, and given back in every way to end."""
from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from controllers.arbiter import Arbiter, Lease, Mark, Want
from controllers.arbiter.home import Home, home

CORES = ("core 0", "core 1", "core 2", "core 3")
ALL, ONE, DEVICE = Want(CORES, 4, 4), Want(CORES), Want(("device a",))
HYBRID = [[Want(CORES, 2, 4), DEVICE], [DEVICE], [Want(CORES, 2, 4)]]
SOON_S = 60


@pytest.fixture
def arbiters(tmp_path: Path) -> Iterator[Callable[[], Arbiter]]:
    """Arbiters that exclude one another as those of several processes do."""
    made: list[Arbiter] = []

    def make() -> Arbiter:
        made.append(Arbiter(tmp_path / "arbiter"))
        return made[-1]

    yield make
    for arbiter in made:
        arbiter.close()


def units_of(lease: Lease | None) -> set[str]:
    assert lease is not None
    return {unit for units in lease.units for unit in units}


def test_no_unit_is_given_twice_and_all_come_back(arbiters: Callable[[], Arbiter]) -> None:
    first, second = arbiters(), arbiters()
    with first.acquire([[Want(CORES, 1, 3)]]) as lease:
        assert lease.units == (CORES[:3],)
        others = second.acquire([[Want(CORES, 1, 3)]])      # what is free, fewer than the most
        assert others.units == (CORES[3:],)
        assert first.request([[ONE]]).poll() is None        # within one process, too
    others.release()
    others.release()    # nothing happens
    assert units_of(second.acquire([[ALL]], SOON_S)) == {*CORES}


def test_a_hybrid_request_runs_on_one_side_if_the_other_is_taken(
    arbiters: Callable[[], Arbiter],
) -> None:
    first, second = arbiters(), arbiters()
    with first.acquire([[Want(CORES, 3, 3)]]), second.acquire(HYBRID) as lease:
        assert (lease.way, lease.units) == (1, (("device a",),))
        assert first.request(HYBRID).poll() is None
    with first.acquire([[DEVICE]]), second.acquire(HYBRID) as lease:
        assert (lease.way, lease.units) == (2, (CORES,))


def test_all_units_are_taken_at_once_or_none(arbiters: Callable[[], Arbiter]) -> None:
    first, second, third = arbiters(), arbiters(), arbiters()
    lease = first.acquire([[DEVICE]])
    waiting = second.request([[ONE, DEVICE]])
    assert waiting.poll() is None
    # what the second one waits for is kept for it, but it does not hold it
    assert len(units_of(third.acquire([[Want(CORES, 1, 4)]]))) == 3
    assert [h.how for h in third.holders()] == ["held", "held"]
    del waiting     # nobody waits any more
    assert len(units_of(third.acquire([[Want(CORES, 1, 4)]]))) == 1
    lease.release()


def test_who_comes_later_takes_nothing_from_who_waits(arbiters: Callable[[], Arbiter]) -> None:
    """Small requests come all the time; the large one gets its turn."""
    small, large, late = [arbiters() for _ in CORES], arbiters(), arbiters()
    leases = [arbiter.acquire([[ONE]]) for arbiter in small]
    waiting = large.request([[ALL]])
    assert waiting.poll() is None
    for lease in leases:
        lease.release()
        later = late.request([[ONE]])
        assert later.poll() is None, "this core is kept for who came first"
        with late.acquire([[DEVICE]]):      # which nobody waits for
            later.cancel()
    behind = late.request([[ONE]])
    assert behind.poll() is None
    lease = waiting.wait(SOON_S)
    assert units_of(lease) == {*CORES} and behind.poll() is None
    lease.release()
    assert behind.poll() is not None


def test_those_who_wait_are_served_in_order(arbiters: Callable[[], Arbiter]) -> None:
    holder = arbiters().acquire([[DEVICE]])
    requests = [arbiters().request([[DEVICE]]) for _ in range(5)]
    assert [request.poll() for request in requests] == [None] * 5
    requests.pop(2).cancel()
    for number, request in enumerate(requests):
        holder.release()
        assert all(other.poll() is None for other in requests[:number:-1])
        holder = request.wait(SOON_S)


def test_the_whole_node_is_of_one_and_shared_inside(arbiters: Callable[[], Arbiter]) -> None:
    first, second = arbiters(), arbiters()
    lease = second.acquire([[ONE]])
    node = first.request([[ONE]])
    with pytest.raises(TimeoutError, match=f"the whole node .* core 0: process {os.getpid()} "):
        first.acquire_node(0.01)
    assert node.poll() is not None
    node.cancel()
    lease.release()
    with first.acquire_node(SOON_S, "all of it") as owned:
        assert second.request([[ONE]]).poll() is None
        assert first.request([[ONE]]).poll() is None
        assert "all of it" in str(*first.holders())
        inner = owned.inner
        with Arbiter(inner) as one, Arbiter(inner) as other:
            assert one.acquire([[ALL]]) and other.request([[ONE]]).poll() is None
    assert inner is not None and not inner.exists()
    with pytest.raises(ValueError, match="only the lease of a whole node"):
        print(lease.inner)


def test_nobody_gets_ahead_of_who_waits_for_the_node(arbiters: Callable[[], Arbiter]) -> None:
    lease, owner = arbiters().acquire([[DEVICE]]), arbiters()
    got: list[Lease] = []
    thread = threading.Thread(target=lambda: got.append(owner.acquire_node(SOON_S)))
    thread.start()
    late = arbiters()
    while (small := (request := late.request([[ONE]])).poll()) is not None:
        small.release()     # it does not wait yet
    lease.release()
    thread.join(SOON_S)
    assert got and request.poll() is None
    got[0].release()
    assert request.poll() is not None


def _n_tickets(arbiter: Arbiter) -> int:
    assert arbiter._table is not None
    return len([*arbiter._table._path.glob("ticket-*")])


def test_a_wait_ends_in_time_and_says_who_holds(arbiters: Callable[[], Arbiter]) -> None:
    first, second = arbiters(), arbiters()
    first.acquire([[DEVICE]], what="a matrix product")
    with pytest.raises(TimeoutError) as caught:
        second.acquire([[ALL, DEVICE]], 0.02)
    for words in ("4 of core 0, ..., core 3 and 1 of device a", "0.02 s", "a matrix product"):
        assert words in str(caught.value)
    assert _n_tickets(second) == 0
    request = second.request([[DEVICE]])
    request.cancel()
    with pytest.raises(RuntimeError, match="cancelled"):
        request.poll()


def test_ctrl_c_ends_a_wait(arbiters: Callable[[], Arbiter]) -> None:
    first, second = arbiters(), arbiters()
    lease = first.acquire([[DEVICE]])
    timer = threading.Timer(0.1, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        second.acquire([[DEVICE]], SOON_S)
    timer.join()
    assert _n_tickets(second) == 0
    lease.release()
    assert first.request([[DEVICE]]).poll() is not None


def test_threads_of_one_process_exclude_one_another(arbiters: Callable[[], Arbiter]) -> None:
    arbiter, held, most = arbiters(), set[str](), list[int]()

    def turns() -> None:
        for _ in range(20):
            with arbiter.acquire([[Want(CORES, 1, 2)]], SOON_S) as lease:
                mine = units_of(lease)
                assert not mine & held
                held.update(mine)
                most.append(len(held))
                held.difference_update(mine)

    threads = [threading.Thread(target=turns) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SOON_S)
    assert len(most) == 120 and not held


FORK = """
import os, sys
from pathlib import Path
from controllers.arbiter import Arbiter, Want

arbiter = Arbiter(Path(sys.argv[1]))
lease = arbiter.acquire([[Want(("a",))]])
waiting = arbiter.request([[Want(("a", "b"), 2, 2)]])
assert waiting.poll() is None
if os.fork() == 0:
    lease.release()     # it is the parent's
    waiting.cancel()
    assert arbiter.request([[Want(("a",))]]).poll() is None
    os.write(1, b"child" + os.linesep.encode())
    sys.stdin.read()
    os._exit(0)
os.write(1, b"parent" + os.linesep.encode())
os.wait()
"""


def test_a_child_holds_nothing_and_a_dead_parent_neither(
    arbiters: Callable[[], Arbiter], tmp_path: Path
) -> None:
    command = [sys.executable, "-c", FORK, str(tmp_path / "arbiter")]
    job = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert job.stdin is not None and job.stdout is not None
    assert {job.stdout.readline(), job.stdout.readline()} == {"parent\n", "child\n"}
    arbiter = arbiters()
    assert arbiter.request([[Want(("a",))]]).poll() is None
    job.kill()      # the child lives on
    job.wait(SOON_S)
    assert units_of(arbiter.acquire([[Want(("a", "b"), 2, 2)]], SOON_S)) == {"a", "b"}
    job.communicate(timeout=SOON_S)


def test_computations_mark_devices_which_are_given_last(
    arbiters: Callable[[], Arbiter], tmp_path: Path
) -> None:
    arbiter, devices = arbiters(), [Want(("device a", "device b"), 1, 2)]
    marks = [Mark(["device a"], "a stencil", tmp_path / "arbiter") for _ in range(2)]
    assert [(h.how, h.what) for h in arbiter.holders()] == [("used", "a stencil")] * 2
    with arbiter.acquire([[Want(("device a", "device b"))]]) as lease:
        assert lease.units == (("device b",),)
        with arbiter.acquire([[DEVICE]]):       # nobody waits for a mark
            marks.append(Mark(["device a"], "", tmp_path / "arbiter"))      # nor a mark for a lease
    with arbiter.acquire([devices]) as lease:
        assert lease.units == (("device b", "device a"),)
    for mark in (*marks, *marks):
        mark.close()
    with arbiter.acquire([devices]) as lease:
        assert lease.units == (("device a", "device b"),)


def test_a_folder_that_is_removed_is_made_anew_when_nothing_is_held(
    arbiters: Callable[[], Arbiter], tmp_path: Path
) -> None:
    first, second = arbiters(), arbiters()
    for arbiter in (first, second):
        arbiter.acquire([[DEVICE]]).release()
    shutil.rmtree(tmp_path / "arbiter")
    lease = first.acquire([[DEVICE]])
    assert second.request([[DEVICE]]).poll() is None
    lease.release()


def test_a_folder_that_others_may_write_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(PermissionError, match="other users may write it"):
        Arbiter(tmp_path).acquire([[DEVICE]])
    with pytest.raises(PermissionError, match="other users may write it"):
        Mark(["device a"], folder=tmp_path)


def test_each_user_has_a_folder_of_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CONTROLLERS_ARBITER")
    monkeypatch.setenv("TMPDIR", "/var/tmp/of-this-job")
    assert home() == Path(f"/tmp/controllers-arbiter-{os.geteuid()}")
    monkeypatch.setenv("CONTROLLERS_ARBITER", "/some/where")
    assert home() == Path("/some/where")


def test_nothing_stays_open(tmp_path: Path) -> None:
    before = os.listdir("/proc/self/fd")
    opened = Home(tmp_path / "arbiter")
    opened.close()
    with Arbiter(tmp_path / "arbiter") as arbiter:
        lease = arbiter.acquire([[ONE]])
        assert arbiter.request([[ALL]]).poll() is None
    lease.release()     # it is no more
    Mark(["core 0"], folder=tmp_path / "arbiter").close()
    dropped = Arbiter(tmp_path / "arbiter").acquire([[ONE]])
    assert len(os.listdir("/proc/self/fd")) > len(before)
    del dropped
    gc.collect()
    with pytest.raises(OSError):
        Home(tmp_path / "arbiter" / "units")
    assert os.listdir("/proc/self/fd") == before
    assert sorted(path.name for path in (tmp_path / "arbiter").iterdir())[-1] == "units"
