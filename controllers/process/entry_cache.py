# SPDX-License-Identifier: MIT
"""A folder of entries: one file each, named by a hash of all that it depends on.

An entry is written under a temporary name and renamed, so that any number of processes may write
at once without a lock, and begins with a hash of its contents, so that a damaged one is a miss.
So is one that is too large, or no regular file.  A folder that others may write holds nothing
(`controllers.process.private_folder`).
"""
from __future__ import annotations

import hashlib
import logging
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

import platformdirs

from controllers.process.private_folder import read, write

_FORMAT = b"controllers 1\n"
_HEAD = len(_FORMAT) + hashlib.sha256().digest_size
# errors of taking contents apart that another version has written, or nobody in his senses
UNREADABLE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
_logger = logging.getLogger(__name__)


def user_folder(name: str) -> Path:
    """Where entries of one kind are kept for this user."""
    return Path(platformdirs.user_cache_dir("controllers")) / name


class EntryCache:
    """A folder of entries; without room or rights it simply holds nothing."""

    def __init__(self, folder: Path, suffix: str, max_bytes: int) -> None:
        self.folder = folder
        self.suffix = suffix
        self.max_bytes = max_bytes

    def path(self, parts: Sequence[str]) -> Path:
        """Where the entry that depends on `parts` is kept, or would be."""
        text = "".join(f"{len(part)}:{part}" for part in parts)
        return self.folder / f"{hashlib.sha256(text.encode()).hexdigest()}{self.suffix}"

    def load(self, parts: Sequence[str]) -> bytes | None:
        """The entry, or None: not there, not readable, or damaged."""
        return self._content(self.path(parts).name)

    def all(self) -> Iterator[bytes]:
        """All entries that can be read, in the order of their names."""
        for path in sorted(self.folder.glob(f"*{self.suffix}")):
            content = self._content(path.name)
            if content is not None:
                yield content

    def remove(self, parts: Sequence[str]) -> None:
        """There is no such entry any more; OSError where it cannot be removed."""
        self.path(parts).unlink(missing_ok=True)

    def _content(self, name: str) -> bytes | None:
        try:
            content = read(self.folder, name, self.max_bytes + _HEAD)
        except OSError:
            return None
        if content[:_HEAD] != _head(content[_HEAD:]):
            return None
        return content[_HEAD:]

    def store(self, parts: Sequence[str], content: bytes) -> None:
        """Keep an entry; whoever reads sees all of it or nothing."""
        try:
            write(self.folder, self.path(parts).name, _head(content) + content)
            self._prune()
        except OSError as error:    # a full or read-only disk costs time, not the run
            _logger.warning("nothing is kept in %s: %s", self.folder, error)

    def _prune(self) -> None:
        """Remove the oldest entries while there are too many; another rank may do the same."""
        entries = []
        for path in self.folder.glob(f"*{self.suffix}"):
            try:
                status = path.lstat()
            except FileNotFoundError:
                continue
            if not stat.S_ISDIR(status.st_mode):
                entries.append((status.st_mtime_ns, status.st_size, path))
        total = sum(nbytes for _, nbytes, _ in entries)
        for _, nbytes, path in sorted(entries):
            if total <= self.max_bytes:
                return
            path.unlink(missing_ok=True)
            total -= nbytes


def _head(content: bytes) -> bytes:
    """What an entry of this content begins with."""
    return _FORMAT + hashlib.sha256(content).digest()
