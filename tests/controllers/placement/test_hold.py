# SPDX-License-Identifier: MIT
"""Computations that hold their devices: alone on them, together on all ranks, and no deadlock."""
from __future__ import annotations

import gc
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi_jobs import HANGS_S, run_ranks

import controllers as ct
from controllers.arbiter import Arbiter, Want, node_cores
from controllers.arbiter.held import Held, Own, held_by_task, held_here
from controllers.cli import main
from controllers.device import reference_device
from controllers.placement.hold import Hold, _Asked, _ways
from hitmap.comm import SerialCommunicator

CORES = node_cores()
MEAN = ct.Stencil.of("mean", [(-1, 1)], [1, 0, 1], 2)
START = np.arange(40, dtype=np.float32) % 7


@pytest.fixture(autouse=True)
def arbiter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Arbiter]:
    monkeypatch.setenv("CONTROLLERS_ARBITER", str(tmp_path / "arbiter"))
    gc.collect()    # what failed tests have left
    with Arbiter() as made:
        yield made


def computation(**keywords: Any) -> ct.Computation:
    return ct.Computation(MEAN, START, comm=SerialCommunicator(), **keywords)


def holders(arbiter: Arbiter) -> list[tuple[str, ...]]:
    return [one.units for one in arbiter.holders() if one.how == "held"]


def test_a_computation_holds_its_devices_until_it_is_closed(
    arbiter: Arbiter, capsys: pytest.CaptureFixture[str]
) -> None:
    with computation(devices="cpu/1", exclusive=True) as run:
        (held,) = holders(arbiter)
        assert len(held) == 1 and {*held} <= {*CORES}
        assert arbiter.taken(CORES) == {*held}
        assert main(["devices"]) == 0
        assert re.search(rf"{held[0]} +held +mean ", capsys.readouterr().out)
        run.run(3)
        assert np.array_equal(
            run.gather(), ct.reference_run(MEAN.program("float32"), START, 3, (False,))
        )
    assert not arbiter.taken(CORES) and run.state.closed


def test_others_are_only_told_of_devices_unless_that_is_wanted(arbiter: Arbiter) -> None:
    with computation(devices="cpu/1"):
        assert not arbiter.taken(CORES)
        assert [one.how for one in arbiter.holders()] == ["used"]
    assert not arbiter.holders(), "closed"


def test_units_are_waited_for_so_long_and_told_who_has_them(arbiter: Arbiter) -> None:
    with arbiter.acquire([[Want(CORES, len(CORES), len(CORES))]], what="a film"):
        told = rf"within 0.05 s; core.*{os.getpid()}.*a film.*wait"
        with pytest.raises(TimeoutError, match=told):
            computation(devices="cpu/1", exclusive=0.05)
        with pytest.raises(TimeoutError, match="a film"):
            ct.workspace(devices="cpu/1", exclusive=0.05, comm=SerialCommunicator())
    with computation(devices="cpu/1", exclusive=0.05):
        assert len(arbiter.taken(CORES)) == 1


def test_devices_are_waited_for(arbiter: Arbiter) -> None:
    lease = arbiter.acquire([[Want(CORES, len(CORES), len(CORES))]])
    released = threading.Event()

    def release() -> None:
        time.sleep(0.02)
        released.set()
        lease.release()

    threading.Thread(target=release).start()
    with ct.workspace(devices="cpu/1", exclusive=True, comm=SerialCommunicator()) as space:
        assert released.is_set() and len(arbiter.taken(CORES)) == 1
        assert np.asarray(space.array([1.0, 2.0])).tolist() == [1, 2]
    assert not arbiter.taken(CORES)


