# SPDX-License-Identifier: MIT
from __future__ import annotations

from mpi_jobs import run_ranks

from hitmap import SerialCommunicator
from hitmap.node import first_of_node

PROGRAM = """
from hitmap import default_communicator
from hitmap.node import first_of_node
comm = default_communicator()
assert first_of_node(comm, lambda: ("done by", comm.rank)) == ("done by", 0)
def fail(): raise OSError("disk full")
try:
    first_of_node(comm, fail)
except RuntimeError as error:
    assert str(error) == "OSError: disk full"
    comm.Barrier()
else:
    raise AssertionError(comm.rank)
"""


def test_one_rank_of_a_node_works_for_all_and_fails_for_all() -> None:
    assert first_of_node(SerialCommunicator(), lambda: 3) == 3
    job = run_ranks(3, PROGRAM)
    assert job.returncode == 0, job.stderr
