# SPDX-License-Identifier: MIT
"""A rank that leaves, or fails before MPI has been started, ends the job; nothing else does."""
from __future__ import annotations

import os
import subprocess
import sys

import pytest
from mpi_jobs import run_ranks
from sample import sample

RANK = 'int(os.environ.get("PMI_RANK", os.environ.get("OMPI_COMM_WORLD_RANK", "0")))'
HEAD = f"import os, subprocess, sys, threading, time, controllers\nrank = {RANK}\n"
START = "from hitmap import default_communicator\ncomm = default_communicator()\n"

BEFORE_MPI = {
    "an exception": ("raise KeyError('boundary')", "KeyError: 'boundary', before MPI was started"),
    "sys.exit": ("sys.exit(2)", "ends with code 2 before MPI was started"),
    "a missing module": ("import no_such_module", "ModuleNotFoundError: No module named"),
    "a thread": (
        "t = threading.Thread(target=lambda: 1 / 0); t.start(); t.join(); time.sleep(100)",
        "ZeroDivisionError: division by zero, before MPI was started",
    ),
    "os._exit": ("os._exit(4)", "ends by os._exit(4) before MPI was started"),
    "raise": ("raise SystemExit(5)", "ends with code 5 before MPI was started"),
}


@pytest.mark.parametrize("how", sample(BEFORE_MPI, 3))
def test_a_rank_that_fails_before_mpi_ends_the_job(how: str) -> None:
    statement, message = BEFORE_MPI[how]
    job = run_ranks(2, f"{HEAD}if rank == 1:\n    {statement}\n{START}comm.Barrier()\n")
    assert job.returncode != 0
    assert "rank 1 of 2 on " in job.stderr
    assert message in job.stderr


SOUND = {
    "that never starts MPI": "sys.exit(0)",
    "that catches sys.exit": (
        "try: sys.exit('x')\n"
        "except SystemExit as error:\n"
        "    assert type(error) is SystemExit and error.code == 'x'\n"
        "    error.code = 7\n"
        "    assert error.code == 7\n"
        "    kept = error if rank == 1 else None\n"
        f"{START}"
        "if rank == 0: time.sleep(4)\n"     # more than the patience with a rank that failed
    ),
    "with a forked child whose thread fails": (
        f"{START}"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    t = threading.Thread(target=lambda: 1 / 0); t.start(); t.join(); os._exit(0)\n"
        "os.waitpid(child, 0)\n"
        "comm.Barrier()\n"
    ),
    "with a child process that fails": (
        "command = [sys.executable, '-c', 'import controllers, sys; sys.exit(3)']\n"
        "assert subprocess.run(command).returncode == 3\n"
    ),
    "whose ranks all end by os._exit": f"{START}os._exit(0)",
}


@pytest.mark.parametrize("job", sample(SOUND, 3))
def test_a_sound_job_ends_with_0(job: str) -> None:
    if "os._exit" in job and "MPICH" not in _library():
        pytest.skip("Open MPI's launcher takes that for a failure")
    ended = run_ranks(2, HEAD + SOUND[job])
    assert ended.returncode == 0, ended.stderr
    assert "rank " not in ended.stderr


def _library() -> str:
    from mpi4py import MPI

    return MPI.Get_library_version()


LEAVING = {
    "sys.exit": ("sys.exit(5)", 5, "rank 1 of 2 on .*: ends with code 5 while other ranks go on"),
    "os._exit": ("os._exit(0)", 1, "rank 1 of 2 on .*: ends by os._exit\\(0\\) while other ranks"),
    "raise": ("raise SystemExit(5)", 5, "rank 1 of 2 on .*: ends with code 5 while other ranks"),
    "a text": ("raise SystemExit('no')", 1, "rank 1 of 2 on .*: ends with code 1 while other"),
}


@pytest.mark.parametrize("how", sample(LEAVING, 3))
def test_a_rank_that_leaves_ends_the_job_with_its_code(how: str) -> None:
    import re

    statement, code, message = LEAVING[how]
    program = f"{HEAD}{START}comm.Barrier()\nif rank == 1:\n    {statement}\ncomm.Barrier()\n"
    job = run_ranks(2, program)
    assert job.returncode == code
    assert re.search(message, job.stderr), job.stderr


@pytest.mark.whole
def test_a_rank_that_raises_system_exit_ends_the_job() -> None:
    program = (
        f"{HEAD}{START}comm.Barrier()\n"
        "if rank == 1: raise SystemExit(5)\n"
        "controllers.Stencil.of('mean', [(-1, 1)], [1, 0, 1], 2)\n"
        "from hitmap import agree\n"
        "agree(comm, 'something', 3)\n"
    )
    job = run_ranks(2, program)
    assert job.returncode == 5
    assert "ends with code 5" in job.stderr


def test_the_hook_is_agreed_on() -> None:
    program = (
        f"import os\nrank = {RANK}\n"
        "if rank == 1: os.environ['CONTROLLERS_ABORT_HOOK'] = '0'\n"
        "import controllers\n"
        f"{START}"
        "from hitmap import agree\n"
        "try: agree(comm, 'something', 3)\n"
        "except ValueError as error: print(error)\n"
    )
    job = run_ranks(2, program)
    assert (job.returncode, job.stderr) == (0, "")
    said = "CONTROLLERS_ABORT_HOOK (0 or not) must be the same on all ranks"
    assert job.stdout.count(said) == 2


def test_importing_controllers_alone_changes_nothing() -> None:
    program = (
        "import os, sys, threading\n"
        "before = sys.excepthook, threading.excepthook, sys.exit, os._exit\n"
        "import controllers\n"
        "assert before == (sys.excepthook, threading.excepthook, sys.exit, os._exit)\n"
    )
    variables = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")
    environment = {name: text for name, text in os.environ.items() if name not in variables}
    for more in ({}, {"PMI_SIZE": "abc"}, {"PMI_SIZE": "1", "PMI_RANK": "0"}):
        job = subprocess.run(
            [sys.executable, "-c", program], env={**environment, **more},
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert (job.returncode, job.stderr) == (0, "")


def test_where_the_code_of_an_exit_cannot_be_seen_it_is_left_alone() -> None:
    script = """
import atexit, gc, sys
code = vars(SystemExit)["code"]
gc.get_referents = lambda *objects: []      # as other interpreters may have it
from hitmap.departure import watch_departure
watch_departure()
n_watchers = atexit._ncallbacks()
watch_departure()
assert vars(SystemExit)["code"] is code and atexit._ncallbacks() == n_watchers
sys.exit(3)
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ended.returncode == 3 and not ended.stderr, ended.stderr
