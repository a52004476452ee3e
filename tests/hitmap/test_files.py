# SPDX-License-Identifier: MIT
"""Names that cannot be read or written are found without a trace, and devices are left alone."""
from __future__ import annotations

import os
import stat
from pathlib import Path

import numpy as np
import pytest

from hitmap import NpyWriter, SerialCommunicator, Shape
from hitmap.files import check_target, open_regular, replacing, temporary_name


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Each test works in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_only_regular_files_are_opened() -> None:
    os.mkfifo("pipe")
    os.mkdir("dir")
    Path("file").write_bytes(b"text")
    os.symlink("file", "link")
    for name in ("pipe", "/dev/null", "/dev/zero"):
        with pytest.raises(OSError, match="not a regular file"):
            open_regular(name)
    with pytest.raises(IsADirectoryError):
        open_regular("dir")
    with pytest.raises(FileNotFoundError):
        open_regular("gone")
    with open_regular("link") as file:
        assert file.read() == b"text"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no/file", "no folder 'no'; make it first"),
        ("file/below", "no folder 'file'"),
        ("dir", "is a folder; give the name of a file"),
        (".", "is a folder"),
        ("pipe", "not a regular file"),
        ("/proc/file", "Errno"),
        ("x" * 250, "too long"),    # its temporary name is
        ("x" * 256, "too long"),
    ],
)
def test_a_name_that_cannot_be_written_is_refused_and_nothing_made(name: str, message: str) -> None:
    os.mkfifo("pipe")
    os.mkdir("dir")
    Path("file").touch()
    before = sorted(os.listdir())
    with pytest.raises(OSError, match=message):
        check_target(Path(name))
    assert sorted(os.listdir()) == before


def test_a_name_that_can_be_written_stays_as_it_was(folder: Path) -> None:
    check_target(Path("new"))
    assert os.listdir() == []
    Path("old").write_text("old")
    check_target(folder / "old")
    assert os.listdir() == ["old"] and Path("old").read_text() == "old"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_rights_is_refused() -> None:
    os.mkdir("closed", 0o500)
    with pytest.raises(PermissionError):
        check_target(Path("closed/file"))


def test_a_pipe_is_never_renamed_over() -> None:
    os.mkfifo("pipe.npy")
    domain = Shape.of_extent((3,))
    refused = pytest.raises(OSError, match="pipe.npy was not written: is a pipe")
    with refused, NpyWriter("pipe.npy", domain, "f4", SerialCommunicator()) as file:
        file.write(domain, np.zeros(3, "f4"))
    assert stat.S_ISFIFO(os.stat("pipe.npy").st_mode)
    assert os.listdir() == ["pipe.npy"]


def test_a_file_that_is_replaced_appears_as_a_whole_or_not_at_all() -> None:
    with replacing(Path("a.txt")) as temporary:
        assert temporary == temporary_name(Path("a.txt"))
        temporary.write_text("new")
        assert os.listdir() == [temporary.name]
    assert os.listdir() == ["a.txt"]
    with pytest.raises(ValueError, match="stop"), replacing(Path("a.txt")) as temporary:
        temporary.write_text("half")
        raise ValueError("stop")
    assert os.listdir() == ["a.txt"] and Path("a.txt").read_text() == "new"
