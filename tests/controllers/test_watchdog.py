# SPDX-License-Identifier: MIT
"""The watchdog ends jobs that stand still, with every rank's whereabouts, and no other job."""
from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from mpi_jobs import run_ranks

from controllers.call import Calls, noted
from controllers.cli import main
from controllers.state import State
from controllers.watchdog import limit
from hitmap.comm import SerialCommunicator

HEAD = """
import ctypes, gc, os, signal, time
import controllers, controllers.watchdog
from hitmap import default_communicator
controllers.watchdog.GRACE_S = 1
comm = default_communicator()
mean = controllers.Stencil.of("mean", [(-1, 1), (-1, 1)], [1] * 9, 9).program("float32")
def made(device="reference", **options):
    options = {"devices": device, "comm": comm, "steps_per_launch": 1, **options}
    return controllers.Computation(mean, (90, 80), **options)
def after(n_steps, what):
    def progress(done, total):
        if comm.rank == 1 and done > n_steps:
            what()
    return progress
"""
STILL = {
    "a rank that sleeps in init": (
        "it = made(watchdog=1)\n"
        "it.load(lambda tile: comm.rank and time.sleep(60))\n"
        "other = made(watchdog=1)",
        [r"rank 0 of 2.*\n(.*\n)*.*set-up of a computation of mean: under way",
         r"rank 1 of 2.*\n(.*\n)*.*load of computation 1 \(mean\): under way",
         r"stack of MainThread(.*\n)*.*in <lambda>"],
    ),
    "a rank that sleeps between steps": (
        "made('cpu').close()     # compiles\n"
        "made('cpu', watchdog=3, overlap='on').run(90000, after(50, lambda: time.sleep(60)))",
        [r"rank 0 of 2.*\n(.*\n)*.*run of computation 2 \(mean\): under way",
         r"started in step \d+, not known to have ended: receive u.\d@0 .* from place 1, rank 1",
         r"not started: launch mean: .* waits for: receive",
         r"rank 1 of 2.*\n(.*\n)*.*place 1 on \S.*: has begun step \d+ of a run to 89999"],
    ),
    "a rank that is stopped": (
        "made(watchdog=1).run(90000, after(50, lambda: os.kill(os.getpid(), signal.SIGSTOP)))",
        [r"rank 0 of 2.*\n(.*\n)*.*receive u.\d@0 .* from place 1, rank 1"],
    ),
    "a rank that keeps Python's lock": (
        "made(watchdog=1).run(90000, after(50, lambda: ctypes.PyDLL(None).sleep(60)))",
        [r"rank 0 of 2.*\n(.*\n)*.*receive u.\d@0 .* from place 1, rank 1",
         r"Timeout \(0:00:02.*\)!\n(.*\n)*.*in progress"],
    ),
    "a rank that waits for a message of its own": (
        "it = made(watchdog=1)\nif comm.rank == 1: comm.Recv(bytearray(1), 0)\nit.run(5)",
        [r"rank 1 of 2.*: rank 0 waits for too long", r"comm.Recv\(bytearray"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("how", STILL)
def test_a_job_that_stands_still_ends_and_says_where_each_rank_is(how: str) -> None:
    program, patterns = STILL[how]
    start = time.monotonic()
    job = run_ranks(2, HEAD + program, timeout=60)
    assert time.monotonic() - start < 15
    assert job.returncode != 0
    for pattern in patterns:
        assert re.search(pattern, job.stderr), job.stderr


def test_a_command_line_that_stands_still_ends_with_1(tmp_path: Path) -> None:
    (tmp_path / "mean.py").write_text("shape = ((-1, 1),)\npattern = [1, 0, 1]\nfactor = 2\n")
    program = (
        "import sys, time\nfrom controllers.cli import hash_field, main\n"
        "hash_field.fill = lambda *arguments: time.sleep(60)\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    command = "--size 90 --iterations 1 --device reference --watchdog 0.3"
    job = subprocess.run(
        [sys.executable, "-c", program, "run", str(tmp_path / "mean.py"), *command.split()],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert job.returncode == 1
    assert "no step or call has ended for 0.3 s" in job.stderr
    assert "load of computation" in job.stderr


def test_work_that_goes_on_and_time_between_calls_raise_no_alarm() -> None:
    program = HEAD + (
        "it = made(watchdog=1)\n"
        "start = time.monotonic()\n"
        "it.run(60, lambda done, total: time.sleep(0.05))\n"
        "assert time.monotonic() - start > 1.5\n"
        "time.sleep(1.6)\n"
        "it.run(3)\n"
        "it.close()\n"
        "time.sleep(1)\n"
    )
    job = run_ranks(2, program, timeout=60)
    assert (job.returncode, job.stderr) == (0, "")


def test_the_variable_sets_a_limit_and_a_lost_computation_is_not_watched() -> None:
    program = HEAD + (
        "os.environ['CONTROLLERS_WATCHDOG'] = '0.4'\n"
        "import threading\n"
        "try:\n"
        "    with made('reference') as it:\n"
        "        assert [t.name for t in threading.enumerate()].count('watchdog') == 1\n"
        "        raise KeyError\n"
        "except KeyError:\n"
        "    del it; gc.collect()\n"
        "time.sleep(1.5)\n"
        "assert all(t.name != 'watchdog' for t in threading.enumerate())\n"
        "made('reference', watchdog=0).close()\n"
    )
    job = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert (job.returncode, job.stderr) == (0, "")


def test_a_limit_is_a_number_of_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    assert limit("") is None
    for wrong in (-1, "soon", float("inf"), float("nan")):
        with pytest.raises(ValueError, match=f"seconds, 0 for none, got .?{wrong}"):
            limit(wrong)
    assert main(["run", "no.py", "--size", "9", "--iterations", "1", "--watchdog", "soon"]) == 2
    assert "--watchdog: the watchdog takes seconds" in capsys.readouterr().err


class Owner:
    def __init__(self) -> None:
        self.state, self.facts = State(), dict[str, object]()
        self.calls = Calls(SerialCommunicator(), "the owner")

    @noted(use="nothing")
    def fail(self) -> None:
        assert self.calls.open == 1
        raise KeyError


def test_calls_are_remembered_with_their_outcome() -> None:
    owner = Owner()
    with owner.calls.agreed("run", n_steps=3):
        assert "run of the owner: under way" in str(owner.calls.last[-1])
    with pytest.raises(KeyError):
        owner.fail()
    assert [str(call).rpartition(",")[0] for call in owner.calls.last] == [
        "run of the owner: done", "fail of the owner: failed",
    ]  # fmt: skip
    assert owner.calls.open == 0
