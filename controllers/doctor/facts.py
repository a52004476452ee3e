# SPDX-License-Identifier: MIT
"""What there is on every node of a job, as plain values; nothing is judged here."""
from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from controllers import __version__
from controllers.device import Verdict, probe
from controllers.device.child import kernel_cache_folder
from controllers.doctor.kernel_cache import damaged
from controllers.estimates.estimates import estimates_folder
from controllers.kernel.build_cache import cache_folder
from controllers.kernel.winners import winners_folder
from controllers.links.kept_links import links_folder
from controllers.process.entry_cache import user_folder
from controllers.process.private_folder import exposure
from hitmap.comm import Communicator, mpi_library
from hitmap.launcher import Launcher, launcher
from hitmap.node import first_of_node
from hitmap.segment import room

_PACKAGES = ("numpy", "pyopencl", "mpi4py", "pocl-binary-distribution", "mpich", "openmpi")
POCL_CACHE = "PoCL's kernels"
_CGROUP = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Cache:
    """A folder that keeps something from run to run; `problem` is empty if it can be written.

    untrusted: why others may have put something there.  damaged: files that are no use, and why.
    """

    name: str
    folder: str
    problem: str
    free_bytes: int
    untrusted: str = ""
    damaged: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rank:
    """A rank, and the cores that it may use."""

    rank: int
    cores: frozenset[int]


@dataclass(frozen=True)
class HostFacts:
    """A host, and the ranks on it; `cores` is how many there are without binding."""

    host: str
    ranks: tuple[Rank, ...]
    versions: dict[str, str]
    verdicts: tuple[Verdict, ...]
    caches: tuple[Cache, ...]
    memory_bytes: int
    free_bytes: int
    cores: int
    variables: dict[str, str]
    shared_bytes: int | None = None     # free in /dev/shm


@dataclass(frozen=True)
class Facts:
    """A job: its nodes, and how it was started.

    library: the version text of the MPI library.  mpiexec: the one on PATH and its version text,
    looked at only in a process that no launcher started.
    """

    size: int
    launcher: Launcher | None
    library: str
    mpiexec: tuple[str, str]
    nodes: tuple[HostFacts, ...]


def gather_facts(comm: Communicator) -> Facts | None:
    """The facts of all nodes, on rank 0; drivers are tried again.  Collective."""
    first, node = first_of_node(comm, lambda: (comm.rank, _node()))
    mine = (first, Rank(comm.rank, frozenset(os.sched_getaffinity(0))))
    everyone = comm.gather((*mine, node if first == comm.rank else None))
    if everyone is None:
        return None
    nodes = [
        replace(found, ranks=tuple(rank for at, rank, _ in everyone if at == leader))
        for leader, _, found in everyone
        if found is not None
    ]
    started = launcher()
    mpiexec = ("", "") if started else _mpiexec()
    return Facts(comm.size, started, mpi_library(), mpiexec, tuple(nodes))


def _node() -> HostFacts:
    """This node, its ranks still unknown."""
    memory_bytes, free_bytes = _memory()
    watched = ("POCL_", "OCL_", "PYOPENCL_", "AMD_OCL_", "CONTROLLERS_")
    verdicts = tuple(probe(fresh=True))
    return HostFacts(
        host=socket.gethostname(),
        ranks=(),
        versions=_versions(),
        verdicts=verdicts,
        caches=_caches(verdicts),
        memory_bytes=memory_bytes,
        free_bytes=free_bytes,
        cores=_cores(),
        variables={k: v for k, v in sorted(os.environ.items()) if k.startswith(watched)},
        shared_bytes=room(),
    )


def _versions() -> dict[str, str]:
    found = {"controllers": __version__, "Python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:     # a site's own MPI, for example
            continue
    return found


def _mpiexec() -> tuple[str, str]:
    path = shutil.which("mpiexec")
    if path is None:
        return "", ""
    try:
        job = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=10, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return path, str(error)
    return path, job.stdout + job.stderr


def _caches(verdicts: Sequence[Verdict]) -> tuple[Cache, ...]:
    of_pocl = kernel_cache_folder()
    damage = damaged(of_pocl, verdicts) if not exposure(of_pocl) else []
    folders = [
        ("kernels", cache_folder()),
        ("verdicts on drivers", user_folder("drivers")),
        ("tuning", winners_folder()),
        ("links", links_folder()),
        ("estimates", estimates_folder()),
    ]
    ours = (_cache(name, folder) for name, folder in folders if folder is not None)
    return (replace(_cache(POCL_CACHE, of_pocl), damaged=tuple(damage)), *ours)


def _cache(name: str, folder: Path) -> Cache:
    untrusted = exposure(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryFile(dir=folder):
            pass
        return Cache(name, str(folder), "", shutil.disk_usage(folder).free, untrusted)
    except OSError as error:
        return Cache(name, str(folder), error.strerror or str(error), 0)


def _memory() -> tuple[int, int]:
    """Bytes of this host and those free, as far as this process may use them."""
    lines = Path("/proc/meminfo").read_text("ascii").splitlines()
    amounts = {line.split(":")[0]: int(line.split()[1]) << 10 for line in lines if " kB" in line}
    total, free = amounts["MemTotal"], amounts.get("MemAvailable", amounts["MemFree"])
    limit = _cgroup("memory.max")
    if limit.isdigit():
        used = _cgroup("memory.current")
        total = min(total, int(limit))
        free = min(free, int(limit) - int(used or 0))
    return total, free


def _cores() -> int:
    """How many cores this process could use if it were not bound to some."""
    allowed = _cgroup("cpuset.cpus.effective")
    if not allowed:
        return os.cpu_count() or 1
    ends = [part.split("-") for part in allowed.split(",")]
    return sum(int(end[-1]) - int(end[0]) + 1 for end in ends)


def _cgroup(name: str) -> str:
    """A limit of this process's control group; empty if there is none."""
    try:
        own = Path("/proc/self/cgroup").read_text("ascii").partition("0::/")[2].strip()
        return (_CGROUP / own / name).read_text("ascii").strip()
    except OSError:
        return ""
