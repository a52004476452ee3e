# SPDX-License-Identifier: MIT
from __future__ import annotations

import pytest

from hitmap.launcher import Launcher, launcher, library_name

MPICH = "MPICH Version:      5.0.2\nMPICH Release date: ..."
OPEN = "Open MPI v5.0.11, package: Open MPI user@localhost Distribution"


def test_a_process_started_alone_has_no_launcher() -> None:
    assert launcher({"PATH": "/usr/bin", "SLURM_JOB_ID": "7"}) is None


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"PMI_SIZE": "3", "PMI_RANK": "2"}, Launcher("MPICH or PMI", 3, 2)),
        ({"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "1"}, Launcher("Open MPI", 2, 1)),
        ({"SLURM_STEP_NUM_TASKS": "8", "SLURM_PROCID": "5"}, Launcher("Slurm", 8, 5)),
        ({"PMI_SIZE": "4", "SLURM_STEP_NUM_TASKS": "2"}, Launcher("MPICH or PMI", 4, 0)),
    ],
)
def test_a_launcher_is_known_by_its_variables(
    environment: dict[str, str], expected: Launcher
) -> None:
    assert launcher(environment) == expected


def test_mpich_refuses_the_launcher_of_open_mpi_and_no_other() -> None:
    assert Launcher("Open MPI", 2, 0).refused_by(MPICH)
    assert not Launcher("Open MPI", 2, 0).refused_by(OPEN)
    assert not Launcher("MPICH or PMI", 2, 0).refused_by(OPEN)
    assert library_name(MPICH) == "MPICH"
    assert library_name("mpirun (Open MPI) 4.1.4") == "Open MPI"
    assert library_name("Intel(R) MPI Library 2021.12") == "Intel MPI"
