# SPDX-License-Identifier: MIT
"""Shared memory of MPI: jobs leave none, however they end; too little of it is an error."""
from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from mpi_jobs import run_ranks

from hitmap import segment

ENDINGS = {
    "of itself": "",
    "by an exception": "if comm.rank == 1: raise KeyError",
    "by SIGKILL": "if comm.rank == 1: os.kill(os.getpid(), 9)",
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_job_leaves_no_segment(ending: str) -> None:
    program = (
        "import os, controllers\n"
        "from hitmap import default_communicator\n"
        "comm = default_communicator()\n"
        "comm.Barrier()\n"
        "maps = open('/proc/self/maps').read().split()\n"
        "mapped = {word for word in maps if word.startswith('/dev/shm/mpich')}\n"
        "print(*mapped, flush=True)\n"
        "comm.Barrier()\n"
        f"{ENDINGS[ending]}\n"
        "comm.Barrier()\n"
    )
    job = run_ranks(2, program)
    assert (job.returncode == 0) == (not ENDINGS[ending]), job.stderr
    assert not any(Path(name).exists() for name in job.stdout.split())


def test_too_little_shared_memory_is_an_error_before_mpi_starts() -> None:
    program = (
        "import hitmap.segment\n"
        "hitmap.segment.NEED_PER_RANK = 1 << 50\n"
        "import controllers, sys\n"
        "from hitmap import default_communicator\n"
        "try: default_communicator()\n"
        "except RuntimeError as error: print(error)\n"
    )
    job = run_ranks(2, program)
    assert job.returncode == 0, job.stderr
    assert job.stdout.count("MB free, this job needs") == 2
    assert "--shm-size" in job.stdout


def test_the_ranks_of_this_host_count(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(segment, "FOLDER", tmp_path)
    monkeypatch.setattr(segment, "room", lambda: 3 * segment.NEED_PER_RANK)
    segment.check_room(3, {})
    segment.check_room(64, {"MPI_LOCALNRANKS": "2"})
    with pytest.raises(segment.NoRoomError, match=r"18.9 MB free, this job needs 25.2 MB; remove"):
        segment.check_room(4, {})
    monkeypatch.setattr(segment, "room", lambda: None)
    segment.check_room(4, {})


def test_only_segments_that_nobody_uses_are_removed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(segment, "FOLDER", tmp_path)
    names = ("mpich_shm_1_0", "sm_segment.host.0.1.0", "mpich_shm_2_0", "other", "mpich_shm_used")
    for name in names:
        (tmp_path / name).write_bytes(bytes(9))
        if name != "mpich_shm_2_0":     # just made: a job may be about to map it
            os.utime(tmp_path / name, (time.time() - 1000,) * 2)
    import mmap

    with open(tmp_path / "mpich_shm_used", "r+b") as file, mmap.mmap(file.fileno(), 9):
        segment.remove_stale()
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == ["mpich_shm_2_0", "mpich_shm_used", "other"]
