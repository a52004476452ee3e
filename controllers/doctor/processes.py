# SPDX-License-Identifier: MIT
"""What the facts mean for processes: MPI and who starts it, ranks and their cores."""
from __future__ import annotations

from collections.abc import Iterator

from controllers.device import Device
from controllers.doctor.facts import Facts, HostFacts
from controllers.doctor.finding import Finding
from hitmap.launcher import OPEN_MPI, library_name, own_mpiexec


def mpi(facts: Facts) -> Iterator[Finding]:
    """Whether the MPI library and the launcher agree."""
    if not facts.library:
        yield _without_library(facts)
        return
    library = facts.library.splitlines()[0].partition(",")[0]
    version = " ".join(library.replace("Version:", "").split())
    started = facts.launcher
    if started is None:
        yield _on_path(facts, version)
    elif started.size != facts.size:
        yield Finding(
            "error", "mpi",
            f"the launcher of {started.name} started {started.size} processes, but mpi4py uses "
            f"{version}, which sees {facts.size}",
            "Each process would do all the work, or MPI would abort them.",
            f"start them with {own_mpiexec(facts.library)}",
        )  # fmt: skip
    elif started.refused_by(facts.library):
        yield Finding(
            "error", "mpi", f"the launcher of {started.name} cannot start {version}",
            "MPI would abort the processes.", f"start them with {own_mpiexec(facts.library)}",
        )  # fmt: skip
    else:
        ranks = "1 rank" if facts.size == 1 else f"{facts.size} ranks"
        hosts = "1 host" if len(facts.nodes) == 1 else f"{len(facts.nodes)} hosts"
        yield Finding("ok", "mpi", f"{version}, {ranks} on {hosts}")


def _without_library(facts: Facts) -> Finding:
    several = facts.launcher is not None and facts.launcher.size > 1
    return Finding(
        "error" if several else "warning", "mpi", "mpi4py finds no MPI library",
        "Processes cannot form a job; one process alone works.",
        "pip install mpich, or load the MPI module of this cluster",
    )  # fmt: skip


def _on_path(facts: Facts, version: str) -> Finding:
    path, told = facts.mpiexec
    own, wanted = own_mpiexec(facts.library), library_name(facts.library)
    if library_name(told) == wanted:
        return Finding("ok", "mpi", f"{version}; {path} starts its ranks")
    if not path:
        has_own = "/" in own
        return Finding(
            "ok" if has_own else "warning", "mpi",
            f"{version}; {own} starts its ranks" if has_own else f"{version}; no mpiexec on PATH",
            "" if has_own else "Only one process can be started.",
            "" if has_own else f"put {own} on PATH",
        )  # fmt: skip
    return Finding(
        "warning", "mpi",
        f"mpi4py uses {version}, but {path} is the mpiexec of {library_name(told)}",
        "It would start processes that do not see each other, or that MPI aborts.",
        f"use {own}",
    )  # fmt: skip


def binding(facts: Facts, node: HostFacts) -> Iterator[Finding]:
    """Whether each rank has the cores that it computes with."""
    n_local = len(node.ranks)
    units = [t.device.compute_units for v in node.verdicts for t in v.tried if _is_cpu(t.device)]
    n_threads = max(units, default=0) // n_local
    fewest = min(node.ranks, key=lambda rank: (len(rank.cores), rank.rank))
    used = len(frozenset().union(*(rank.cores for rank in node.ranks)))
    if len(fewest.cores) < n_threads:
        yield Finding(
            "warning", "binding",
            f"rank {fewest.rank} is bound to {_cores(len(fewest.cores))}, for {n_threads} threads "
            f"of the CPU device",
            "PoCL ignores the binding when it counts its cores; the threads then take turns.",
            _unbind(facts),
        )  # fmt: skip
    elif used < min(n_local, node.cores):
        yield Finding(
            "warning", "binding", f"{n_local} ranks share {_cores(used)}",
            "They take turns.", _unbind(facts),
        )  # fmt: skip
    else:
        ranks = "1 process" if n_local == 1 else f"{n_local} ranks"
        yield Finding("ok", "binding", f"{ranks} on {_cores(used)}")
    if n_local > 1 and node.variables.get("POCL_AFFINITY", "0") != "0":
        yield Finding(
            "warning", "binding", f"POCL_AFFINITY is set and {n_local} ranks share a host",
            "PoCL then pins the first thread of every rank to core 0: half the speed was measured.",
            "unset POCL_AFFINITY",
        )  # fmt: skip


def _is_cpu(device: Device) -> bool:
    return device.kind == "cpu"


def _cores(count: int) -> str:
    return "1 core" if count == 1 else f"{count} cores"


def _unbind(facts: Facts) -> str:
    started = facts.launcher
    if started is None:
        return "start it without taskset, or set POCL_MAX_PTHREAD_COUNT to the number of cores"
    if started.name == OPEN_MPI:
        return "mpiexec --bind-to none ..."
    return "srun --cpu-bind=none ..." if started.name == "Slurm" else "mpiexec -bind-to none ..."
