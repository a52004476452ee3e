# SPDX-License-Identifier: MIT
"""Large messages between ranks of a machine: read where they lie, or else brought by MPI."""
from __future__ import annotations

import pytest
from mpi_jobs import run_ranks

HEAD = """
import numpy as np
from controllers.device.event import COMPLETE, is_complete
from collections import deque
from controllers.engine import large_message as large
from controllers.engine.large_message import LargeMessage
from controllers.engine.host_work import Assistants
from controllers.engine.network import MessageEnd, WrongLength
from hitmap import default_communicator
comm = default_communicator()
other, by_mpi, lines = 1 - comm.rank, [], {}
class Counted(MessageEnd):
    def __init__(self, comm, runs, *args, **options):
        by_mpi.append(len(runs))
        super().__init__(comm, runs, *args, **options)
def made(runs, tag, sends):
    line = lines.setdefault((tag, sends), deque())
    return LargeMessage(Assistants(3), line, comm, runs, other, tag, sends=sends, name="rows")
"""

AGAIN = HEAD + """
sizes = (100_000, 7, 33_333)
def pass_some(n_times, right):
    runs = [[np.zeros(n, kind) for n in sizes] for kind in ("float64", "float32")]
    large.MessageEnd = Counted
    by_mpi.clear()
    # one each way, by tags in which others count the other way
    messages = [made(some, tag, sends=comm.rank == tag) for tag, some in enumerate(runs)]
    assert all(is_complete(message) for message in messages)
    for number in range(1, n_times + 1):
        for cells in runs[comm.rank]:
            cells[...] = number + 1 / np.arange(1, cells.size + 1)
        events = [message(None) for message in messages]
        profiles = [event.profile for event in events]
        for event in events:
            event.wait()
            assert event.command_execution_status == COMPLETE
        assert all(profile.end > profile.start > 0 for profile in profiles)
        for cells in runs[other]:
            assert (cells == (number + 1 / np.arange(1, cells.size + 1)).astype(cells.dtype)).all()
        comm.Barrier()      # who sends next overwrites nothing that is looked at
    for message in messages:
        message.close()
    assert by_mpi.count(3) == right, by_mpi     # messages of all runs
    comm.Barrier()
here, cells, trial, allowed = large.machine(), np.ones(9), np.zeros(9), True
large.let_siblings_read()
process, address = comm.allgather((large.os.getpid(), cells.ctypes.data))[other]
try:
    large.read_memory(process, address, trial)
    assert here and trial.all()
except PermissionError:
    allowed = False     # by this system
allowed = all(comm.allgather(allowed))
pass_some(4, 0 if allowed else 2)
large.machine = lambda: here + comm.rank      # another machine
pass_some(3, 2)
large.machine = lambda: 0
pass_some(2, 2)
large.machine = lambda: here
getpid, large.os.getpid = large.os.getpid, lambda: 1 if comm.rank else getpid()
read = large.read_memory
def refused(process, address, into):
    if process == 1:
        raise PermissionError("not ours")
    read(process, address, into)
large.read_memory = refused                   # what rank 1 sends
pass_some(3, 1 if allowed else 2)
print("right", flush=True)
"""

IN_TURN = HEAD + """
here = large.machine()
for how in (here, here + comm.rank):
    large.machine = lambda: how
    lines.clear()
    cells = [np.full(n, float(comm.rank)) for n in (9_000_000, 5, 70_000)]
    messages = [made([one], 3, comm.rank == 0) for one in cells]
    for number in range(3):
        for one in cells if comm.rank == 0 else ():
            one += one.size + number
        for message in messages:
            message(None)
        assert messages[2].command_execution_status != COMPLETE
        messages[2].wait()      # nobody asks after the others
        assert all(is_complete(message) for message in messages)
        right = [len(one) * (number + 1) + sum(range(number + 1)) for one in cells]
        assert all((one == n).all() for one, n in zip(cells, right)), (number, cells)
        comm.Barrier()
    for message in messages:
        message.close()
print("right", flush=True)
"""

WRONG = HEAD + """
message = made([np.zeros(9)] * (2 + comm.rank), 0, sends=comm.rank == 0)
message(None)
try:
    message.wait() if comm.rank else None
except WrongLength as error:
    print(error, flush=True)
comm.Barrier()
comm.Abort(3)
"""


def test_messages_are_read_where_they_lie_or_come_by_mpi() -> None:
    job = run_ranks(2, AGAIN)
    assert job.returncode == 0, job.stderr
    assert job.stdout.count("right") == 2


def test_those_of_one_tag_are_under_way_one_after_another() -> None:
    job = run_ranks(2, IN_TURN)
    assert job.returncode == 0, job.stderr
    assert job.stdout.count("right") == 2


@pytest.mark.whole
def test_ranks_that_plan_otherwise_are_told() -> None:
    job = run_ranks(2, WRONG)
    assert job.returncode != 0
    assert "rows from rank 0 to rank 1" in job.stdout and "same program" in job.stdout
