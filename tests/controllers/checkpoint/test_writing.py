# SPDX-License-Identifier: MIT
"""Checkpoints that cannot be written: one error on all ranks, and those before are as they were."""
from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from full_disk import full_disk
from kept_programs import PROGRAMS, alike, cells_of, ran
from mpi_jobs import helpers_path, run_ranks

import controllers as ct

SOME = ct.every(steps=4)
FULL_ON_RANK_1 = """import resource, sys
import controllers as ct
from kept_programs import ran
from hitmap.comm import default_communicator
comm = default_communicator()
ran("wave", 8, kept=(sys.argv[1], ct.every(steps=4)), comm=comm)
if comm.rank == 1:
    resource.setrlimit(resource.RLIMIT_FSIZE, (900, 900))
ran("wave", 20, kept=(sys.argv[1], ct.every(steps=4)), comm=comm)
"""


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*") if path.is_file()
    }  # fmt: skip


@pytest.mark.parametrize("nbytes", [0, 1500])
def test_a_full_disk_ends_the_run_and_leaves_what_there_was(tmp_path: Path, nbytes: int) -> None:
    folder = tmp_path / "kept"
    ran("wave", 8, kept=(folder, SOME))
    before = contents(folder)
    with PROGRAMS["wave"](devices="reference") as run:
        failed = pytest.raises(OSError, match="has failed: File too large.*as they were")
        with full_disk(nbytes), failed as told:
            run.run(20, checkpoint=(folder, SOME), restart="require")
        assert str(folder / "run-1") in str(told.value)
        assert contents(folder) == before
        assert run.step == 12       # and the fields can be looked at
        assert alike(cells_of(run), ran("wave", 12))
    assert alike(ran("wave", 20, kept=(folder, SOME)), ran("wave", 20))


@pytest.mark.whole
def test_a_rank_whose_disk_is_full_ends_all_with_one_error(tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    (tmp_path / "job.py").write_text(FULL_ON_RANK_1)
    outcome = run_ranks(2, [str(tmp_path / "job.py"), str(folder)], env=helpers_path())
    assert outcome.returncode == 1
    assert outcome.stderr.count("OSError: ") == 2, outcome.stderr     # the head, and its traceback
    assert "rank 1: File too large" in outcome.stderr
    assert sorted(path.name for path in (folder / "run-1").iterdir()) == [
        "000001-step-4", "000002-step-8"
    ]  # fmt: skip
    assert alike(ran("wave", 20, kept=(folder, SOME), restart="require"), ran("wave", 20))


def test_a_folder_that_goes_ends_the_run(tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    with PROGRAMS["wave"](devices="reference") as run:
        with pytest.raises(OSError, match="has failed: No such file or directory"):
            run.run(20, checkpoint=(folder, SOME), progress=lambda done, total: shutil.rmtree(
                folder, ignore_errors=True
            ))  # fmt: skip
        run.run(4)      # nothing is torn


def test_a_folder_that_cannot_be_written_is_refused_before_the_first_step(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    wrong = {
        tmp_path / "file": "File exists|Not a directory",
        tmp_path / "nowhere/kept": "there is no folder.*nowhere'; make it first",
    }
    if os.geteuid() != 0:       # root may write anywhere
        wrong[closed / "kept"] = "Permission denied"
    for folder, told in wrong.items():
        with PROGRAMS["wave"](devices="reference") as run:
            with pytest.raises(OSError, match=told):
                run.run(4, checkpoint=folder)
            assert run.step == 0


def test_what_a_killed_run_has_left_is_removed(tmp_path: Path) -> None:
    left = tmp_path / "kept/run-1/.new-000009-step-3"
    left.mkdir(parents=True)
    (left / "rank-0.cells").write_bytes(b"half")
    (tmp_path / "kept/run-1/notes").write_text("of the user's")
    ran("wave", 4, kept=(tmp_path / "kept", SOME))
    names = sorted(path.name for path in (tmp_path / "kept/run-1").iterdir())
    assert names == ["000001-step-4", "notes"]
