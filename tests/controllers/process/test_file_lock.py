# SPDX-License-Identifier: MIT
"""One process at a time holds a file; one that is killed holds it no more."""
from __future__ import annotations

import errno
import fcntl
import subprocess
import sys
from pathlib import Path

import pytest

from controllers.process.file_lock import locked

HOLDER = """
import sys
from pathlib import Path
from controllers.process.file_lock import locked

with locked(Path(sys.argv[1]), "lock", 60) as held:
    print(held, flush=True)
    sys.stdin.read()
"""


def holder(folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", HOLDER, str(folder)]
    job = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert job.stdout is not None and job.stdout.readline() == "True\n"
    return job


def test_a_lock_is_held_by_one_until_it_ends_or_is_killed(tmp_path: Path) -> None:
    for ends in ("by itself", "killed"):
        job = holder(tmp_path)
        with locked(tmp_path, "lock", 0.02) as held, locked(tmp_path, "another", 0.02) as other:
            assert not held and other
        if ends == "killed":
            job.kill()
            job.wait(60)
        else:
            job.communicate(timeout=60)
        with locked(tmp_path, "lock", 60) as held:
            assert held
            with locked(tmp_path, "lock", 0) as again:      # of another opening
                assert not again


def test_folders_of_others_have_no_locks(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(PermissionError, match="other users"), locked(tmp_path, "lock", 1):
        pass
    with pytest.raises(FileNotFoundError), locked(tmp_path / "none", "lock", 1):
        pass


def test_file_systems_without_locks_are_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr(fcntl, "flock", refused)
    with locked(tmp_path, "lock", 60) as held:
        assert not held
