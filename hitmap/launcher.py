# SPDX-License-Identifier: MIT
"""Who started this process: launchers of MPI jobs tell it the size of its job by the environment.

They say so whether or not the MPI library of the process understands them; where it does not,
every process believes to be alone, or MPI aborts it.
"""
from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

OPEN_MPI = "Open MPI"
# The first that is a number counts: the processes of MPICH's mpiexec within a Slurm job have both.
PMI, SLURM = "MPICH or PMI", "Slurm"
_VARIABLES = (
    (PMI, "PMI_SIZE", "PMI_RANK"),
    (OPEN_MPI, "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
    ("MVAPICH", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"),
    (SLURM, "SLURM_STEP_NUM_TASKS", "SLURM_PROCID"),
)
# What starts the ranks of a host: Open MPI 5's, 4's; mpiexec and mpirun are links to the first.
_OPEN_MPI_PARENTS = ("prterun", "prted", "orterun", "orted", "mpiexec", "mpirun")


@dataclass(frozen=True)
class Launcher:
    """A launcher: whose it is, how many processes it started, and which of them this one is."""

    name: str
    size: int
    rank: int

    def refused_by(self, library: str) -> bool:
        """Whether the MPI library with this version text would abort a process started so."""
        return self.name == OPEN_MPI and library_name(library) in ("MPICH", "Intel MPI")

    def holds_this_process(self, environment: Mapping[str, str] = os.environ) -> bool:
        """Whether it started this very process, as far as that shows, and not a parent of it.

        A child of a rank inherits the variables, but neither MPICH's connection to the launcher
        nor the parent.
        """
        if self.name == PMI:
            return "PMI_PORT" in environment or _is_socket(environment.get("PMI_FD", ""))
        if self.name == SLURM:
            return environment.get("SLURM_TASK_PID", str(os.getpid())) == str(os.getpid())
        return self.name != OPEN_MPI or _parent() in _OPEN_MPI_PARENTS


def launcher(environment: Mapping[str, str] = os.environ) -> Launcher | None:
    """The launcher of this process; None where it was started alone.

    >>> launcher({"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "1"})
    Launcher(name='Open MPI', size=4, rank=1)
    """
    for name, size, rank in _VARIABLES:
        if _is_number(environment.get(size, "")):
            number = environment.get(rank, "")
            n_ranks = max(1, int(environment[size]))
            return Launcher(name, n_ranks, int(number) if _is_number(number) else 0)
    return None


def _parent() -> str:
    try:
        return Path(f"/proc/{os.getppid()}/comm").read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 10


def _is_socket(descriptor: str) -> bool:
    try:
        return _is_number(descriptor) and stat.S_ISSOCK(os.fstat(int(descriptor)).st_mode)
    except OSError:
        return False


def library_name(version: str) -> str:
    """Whose MPI library, or whose mpiexec, prints this version text.

    >>> library_name("HYDRA build details: ..."), library_name("Open MPI v5.0.11, package ...")
    ('MPICH', 'Open MPI')
    """
    words = (
        ("open mpi", OPEN_MPI), ("open-mpi", OPEN_MPI), ("openrte", OPEN_MPI),
        ("intel", "Intel MPI"), ("mvapich", "MVAPICH"), ("mpich", "MPICH"), ("hydra", "MPICH"),
    )  # fmt: skip
    return next((name for word, name in words if word in version.lower()), "unknown")


def own_mpiexec(library: str) -> str:
    """How to call the mpiexec that belongs to the library with this version text."""
    beside = shutil.which("mpiexec", path=str(Path(sys.executable).parent))
    return beside or f"the mpiexec of {library_name(library)}"
