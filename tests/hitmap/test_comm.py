# SPDX-License-Identifier: MIT
from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from mpi_jobs import HANGS_S, SOON_S, run_group, run_ranks

from hitmap import SerialCommunicator, install_abort_hook, node_ranks
from hitmap.comm import receive, send

LAUNCHERS = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")


def run_alone(program: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a process that no launcher started, with `env` added."""
    alone = {name: text for name, text in os.environ.items() if name not in LAUNCHERS}
    return run_group([sys.executable, "-c", program], HANGS_S, {**alone, **env})


@pytest.fixture
def without_mpi(tmp_path: Path) -> str:
    """A PYTHONPATH on which mpi4py finds no MPI library."""
    (tmp_path / "mpi4py").mkdir()
    (tmp_path / "mpi4py" / "__init__.py").write_text("class rc: initialize = True\n")
    (tmp_path / "mpi4py" / "MPI.py").write_text("raise RuntimeError('cannot load MPI library')\n")
    return os.pathsep.join([str(tmp_path), *filter(None, sys.path)])


def test_importing_the_package_does_not_load_mpi() -> None:
    job = run_alone("import hitmap, sys; assert not any('mpi4py' in m for m in sys.modules)")
    assert job.returncode == 0, job.stderr


def test_a_process_without_an_mpi_library_is_rank_0_of_1(without_mpi: str) -> None:
    program = "import hitmap; comm = hitmap.default_communicator(); print(comm.rank, comm.size)"
    job = run_alone(program, PYTHONPATH=without_mpi)
    assert (job.returncode, job.stdout) == (0, "0 1\n"), job.stderr


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_several_processes_without_an_mpi_library_are_refused(
    without_mpi: str, launcher: str
) -> None:
    program = "import hitmap; hitmap.default_communicator()"
    job = run_alone(program, **{launcher: "4", "PYTHONPATH": without_mpi})
    assert job.returncode == 1
    assert "started 4 processes, but mpi4py finds no MPI library" in job.stderr
    assert "cannot load MPI library" in job.stderr


def test_the_launcher_of_another_mpi_library_is_refused() -> None:
    job = run_alone("import hitmap; hitmap.default_communicator()", OMPI_COMM_WORLD_SIZE="2")
    assert job.returncode == 1
    assert "started 2 processes, but MPI sees 1; use the mpiexec" in job.stderr


def test_a_serial_communicator_holds_what_one_rank_holds() -> None:
    comm = SerialCommunicator()
    assert comm.bcast("a") == "a"
    assert comm.gather(3) == comm.allgather(3) == [3]
    comm.Barrier()
    other = comm.Dup()
    assert (other.rank, other.size, node_ranks(other)) == (0, 1, (0, 1))
    other.Free()


def test_a_serial_communicator_has_nobody_to_talk_to() -> None:
    comm = SerialCommunicator()
    with pytest.raises(ValueError, match="only rank 0, got 1"):
        comm.bcast(None, root=1)
    with pytest.raises(ValueError, match="only rank 0, got 2"):
        send(comm, np.zeros(3), target=2)
    for call in (comm.Send, comm.Recv, comm.Send_init, comm.Recv_init):
        with pytest.raises(ValueError, match="sends no messages"):
            call(np.zeros(3), 0)


def test_a_serial_communicator_ends_its_process() -> None:
    program = "import hitmap; print('so far'); hitmap.SerialCommunicator().Abort(7)"
    job = run_alone(program)
    assert (job.returncode, job.stdout) == (7, "so far\n")


MESSAGES = """
import numpy as np
from hitmap import default_communicator, node_ranks
from hitmap.comm import receive, send
comm = default_communicator()
assert comm.size == 2 and node_ranks(comm) == (comm.rank, 2)
record = np.dtype([("a", "f4"), ("b", "i8")])
if comm.rank == 0:
    send(comm, np.arange(6, dtype="f8").reshape(2, 3), 1)
    send(comm, np.array([(1.5, 2)], record), 1)
    send(comm, np.arange(2, dtype="f8"), 1, tag=5)
else:
    whole, one, short = np.zeros((2, 3)), np.zeros(1, record), np.zeros(3)
    receive(comm, whole, 0)
    receive(comm, one, 0)
    assert whole.tolist() == [[0, 1, 2], [3, 4, 5]] and one[0].item() == (1.5, 2)
    try:
        receive(comm, short, 0, tag=5)
    except RuntimeError as error:
        print(error)
"""


def test_messages_arrive_whole_or_are_refused() -> None:
    job = run_ranks(2, MESSAGES)
    assert job.returncode == 0, job.stderr
    assert "from rank 0 with tag 5 must have 24 bytes, got 16" in job.stdout


def test_messages_are_contiguous() -> None:
    with pytest.raises(ValueError, match="contiguous"):
        send(SerialCommunicator(), np.zeros((4, 4))[:, 1], target=1)


FAILURES = {
    "in the main thread": ("raise KeyError('boundary')", "KeyError: 'boundary'"),
    "in another thread": (
        "import threading\n"
        "    def work(): raise OSError('disk full')\n"
        "    threading.Thread(target=work).start()",
        "OSError: disk full",
    ),
    "by Ctrl-C": ("raise KeyboardInterrupt", "KeyboardInterrupt"),
}


@pytest.mark.parametrize("where", FAILURES)
def test_an_exception_on_one_rank_ends_the_job_and_is_named(where: str) -> None:
    statement, error = FAILURES[where]
    program = (
        "from hitmap import default_communicator, install_abort_hook\n"
        "install_abort_hook()\n"
        "comm = default_communicator()\n"
        "comm.Barrier()\n"
        f"if comm.rank == 1:\n    {statement}\n"
        "comm.Barrier()\n"
    )
    start = time.monotonic()
    job = run_ranks(2, program)
    assert time.monotonic() - start < SOON_S
    assert job.returncode != 0
    assert "rank 1 of 2 on " in job.stderr
    assert error in job.stderr
    assert "Traceback (most recent call last)" in job.stderr
    assert "rank 0 of 2" not in job.stderr


def test_a_thread_may_end_by_system_exit() -> None:
    program = (
        "import sys, threading\n"
        "from hitmap import default_communicator, install_abort_hook\n"
        "install_abort_hook()\n"
        "comm = default_communicator()\n"
        "thread = threading.Thread(target=sys.exit)\n"
        "thread.start(); thread.join()\n"
        "comm.Barrier()\n"
    )
    job = run_ranks(2, program)
    assert (job.returncode, job.stderr) == (0, "")


@pytest.mark.parametrize("setting", ["1", "0"])
def test_a_process_that_is_alone_keeps_its_hook(setting: str) -> None:
    program = (
        "import sys, hitmap\n"
        "sys.excepthook = lambda kind, error, trace: print('mine:', error)\n"
        "mine = sys.excepthook\n"
        "hitmap.install_abort_hook(); hitmap.install_abort_hook()\n"
        "print(sys.excepthook is mine, 'mpi4py' in sys.modules)\n"
        "raise ValueError('three')\n"
    )
    job = run_alone(program, CONTROLLERS_ABORT_HOOK=setting)
    assert job.stdout == f"{setting == '0'} False\nmine: three\n"
    assert (job.returncode, job.stderr) == (1, "")


def test_the_hook_is_installed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    monkeypatch.delenv("CONTROLLERS_ABORT_HOOK", raising=False)
    install_abort_hook()
    hooks = sys.excepthook, threading.excepthook
    install_abort_hook()
    assert (sys.excepthook, threading.excepthook) == hooks


def test_a_job_that_hangs_is_killed() -> None:
    start = time.monotonic()
    with pytest.raises(subprocess.TimeoutExpired):
        run_ranks(2, "import time; time.sleep(3600)", timeout=1)
    assert time.monotonic() - start < SOON_S


def test_a_receive_needs_another_process() -> None:
    with pytest.raises(ValueError, match="only rank 0, got 1"):
        receive(SerialCommunicator(), np.zeros(3), source=1)
