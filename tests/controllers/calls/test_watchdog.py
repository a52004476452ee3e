# SPDX-License-Identifier: MIT
"""The watchdog ends jobs that stand still, with every rank's whereabouts, and no other job."""
from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from mpi_jobs import run_ranks
from sample import sample

from controllers.calls.call import Calls, noted
from controllers.calls.state import State
from controllers.cli import main
from controllers.settings.watchdog import limit
from hitmap.comm import SerialCommunicator

HEAD = """
import ctypes, gc, os, signal, time
import controllers, controllers.calls.watchdog
from controllers.process.errand import errand
from hitmap import default_communicator
controllers.calls.watchdog.ANSWER_S = controllers.calls.watchdog.GRACE_S = 1
comm = default_communicator()
mean = controllers.Stencil.of("mean", [(-1, 1), (-1, 1)], [1] * 9, 9).program("float32")
def made(device="reference", **options):
    options = {"devices": device, "comm": comm, "steps_per_launch": 1, "watchdog": 300, **options}
    return controllers.Computation(mean, (90, 80), **options)
def limited(it, seconds=0.3):
    'From now on, whatever the machine has taken for what came before.'
    it._watchdog._look_s = seconds / 4
    it._watchdog._limit_s = seconds
    it._watchdog._arm()
def after(it, n_steps, what):
    def progress(done, total):
        if done > n_steps / 2:
            limited(it)
        if comm.rank == 1 and done > n_steps:
            what()
    return progress
"""
STILL = {
    "a rank that sleeps in init": (
        "it = made()\n"
        "limited(it)\n"
        "it.load(lambda tile: comm.rank and time.sleep(60))\n"
        "it.run(5)",
        [r"rank 0 of 2.*\n(.*\n)*.*run of computation 1 \(mean\): under way",
         r"rank 0 of 2.*\n(.*\n)*.*waits for the other ranks to make the same call",
         r"rank 1 of 2.*\n(.*\n)*.*load of computation 1 \(mean\): under way",
         r"stack of MainThread(.*\n)*.*in <lambda>"],
    ),
    "a rank that sleeps between steps": (
        "it = made('cpu', overlap='on')\n"
        "it.run(90000, after(it, 50, lambda: time.sleep(60)))",
        [r"rank 0 of 2.*\n(.*\n)*.*run of computation 1 \(mean\): under way",
         r"started in step \d+, not known to have ended: receive u.\d@0 .* from place 1, rank 1",
         r"not started: launch mean: .* waits for: receive",
         r"rank 1 of 2.*\n(.*\n)*.*place 1 on \S.*: has begun step \d+ of a run to 89999"],
    ),
    "a rank that is stopped": (
        "it = made()\n"
        "it.run(90000, after(it, 50, lambda: os.kill(os.getpid(), signal.SIGSTOP)))",
        [r"rank 0 of 2.*\n(.*\n)*.*receive u.\d@0 .* from place 1, rank 1"],
    ),
    "a rank that keeps Python's lock": (
        "it = made()\n"
        "it.run(90000, after(it, 50, lambda: ctypes.PyDLL(None).sleep(60)))",
        [r"Timeout \(0:00:0.*\)!\n(.*\n)*.*in progress"],
    ),
}  # fmt: skip


@pytest.mark.whole
@pytest.mark.parametrize("how", sample(STILL, 3))
def test_a_job_that_stands_still_ends_and_says_where_each_rank_is(how: str) -> None:
    program, patterns = STILL[how]
    job = run_ranks(2, HEAD + program, timeout=100)
    assert job.returncode != 0
    for pattern in patterns:
        assert re.search(pattern, job.stderr), job.stderr


@pytest.mark.whole
def test_a_command_line_that_stands_still_ends_with_1(tmp_path: Path) -> None:
    (tmp_path / "mean.py").write_text("shape = ((-1, 1),)\npattern = [1, 0, 1]\nfactor = 2\n")
    program = (
        "import sys, time\nfrom controllers.cli import hash_field, main\n"
        "hash_field.fill = lambda *arguments: time.sleep(60)\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    command = "--size 90 --iterations 1 --device reference --watchdog 3"
    job = subprocess.run(
        [sys.executable, "-c", program, "run", str(tmp_path / "mean.py"), *command.split()],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert job.returncode == 1
    assert "no step or call has ended for 3 s" in job.stderr
    assert "load of computation" in job.stderr


@pytest.mark.whole
def test_no_alarm_while_a_rank_works_between_calls_or_builds_or_goes_on() -> None:
    program = HEAD + (
        "def busy(done, total):\n"
        "    if comm.rank == 1 and done == 3:\n"
        "        with errand('the build of a kernel'): time.sleep(1.5)\n"
        "it = made()\n"
        "it.run(3)\n"
        "limited(it)\n"
        "if comm.rank == 1: time.sleep(1.5)\n"      # its thread runs
        "it.run(9)\n"
        "if comm.rank == 1: ctypes.PyDLL(None).sleep(3)\n"      # no thread runs
        "it.run(9, busy)\n"
        "it.close()\n"
    )
    job = run_ranks(2, program, timeout=100)
    assert (job.returncode, job.stderr) == (0, "")


@pytest.mark.whole
def test_without_a_limit_each_rank_says_once_where_it_is_and_goes_on() -> None:
    program = (
        "import controllers.calls.watchdog\n" + HEAD + "it = made(watchdog=None)\n"
        "def slow(done, total):\n"
        "    start = time.monotonic()\n"
        "    if done >= 3: controllers.calls.watchdog.NOTICE_S = 0.4\n"
        "    while done >= 3 and not it._watchdog._is_noticed:\n"
        "        assert time.monotonic() - start < 60\n"
        "        time.sleep(0.01)\n"
        "    time.sleep(0.2 if done > 3 else 0)\n"      # more looks
        "it.run(9, slow)\n"
        "n_steps = it.report().steps\n"
        "if comm.rank == 0: print('done', n_steps)\n"
    )
    job = run_ranks(2, program, timeout=100)
    assert (job.returncode, job.stdout) == (0, "done 9\n"), job.stderr
    heads = [line for line in job.stderr.splitlines() if line.startswith("rank ")]
    assert sorted(line[:11] for line in heads) == ["rank 0 of 2", "rank 1 of 2"], job.stderr
    for line in heads:
        assert "the job goes on, Ctrl-C ends it, --watchdog SECONDS or CONTROLLERS_WATCHDOG" in line
    assert "in slow" in job.stderr


def test_the_variable_sets_a_limit_and_a_lost_computation_is_not_watched() -> None:
    program = HEAD + (
        "os.environ['CONTROLLERS_WATCHDOG'] = '300'\n"
        "import threading\n"
        "try:\n"
        "    with made(watchdog=None) as it:\n"
        "        assert it._watchdog._limit_s == 300\n"
        "        assert [t.name for t in threading.enumerate()].count('watchdog') == 1\n"
        "        raise KeyError\n"
        "except KeyError:\n"
        "    del it; gc.collect()\n"
        "for thread in threading.enumerate():\n"
        "    if thread.name == 'watchdog': thread.join(60)\n"
        "assert all(t.name != 'watchdog' for t in threading.enumerate())\n"
        "made(watchdog=1e10).close()\n"
        "made(watchdog=1e300).close()\n"
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
