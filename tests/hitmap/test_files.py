# SPDX-License-Identifier: MIT
"""Names that cannot be read or written are found without a trace, and devices are left alone."""
from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from hitmap import NpyWriter, SerialCommunicator, Shape, open_npy
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


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs files of the kernel's")
def test_files_that_may_never_end_are_read_as_empty() -> None:
    with open_regular("/proc/self/status") as file:
        assert file.read() == b""
    with pytest.raises(ValueError, match="is no .npy file"):
        open_npy("/proc/self/status")


def _by_parts(path: str) -> None:
    with NpyWriter(path, Shape.of_extent((3,)), "f4", SerialCommunicator()) as file:
        file.write(Shape.of_extent((3,)), np.ones(3, "f4"))


def _at_once(path: str) -> None:
    with replacing(Path(path)) as temporary:
        np.save(temporary, np.ones(3, "f4"))


WRITERS = pytest.mark.parametrize("write", [_by_parts, _at_once])


@WRITERS
def test_a_link_leads_to_the_file_that_is_replaced(write: Callable[[str], None]) -> None:
    os.mkdir("there")
    os.symlink("there/a.npy", "link.npy")
    os.symlink("link.npy", "second.npy")
    for _ in range(2):      # there is no such file at first
        write("second.npy")
        assert sorted(os.listdir()) == ["link.npy", "second.npy", "there"]
        assert os.path.islink("link.npy") and os.path.islink("second.npy")
        assert os.listdir("there") == ["a.npy"]
        assert np.load("there/a.npy").tolist() == [1, 1, 1]
    os.symlink("loop.npy", "loop.npy")
    with pytest.raises(OSError, match="[Tt]oo many levels"):
        check_target(Path("loop.npy"))
    os.symlink("/dev/null", "null.npy")
    with pytest.raises(OSError, match="not a regular file"):
        check_target(Path("null.npy"))


@WRITERS
def test_a_file_that_is_replaced_leaves_its_mode_and_owner(write: Callable[[str], None]) -> None:
    mine = os.geteuid(), os.getegid()
    owner = (12345, 23456) if mine[0] == 0 else mine
    for mode in (0o640, 0o444, 0o200):
        Path("a.npy").unlink(missing_ok=True)
        Path("a.npy").touch()
        os.chown("a.npy", *owner)
        os.chmod("a.npy", mode)
        write("a.npy")
        status = os.stat("a.npy")
        assert (stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid) == (mode, *owner)


@WRITERS
def test_a_file_is_on_the_disk_before_it_has_its_name_and_then_the_name_is(
    write: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    fsync, replace = os.fsync, os.replace

    def synced(file: int) -> None:
        done.append("folder" if stat.S_ISDIR(os.fstat(file).st_mode) else "file")
        fsync(file)

    def renamed(*arguments: Path) -> None:
        done.append("rename")
        replace(*arguments)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", renamed)
    write("a.npy")
    assert done[-3:] == ["file", "rename", "folder"]
