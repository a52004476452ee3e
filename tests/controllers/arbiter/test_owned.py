# SPDX-License-Identifier: MIT
"""A job that owns its nodes shares them among its ranks alone."""
from __future__ import annotations

from pathlib import Path

import pytest
from mpi_jobs import run_ranks

from controllers.arbiter import Arbiter, OwnedNodes, Want
from hitmap.comm import SerialCommunicator

CORES = [[Want(("core 0", "core 1"), 1, 2)]]
RANKS = """
import os, sys
from mpi4py import MPI
from controllers.arbiter import Arbiter, OwnedNodes, Want

comm, cores = MPI.COMM_WORLD, [[Want(("core 0", "core 1"))]]
with Arbiter() as outside:
    owned = OwnedNodes(comm, "a job")
    assert outside.request(cores).poll() is None
    with Arbiter(owned.folder) as inside:
        lease = inside.acquire(cores)
        given = comm.allgather(lease.units[0][0])
        comm.Barrier()
        assert inside.request(cores).poll() is None
        comm.Barrier()
        lease.release()
    owned.close()
    comm.Barrier()
    assert not owned.folder.exists()
    lease = outside.acquire_node() if comm.rank == 1 else None
    comm.Barrier()
    try:
        OwnedNodes(comm, timeout_s=0.01)
    except ValueError as error:
        assert "cannot be owned: the whole node did not come free within 0.01 s" in str(error)
        assert "(" in str(error) and "process" in str(error)
        sys.stdout.write(f"refused {sorted(given)}{os.linesep}")
    comm.Barrier()
"""


def test_ranks_of_a_job_share_what_it_owns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTROLLERS_ARBITER", str(tmp_path / "arbiter"))
    done = run_ranks(2, RANKS)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["refused ['core 0', 'core 1']"] * 2


def test_one_process_owns_a_node_unless_nobody_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTROLLERS_ARBITER", str(tmp_path / "arbiter"))
    with Arbiter() as arbiter:
        owned = OwnedNodes(SerialCommunicator())
        assert arbiter.request(CORES).poll() is None
        owned.close()
        with arbiter.acquire(CORES), pytest.raises(ValueError, match="held|process"):
            OwnedNodes(SerialCommunicator(), timeout_s=0)
        with arbiter.acquire_node(0):
            pass
    monkeypatch.setenv("CONTROLLERS_ARBITER", "off")
    owned = OwnedNodes(SerialCommunicator())
    assert owned.folder is None
    owned.close()
