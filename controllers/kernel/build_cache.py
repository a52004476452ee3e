# SPDX-License-Identifier: MIT
"""Compiled kernels on disk, for drivers that keep none themselves.

PoCL and NVIDIA's driver have caches of their own, which know more than their binaries say; for
the others an entry here is one file, named by a hash of all that it depends on: source, options,
device, driver (`controllers.process.entry_cache`).  Any number of ranks may build at once, and a
damaged one is a miss: a driver may crash on a damaged binary.  Entries are as trusted as code.

The environment variable CONTROLLERS_BUILD_CACHE moves it: a folder, used for NVIDIA's driver too
then; or "off".  PoCL is never asked for a binary: it packs the files of its own cache, in a block
whose size it took before, and crashes where another process adds one meanwhile (PoCL 3.0).
"""
from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from controllers.process.entry_cache import EntryCache, user_folder

VARIABLE = "CONTROLLERS_BUILD_CACHE"
MAX_BYTES = 256 << 20   # of all entries; the oldest go first


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
        self._entries = EntryCache(folder, ".clbin", max_bytes)

    def path(self, device: CLDevice, source: str, options: Sequence[str]) -> Path:
        """Where the binary is kept, or would be."""
        return self._entries.path(_parts(device, source, options))

    def load(self, device: CLDevice, source: str, options: Sequence[str]) -> bytes | None:
        """The binary, or None: not there, not readable, or damaged."""
        return self._entries.load(_parts(device, source, options))

    def store(
        self, device: CLDevice, source: str, options: Sequence[str], binary: bytes
    ) -> None:
        """Keep a binary; whoever reads sees all of it or nothing."""
        self._entries.store(_parts(device, source, options), binary)


def _parts(device: CLDevice, source: str, options: Sequence[str]) -> list[str]:
    """All that a binary depends on."""
    platform = device.platform
    return [
        source, *options, "", device.name, device.version, device.driver_version,
        platform.name, platform.version,
    ]  # fmt: skip


def cache_folder() -> Path | None:
    """Where binaries are kept; None where that is off."""
    wanted = os.environ.get(VARIABLE, "")
    if wanted.lower() == "off":
        return None
    return Path(wanted).expanduser() if wanted else user_folder("kernels")


def cache_for(device: CLDevice) -> BuildCache | None:
    """The cache for builds on `device`; None where the driver has its own, or it is off."""
    folder = cache_folder()
    platform = device.platform.name.lower()
    if folder is None or "portable computing language" in platform:
        return None
    if "nvidia" in platform and not os.environ.get(VARIABLE):
        return None
    return BuildCache(folder)
