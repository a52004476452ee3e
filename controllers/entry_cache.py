# SPDX-License-Identifier: MIT
"""A folder of entries: one file each, named by a hash of all that it depends on.

An entry is written under a temporary name and renamed, so that any number of processes may write
at once without a lock, and begins with a hash of its contents, so that a damaged one is a miss.
"""
from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import platformdirs

_FORMAT = b"controllers 1\n"
_DIGEST = hashlib.sha256().digest_size


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
        try:
            content = self.path(parts).read_bytes()
        except OSError:
            return None
        start = len(_FORMAT) + _DIGEST
        if content[:start] != _FORMAT + hashlib.sha256(content[start:]).digest():
            return None
        return content[start:]

    def store(self, parts: Sequence[str], content: bytes) -> None:
        """Keep an entry; whoever reads sees all of it or nothing."""
        target = self.path(parts)
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            number, temporary = tempfile.mkstemp(suffix=".tmp", dir=self.folder)
            try:
                with open(number, "wb") as file:
                    file.write(_FORMAT + hashlib.sha256(content).digest() + content)
                os.replace(temporary, target)
            except BaseException:
                Path(temporary).unlink(missing_ok=True)
                raise
            self._prune()
        except OSError:     # a full or read-only disk costs time, not the run
            pass

    def _prune(self) -> None:
        """Remove the oldest entries while there are too many; another rank may do the same."""
        entries = []
        for path in self.folder.glob(f"*{self.suffix}"):
            try:
                status = path.stat()
            except FileNotFoundError:
                continue
            entries.append((status.st_mtime_ns, status.st_size, path))
        total = sum(nbytes for _, nbytes, _ in entries)
        for _, nbytes, path in sorted(entries):
            if total <= self.max_bytes:
                return
            path.unlink(missing_ok=True)
            total -= nbytes
