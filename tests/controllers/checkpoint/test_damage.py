# SPDX-License-Identifier: MIT
"""Checkpoints that are damaged: named, and the one before is taken; never taken for whole."""
from __future__ import annotations

import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kept_programs import alike, ran
from mpi_jobs import helpers_path, run_ranks

import controllers as ct
from controllers.checkpoint import reading
from controllers.checkpoint.manifest import Manifest
from controllers.fields.cells import put_cells

SUPPORT = Path(__file__).parents[2] / "support"
END = 14


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the checkpoints of a run after 8 and 12 steps."""
    folder = tmp_path_factory.mktemp("whole") / "kept"
    ran("wave", 12, kept=(folder, ct.every(steps=4)), places_per_controller=2)
    assert [path.name for path in sorted((folder / "run-1").iterdir())] == [
        "000002-step-8", "000003-step-12"
    ]  # fmt: skip
    return folder


@pytest.fixture(scope="module")
def want() -> dict[str, Any]:
    return ran("wave", END)


def drawn_file(folder: Path, chosen: random.Random) -> Path:
    """One of the newest checkpoint, the longer the likelier."""
    files = sorted((folder / "run-1/000003-step-12").iterdir())
    return chosen.choices(files, [file.stat().st_size for file in files])[0]


def check_older_is_taken(folder: Path, want: dict[str, Any]) -> None:
    with pytest.warns(RuntimeWarning, match=r"000003-step-12 is damaged: .*") as told:
        found = ran("wave", END, kept=(folder, ct.every(steps=4)), places_per_controller=3)
    assert alike(found, want) and len(told) == 1
    names = sorted(path.name for path in (folder / "run-1").iterdir())
    assert names == ["000004-step-12", "000005-step-14"]    # the damaged one has gone


def test_single_bits_that_flip_are_found(
    tmp_path: Path, whole: Path, want: dict[str, Any], pytestconfig: pytest.Config
) -> None:
    for number in range(pytestconfig.getoption("bit_flips")):
        chosen, folder = random.Random(number), tmp_path / str(number)
        shutil.copytree(whole, folder)
        file = drawn_file(folder, chosen)
        content = bytearray(file.read_bytes())
        content[chosen.randrange(len(content))] ^= 1 << chosen.randrange(8)
        file.write_bytes(content)
        check_older_is_taken(folder, want)


def test_files_that_were_cut_short_are_found(
    tmp_path: Path, whole: Path, want: dict[str, Any], pytestconfig: pytest.Config
) -> None:
    for number in range(pytestconfig.getoption("truncations")):
        chosen, folder = random.Random(number), tmp_path / str(number)
        shutil.copytree(whole, folder)
        file = drawn_file(folder, chosen)
        with open(file, "r+b") as opened:
            opened.truncate(chosen.randrange(file.stat().st_size))
        check_older_is_taken(folder, want)


def test_cells_that_are_lost_on_their_way_to_the_device_are_found(
    tmp_path: Path, whole: Path, want: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(whole, tmp_path / "kept")
    seen = []

    def put(engine: Any, field: str, place: int, box: Any, cells: Any) -> None:
        if not seen:
            cells = np.array(cells)
            cells.reshape(-1).view(np.uint8)[5] ^= 4
        seen.append(field)
        put_cells(engine, field, place, box, cells)

    monkeypatch.setattr(reading, "put_cells", put)
    check_older_is_taken(tmp_path / "kept", want)


def test_a_file_that_is_not_there_is_found(
    tmp_path: Path, whole: Path, want: dict[str, Any]
) -> None:
    for name in ("manifest", "rank-0.cells"):
        shutil.copytree(whole, tmp_path / name)
        (tmp_path / name / "run-1/000003-step-12" / name).unlink()
        check_older_is_taken(tmp_path / name, want)


def test_a_run_is_not_begun_anew_where_all_are_damaged(tmp_path: Path, whole: Path) -> None:
    shutil.copytree(whole, tmp_path / "kept")
    for file in (tmp_path / "kept/run-1").glob("*/rank-0.cells"):
        file.write_bytes(bytes(file.stat().st_size))
    before = sorted((tmp_path / "kept").rglob("*"))
    told = "000003-step-12, 000002-step-8.*restart='no'"
    with pytest.warns(RuntimeWarning, match="is damaged"), pytest.raises(
        ct.CheckpointError, match=told
    ):
        ran("wave", END, kept=tmp_path / "kept")
    assert sorted((tmp_path / "kept").rglob("*")) == before


def test_a_checkpoint_of_another_format_is_left_alone(tmp_path: Path, whole: Path) -> None:
    shutil.copytree(whole, tmp_path / "kept")
    manifest = tmp_path / "kept/run-1/000003-step-12/manifest"
    manifest.write_bytes(Manifest({"new": 1}, {}, [], format=2).encoded())
    with pytest.raises(ct.CheckpointError, match="has the format 2, this version reads 1"):
        ran("wave", END, kept=tmp_path / "kept")
    assert manifest.is_file()


def test_runs_that_are_killed_at_any_moment_end_with_the_same_bits(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    count = pytestconfig.getoption("kept_kills")
    outcome = subprocess.run(
        [sys.executable, str(SUPPORT / "kept_kills.py"), "0", str(count), str(tmp_path)],
        capture_output=True, text=True, timeout=1700, check=True,
    )  # fmt: skip
    said = outcome.stdout.split()
    assert said[0] == "kills:" and int(said[1]) > count, outcome.stdout


@pytest.mark.whole
@pytest.mark.parametrize("seed", range(8))
def test_jobs_of_which_a_rank_is_killed_go_on_on_other_ranks(
    tmp_path: Path, seed: int
) -> None:
    chosen, job = random.Random(seed), SUPPORT / "kept_kills.py"
    for ranks in (2, 3, chosen.randint(1, 3)):
        rank = chosen.randrange(ranks)
        count = chosen.randint(4, 40 if rank == 0 else 12)
        outcome = run_ranks(
            ranks, [str(job), str(tmp_path), str(rank), str(count)], env=helpers_path()
        )
        assert outcome.returncode != 0 or (tmp_path / "end.npz").is_file()
    outcome = run_ranks(2, [str(job), str(tmp_path), "0", "0"], env=helpers_path())
    assert outcome.returncode == 0, outcome.stderr
    with np.load(tmp_path / "end.npz") as found:
        assert alike({**found}, {k: np.asarray(v) for k, v in ran("wave", 30).items()})
