# SPDX-License-Identifier: MIT
from __future__ import annotations

import pytest
from mpi_jobs import run_ranks

from hitmap import SerialCommunicator, agree, raise_together

ODD_RANK = """
from hitmap import agree, default_communicator, raise_together
comm = default_communicator()
assert comm.size == 3
agree(comm, "dtype", "float32")
raise_together(comm, None)
errors = []
for check in (
    lambda: agree(comm, "dtype", "float64" if comm.rank == 1 else "float32"),
    lambda: raise_together(comm, "file not found" if comm.rank == 2 else None),
):
    try:
        check()
    except ValueError as error:
        errors.append(str(error))
everyone = comm.gather(errors)
if comm.rank == 0:
    assert everyone == [errors] * 3
    print(*errors, sep="\\n")
"""


def test_one_process_agrees_with_itself() -> None:
    agree(SerialCommunicator(), "sizes", (3, 4))
    raise_together(SerialCommunicator(), None)
    with pytest.raises(ValueError, match="^no such field"):
        raise_together(SerialCommunicator(), "no such field")


def test_all_ranks_raise_the_same_error_that_names_the_odd_one() -> None:
    job = run_ranks(3, ODD_RANK)
    assert job.returncode == 0, job.stderr
    assert job.stdout.splitlines() == [
        "dtype must be the same on all ranks: most have 'float32', rank 1 has 'float64'",
        "rank 2: file not found",
    ]
