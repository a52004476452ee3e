# SPDX-License-Identifier: MIT
"""Tests start their own MPI jobs with this helper, so that plain `pytest` runs all of them.

A job that hangs is killed with all its processes, and fails the test.  It works with MPICH and
with Open MPI, as root too, and with more ranks than cores.
"""
from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

HANGS_S = 300   # a job that has not ended by then, on however busy a machine, never will
SOON_S = 60     # what ends at once, and not after somebody's time limit, has ended by then

# What Open MPI (4: OMPI_*, 5: PRTE_*) needs as root in a container with few cores; ranks that wait
# leave these to the others (MPICH: MPIR_*), which several jobs at a time share with the tests; and
# ranks write whole lines (PYTHON*), where this process writes each word at once.
_LAUNCHER_ENVIRONMENT = {
    "PYTHONUNBUFFERED": "",
    "MPIR_CVAR_ENABLE_HEAVY_YIELD": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}


def find_mpiexec() -> str:
    """Path of `mpiexec`: the one beside this Python if there is one, else the one on PATH."""
    beside = str(Path(sys.executable).parent)
    found = shutil.which("mpiexec", path=beside) or shutil.which("mpiexec")
    if found is None:
        raise FileNotFoundError(f"no mpiexec in {beside} nor on PATH; pip install mpich")
    return found


def run_ranks(
    n: int,
    script_or_args: str | Path | Sequence[str],
    timeout: float = HANGS_S,
    env: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run Python on `n` ranks; wait until the job ends and return its code, stdout and stderr.

    `script_or_args` is the text of a program, the Path of one, or the interpreter's arguments
    (`["-m", "controllers", "run", ...]`).  `env` is added to this process's environment, which
    the ranks inherit.  After `timeout` seconds every process of the job is killed and
    `subprocess.TimeoutExpired`, with the output so far, is raised.
    """
    with tempfile.TemporaryDirectory() as folder:
        if isinstance(script_or_args, str):
            program = Path(folder) / "program.py"
            program.write_text(script_or_args, encoding="utf-8")
            arguments = [str(program)]
        elif isinstance(script_or_args, Path):
            arguments = [str(script_or_args)]
        else:
            arguments = list(script_or_args)
        command = [find_mpiexec(), "-n", str(n), sys.executable, *arguments]
        return run_group(command, timeout, {**os.environ, **_LAUNCHER_ENVIRONMENT, **(env or {})})


def run_parts(
    parts: Sequence[Sequence[str]], timeout: float = HANGS_S
) -> subprocess.CompletedProcess[str]:
    """As `run_ranks`, one rank for each of `parts`, which are arguments of the interpreter."""
    ranks = [word for part in parts for word in (":", "-n", "1", sys.executable, *part)]
    command = [find_mpiexec(), *ranks[1:]]
    return run_group(command, timeout, {**os.environ, **_LAUNCHER_ENVIRONMENT})


def helpers_path(*folders: Path) -> dict[str, str]:
    """The `env` of a job whose program imports these helpers, or modules of other `folders`."""
    paths = [*map(str, folders), str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    return {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


def run_group(
    command: Sequence[str], timeout: float, env: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run `command` in a session of its own, which is killed as a whole after `timeout` seconds."""
    with subprocess.Popen(
        command,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as job:
        try:
            stdout, stderr = job.communicate(timeout=timeout)
        except BaseException as error:  # KeyboardInterrupt too: leave no process behind
            _kill(job)
            stdout, stderr = job.communicate()
            if isinstance(error, subprocess.TimeoutExpired):
                raise subprocess.TimeoutExpired(command, timeout, stdout, stderr) from None
            raise
        return subprocess.CompletedProcess(list(command), job.returncode, stdout, stderr)


def _kill(job: subprocess.Popen[str]) -> None:
    """End a job: ask the launcher, which ends its ranks, then kill what is left of the session."""
    job.send_signal(signal.SIGTERM)
    try:
        job.wait(timeout=2)
    except subprocess.TimeoutExpired:
        pass
    for group in {job.pid, *_groups_of_session(job.pid)}:
        try:
            os.killpg(group, signal.SIGKILL)
        except ProcessLookupError:
            pass


def _groups_of_session(session: int) -> set[int]:
    """Process groups of a session (launchers give each rank a group of its own); Linux only."""
    groups = set()
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:  # the process has ended meanwhile
            continue
        if int(fields[3]) == session:
            groups.add(int(fields[2]))
    return groups