def test_the_command_run_waits_for_devices_and_holds_them(
    arbiter: Arbiter, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pattern, program = tmp_path / "mean.py", tmp_path / "program.py"
    pattern.write_text("shape = [(-1, 1)]\npattern = [1, 0, 1]\nfactor = 2\n")
    program.write_text(
        "import numpy as np\nimport controllers as ct\nfrom controllers.arbiter import Arbiter\n"
        "from controllers.arbiter import node_cores\n"
        "mean = ct.Stencil.of('mean', [(-1, 1)], [1, 0, 1], 2)\n"
        "with ct.Computation(mean, np.zeros(9)) as run:\n"
        "    assert len(Arbiter().taken(node_cores())) == 1\n    run.run(1)\n"
    )
    of_pattern = ["run", str(pattern), "--size", "40", "--iterations", "2", "--device", "cpu/1"]
    of_program = ["run", "--exclusive", str(program), "--device", "cpu/1"]
    assert [main([*of_pattern, "--exclusive"]), main(of_program)] == [0, 0]
    with arbiter.acquire([[Want(CORES, len(CORES), len(CORES))]], what="a film"):
        assert main([*of_pattern, "--exclusive=0.05"]) != 0
    assert "a film" in capsys.readouterr().err
    assert main([*of_pattern, "--exclusive=0"]) == 2
    assert "a number of seconds above 0, got '0'" in capsys.readouterr().err


def test_an_error_in_the_block_gives_devices_back(arbiter: Arbiter) -> None:
    with pytest.raises(ZeroDivisionError), computation(devices="cpu/1", exclusive=True) as run:
        run.run(1 // 0)
    assert not arbiter.taken(CORES)
    with (
        pytest.raises(ZeroDivisionError),
        ct.workspace(devices="cpu/1", exclusive=True, comm=SerialCommunicator()),
    ):
        assert arbiter.taken(CORES)
        raise ZeroDivisionError
    assert not arbiter.taken(CORES)


def test_computations_and_tasks_of_a_process_share_what_it_holds(arbiter: Arbiter) -> None:
    with computation(devices="reference", exclusive=1):
        (held,) = holders(arbiter)
        with computation(devices="reference", exclusive=1) as second:
            assert holders(arbiter) == [held]
        second.close()
        assert arbiter.taken(CORES) == {*held}, "the first one has it still"
        with ct.tasks((), cores=len(CORES)) as pool:
            alone = ct.Task("alone", ())
            alone.variant(lambda *, cores: cores, least=len(CORES), most=len(CORES))
            assert pool.submit(alone).result(HANGS_S) == len(CORES)
            pool._share.rest()
            some = ct.Task("some", ())
            some.variant(lambda *, cores: cores, least=1, most=len(CORES))
            assert pool.submit(some).result(HANGS_S) == 1, "it does with what is there"
    assert not arbiter.taken(CORES)


def test_a_computation_in_a_task_does_not_wait_for_the_lease_of_the_task(arbiter: Arbiter) -> None:
    @ct.task(devices=1)
    def flow(u: Any, *, devices: tuple[str, ...]) -> list[set[str]]:
        before = arbiter.taken(CORES)
        with computation(devices=devices, exclusive=True) as run:
            run.run(2)
            return [before, arbiter.taken(CORES)]

    def without() -> None:
        with computation(devices=["reference"] * 64, exclusive=1):
            raise AssertionError

    with ct.tasks("cpu/1", cores=1) as pool:
        before, inside = pool.submit(flow, START).result(HANGS_S)
        assert before == inside != set()
        if len(CORES) > 1:
            error = pool.submit(without).exception(HANGS_S)
            assert re.search("the task lacks .* more cores; give the task devices=", str(error))


def test_a_job_that_owns_the_node_waits_for_nothing(arbiter: Arbiter) -> None:
    with ct.tasks((), cores=1, exclusive=True) as pool:
        with computation(devices="cpu/1", exclusive=1) as run:
            run.run(1)
        assert pool.submit(len, (1, 2)).result() == 2
    assert not held_here()


@pytest.mark.parametrize(
    ("exclusive", "error", "words"),
    [
        (0, ValueError, "exclusive is True, False, or the seconds.*got 0.*exclusive=True"),
        (-1.5, ValueError, "exclusive.*-1.5"),
        (float("inf"), ValueError, "exclusive.*inf"),
        ("yes", TypeError, "exclusive.*'yes'"),
    ],
)
def test_what_is_no_wait_is_refused(exclusive: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        computation(devices="reference", exclusive=exclusive)


def test_accelerators_are_units_and_a_task_must_have_them(arbiter: Arbiter) -> None:
    gpu, other = (replace(reference_device(), kind="gpu", name=name) for name in "ab")
    unit = "device gpu"
    hold = Hold(SerialCommunicator(), [gpu], "a wave", 1)
    assert holders(arbiter) == [(unit,)]
    hold.close()
    assert holders(arbiter) == []
    with held_by_task(Own(frozenset([unit]), 1)):
        inside = Hold(SerialCommunicator(), [gpu, other], "a wave", 1)
        assert holders(arbiter) == []
        inside.close()
    lacking = pytest.raises(ValueError, match="task lacks device gpu")
    with held_by_task(Own(frozenset(), 4)), lacking:
        Hold(SerialCommunicator(), [gpu], "a wave", 1)


def test_ranks_that_share_cores_want_them_together() -> None:
    def asked(n: int, *cores: str, units: tuple[str, ...] = ()) -> _Asked:
        return _Asked("node", units, n, cores, None)

    bound = [asked(1, "a", units=("gpu",)), asked(1, "b", units=("gpu", "other")), asked(0, "c")]
    assert _ways(bound) == [Want(("a",), 1, 1), Want(("b",), 1, 1), Want(("gpu", "other"), 2, 2)]
    overlapping = [asked(1, "a", "b"), asked(1, "c"), asked(2, "b", "c", "d")]
    assert _ways(overlapping) == [Want(("a", "b", "c", "d"), 4, 4)]
    assert _ways([asked(3, "a", "b"), asked(3, "a", "b")]) == [Want(("a", "b"), 2, 2)]
    assert _ways([asked(0)]) == []


def test_what_is_held_goes_with_the_last_reference() -> None:
    given: list[int] = []
    held = Held(["a"], release=lambda: given.append(1))
    again = [held]
    del held
    assert not given
    again.clear()
    assert given == [1] and not any("a" in one.units for one in held_here())


ALONE = """
import os, sys, time
import numpy as np
import controllers as ct

mean = ct.Stencil.of("mean", [(-1, 1)], [1, 0, 1], 2)
start = np.arange(40, dtype=np.float32) % 7
path = sys.argv[1]
for _ in range(int(sys.argv[2])):
    with ct.Computation(mean, start, devices=["reference"] * 64, exclusive=True) as run:
        if run.comm.rank == 0:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL))
        run.run(2)
        if run.comm.rank == 0:
            os.unlink(path)
found = run
"""


@pytest.mark.whole
def test_jobs_of_several_ranks_take_turns(tmp_path: Path) -> None:
    """Each needs all cores of the node, for its two ranks together."""
    path = str(tmp_path / "alone")
    threads, done = [], []
    for n_ranks in (2, 1, 2):
        job = threading.Thread(
            target=lambda n: done.append(run_ranks(n, ["-c", ALONE, path, "5"])), args=(n_ranks,)
        )
        threads.append(job)
        job.start()
    for job in threads:
        job.join(HANGS_S)
    assert [one.returncode for one in done] == [0] * 3, [one.stderr for one in done]


FAIL = """
import os, signal, sys, threading, time
import numpy as np
import controllers as ct
from controllers.arbiter import Arbiter, Want, node_cores
from mpi4py import MPI

FOLDER = "CONTROLLERS_ARBITER"
comm, names = MPI.COMM_WORLD, node_cores()
mean = ct.Stencil.of("mean", [(-1, 1)], [1, 0, 1], 2)
how, other = sys.argv[1], Arbiter()
if comm.rank == 1:
    lease = other.acquire([[Want(names, len(names), len(names))]], what="a film")
comm.Barrier()
def interrupt():
    while not any(name.startswith("ticket") for name in os.listdir(os.environ[FOLDER])):
        time.sleep(0.001)
    os.kill(os.getpid(), signal.SIGINT)

if how == "ctrl-c" and comm.rank == 1:
    threading.Thread(target=interrupt).start()
try:
    ct.Computation(mean, np.zeros(40, np.float32), devices="cpu",
                   exclusive=0.2 if how == "timeout" else True)
except BaseException as error:
    sys.stdout.write(f"{type(error).__name__} {str(error)!r}" + os.linesep)
comm.Barrier()
if comm.rank == 1:
    assert len(other.taken(names)) == 0     # but its own
    lease.release()
comm.Barrier()
with ct.Computation(mean, np.ones(40, np.float32), devices="cpu", exclusive=True) as run:
    run.run(2)
"""


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("timeout", "TimeoutError .rank 0: .* did not come free within 0.2 s.*a film"),
        pytest.param("ctrl-c", "KeyboardInterrupt .rank 1: Ctrl-C", marks=pytest.mark.whole),
    ],
)
@pytest.mark.whole
def test_ranks_fail_together_and_go_on(how: str, words: str) -> None:
    done = run_ranks(2, ["-c", FAIL, how])
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 2 and all(re.match(words, line) for line in lines), lines


@pytest.mark.whole
def test_ctrl_c_ends_the_wait(arbiter: Arbiter) -> None:
    text = ALONE.replace("import os", "import os, signal")
    with arbiter.acquire([[Want(CORES, len(CORES), len(CORES))]]):
        job = subprocess.Popen(
            [sys.executable, "-c", text, "/nowhere", "1"], stderr=subprocess.PIPE, text=True
        )
        while not _tickets():
            assert job.poll() is None
            time.sleep(0.01)
        job.send_signal(signal.SIGINT)
        _, told = job.communicate(timeout=HANGS_S)
    assert "KeyboardInterrupt: Ctrl-C while devices were waited for" in told


def _tickets() -> list[Path]:
    return list(Path(os.environ["CONTROLLERS_ARBITER"]).glob("ticket-*"))
