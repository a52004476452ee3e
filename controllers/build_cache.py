# SPDX-License-Identifier: MIT
"""Compiled kernels on disk, for drivers that keep none themselves.

PoCL and NVIDIA's driver have caches of their own, which know more than their binaries say; for
the others an entry here is one file, named by a hash of all that it depends on: source, options,
device, driver.  It is written under a temporary name and renamed, so that any number of ranks
may build at once, and begins with a hash of its contents, so that a damaged one is a miss: a
driver may crash on a damaged binary.  Entries are as trusted as code.

The environment variable CONTROLLERS_BUILD_CACHE moves it: a folder, used for all drivers then;
or "off".
"""
from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import platformdirs

VARIABLE = "CONTROLLERS_BUILD_CACHE"
MAX_BYTES = 256 << 20   # of all entries; the oldest go first
_FORMAT = b"controllers 1\n"
_DIGEST = hashlib.sha256().digest_size


class Platform(Protocol):
    """The part of `pyopencl.Platform` that an entry depends on."""

    @property
    def name(self) -> str: ...
    @property
    def version(self) -> str: ...


class CLDevice(Protocol):
    """The part of `pyopencl.Device` that an entry depends on."""

    @property
    def name(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def driver_version(self) -> str: ...
    @property
    def platform(self) -> Platform: ...


class BuildCache:
    """A folder of binaries; without room or rights it simply holds nothing."""

    def __init__(self, folder: Path, max_bytes: int = MAX_BYTES) -> None:
        self.folder = folder
        self.max_bytes = max_bytes

    def path(self, device: CLDevice, source: str, options: Sequence[str]) -> Path:
        """Where the binary is kept, or would be."""
        platform = device.platform
        parts = [
            source, *options, "", device.name, device.version, device.driver_version,
            platform.name, platform.version,
        ]  # fmt: skip
        text = "".join(f"{len(part)}:{part}" for part in parts)
        return self.folder / f"{hashlib.sha256(text.encode()).hexdigest()}.clbin"

    def load(self, device: CLDevice, source: str, options: Sequence[str]) -> bytes | None:
        """The binary, or None: not there, not readable, or damaged."""
        try:
            content = self.path(device, source, options).read_bytes()
        except OSError:
            return None
        start = len(_FORMAT) + _DIGEST
        if content[:start] != _FORMAT + hashlib.sha256(content[start:]).digest():
            return None
        return content[start:]

    def store(
        self, device: CLDevice, source: str, options: Sequence[str], binary: bytes
    ) -> None:
        """Keep a binary; whoever reads sees all of it or nothing."""
        target = self.path(device, source, options)
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            number, temporary = tempfile.mkstemp(suffix=".tmp", dir=self.folder)
            try:
                with open(number, "wb") as file:
                    file.write(_FORMAT + hashlib.sha256(binary).digest() + binary)
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
        for path in self.folder.glob("*.clbin"):
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


def cache_for(device: CLDevice) -> BuildCache | None:
    """The cache for builds on `device`; None where the driver has its own, or it is off."""
    wanted = os.environ.get(VARIABLE, "")
    if wanted.lower() == "off":
        return None
    if wanted:
        return BuildCache(Path(wanted).expanduser())
    platform = device.platform.name.lower()
    if "portable computing language" in platform or "nvidia" in platform:
        return None
    return BuildCache(Path(platformdirs.user_cache_dir("controllers")) / "kernels")
