# SPDX-License-Identifier: MIT
"""The bytes that one executor has allocated, by purpose, and how many it may.

OpenCL enforces no sum: drivers allocate late, and fail in the middle of a run.  So memory is
counted before it is allocated, and given back when its last reference goes.
"""
from __future__ import annotations

import os
import re
import weakref
from typing import Literal, Protocol, get_args

import numpy as np

from controllers.process.error import ControllersError
from controllers.program.identifier import short

DevicePurpose = Literal["tiles", "alignment", "device staging", "constants"]
HostPurpose = Literal["host staging", "host images"]
DiskPurpose = Literal["image files"]
SparePurpose = Literal["snapshots"]
Purpose = Literal[DevicePurpose, HostPurpose, DiskPurpose, SparePurpose]

ENVIRONMENT = "CONTROLLERS_MEMORY_CAP"
HOST_ENVIRONMENT = "CONTROLLERS_HOST_MEMORY_CAP"
_DEVICE: tuple[Purpose, ...] = get_args(DevicePurpose)
_HOST: tuple[Purpose, ...] = get_args(HostPurpose)
_DISK: tuple[Purpose, ...] = get_args(DiskPurpose)
_SPARE: tuple[Purpose, ...] = get_args(SparePurpose)
_LEFT_FREE = 16     # that part of the cap, of what is spare: drivers need some
_UNITS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}
MAX_BYTES = 2**63
_CAP = re.compile(r"(\d+(?:\.\d+)?) ?([kmgt]?)(?:i?b)?", re.IGNORECASE)


class MemoryCapError(ControllersError, MemoryError):
    """What is to be allocated exceeds the cap of a device, or its largest single allocation."""

    __module__ = "controllers"


class Borrower(Protocol):
    """Who has memory of a device that is spare."""

    def drop(self) -> None:
        """Give it back, all of it, before this returns."""


class Ledger:
    """The account of one device: its own memory is capped, host memory and files are only counted.

    Tiles in host memory that a device uses in place are the device's.  Memory that is spare counts
    as free: whoever has it gives it back where it is needed.

    >>> ledger = Ledger("GPU", cap_bytes=1000)
    >>> ledger.take(600, "tiles")
    >>> ledger.take(600, "tiles")
    Traceback (most recent call last):
    ...
    controllers.MemoryCapError: tiles need 600 B on "GPU", where 600 B are in use...
    """

    def __init__(self, device: str, cap_bytes: int, largest_bytes: int | None = None) -> None:
        self.device = device
        self.cap_bytes = cap_bytes
        self.largest_bytes = cap_bytes if largest_bytes is None else largest_bytes
        every = *_DEVICE, *_HOST, *_DISK, *_SPARE
        self._bytes: dict[Purpose, int] = dict.fromkeys(every, 0)
        self._borrowers: weakref.WeakSet[Borrower] = weakref.WeakSet()
        self.peak_on_device = 0     # the most that `on_device` has ever been
        self.peak_on_host = 0

    @property
    def on_device(self) -> int:
        """Bytes of device memory in use."""
        return sum(self._bytes[purpose] for purpose in _DEVICE)

    @property
    def on_host(self) -> int:
        """Bytes of host memory in use, but for tiles that the device uses in place."""
        return sum(self._bytes[purpose] for purpose in _HOST)

    def check(self, nbytes: int, purpose: Purpose) -> None:
        """Raise `MemoryCapError` where an allocation of `nbytes` does not fit."""
        if purpose not in _DEVICE:
            return
        if self.on_device + nbytes > self.cap_bytes:
            needed, used, cap = sizes(nbytes, self.on_device, self.cap_bytes)
            raise MemoryCapError(
                f'{purpose} need {needed} on "{self.device}", where {used} are in use, the cap '
                f"is {cap}; use more devices or a larger --memory-cap"
            )
        if purpose != "alignment" and nbytes > self.largest_bytes:     # that is the host's
            needed, largest = sizes(nbytes, self.largest_bytes)
            raise MemoryCapError(
                f'{purpose} need one allocation of {needed} on "{self.device}", whose driver '
                f"allows {largest}; use more places"
            )

        if self.on_device + self._spare + nbytes > self.cap_bytes:
            for borrower in [*self._borrowers]:
                borrower.drop()

    def lend(self, borrower: Borrower) -> None:
        """It may take memory that is spare, while there is a reference to it."""
        self._borrowers.add(borrower)

    def has_spare(self, nbytes: int) -> bool:
        """Whether so many bytes would leave some free."""
        most = self.cap_bytes - self.cap_bytes // _LEFT_FREE
        return nbytes <= min(self.largest_bytes, most - self.on_device - self._spare)

    @property
    def _spare(self) -> int:
        """Bytes of device memory that whoever has them gives back."""
        return sum(self._bytes[purpose] for purpose in _SPARE)

    def take(self, nbytes: int, purpose: Purpose) -> None:
        """Count an allocation, before it is made; `MemoryCapError` where it does not fit."""
        self.check(nbytes, purpose)
        self._bytes[purpose] += nbytes
        self.peak_on_device = max(self.peak_on_device, self.on_device)
        self.peak_on_host = max(self.peak_on_host, self.on_host)

    def give_back(self, nbytes: int, purpose: Purpose) -> None:
        """Count memory that is free again."""
        self._bytes[purpose] -= nbytes
        assert self._bytes[purpose] >= 0, "what is given back has been taken"

    def hold(self, owner: object, nbytes: int, purpose: Purpose) -> None:
        """Count `nbytes` for as long as there is a reference to `owner`; of an array, any view."""
        if isinstance(owner, np.ndarray) and isinstance(owner.base, np.ndarray):
            owner = owner.base      # NumPy keeps this one, not the view
        self.take(nbytes, purpose)
        weakref.finalize(owner, self.give_back, nbytes, purpose).atexit = False

    def as_dict(self) -> dict[Purpose, int]:
        """Bytes in use, by purpose."""
        return dict(self._bytes)


def cap_for(
    memory_bytes: int, wanted: str | int | None = None, variable: str = ENVIRONMENT
) -> int:
    """The cap of a device with `memory_bytes`: what is wanted, else the environment's, else all.

    ValueError where that is no number of bytes.
    """
    if wanted is not None:
        return parse_cap(wanted)
    text = os.environ.get(variable, "")
    if not text:
        return memory_bytes
    try:
        return parse_cap(text)
    except ValueError as error:
        raise ValueError(f"environment variable {variable}: {error}") from None


def parse_cap(wanted: str | int) -> int:
    """A cap in bytes, from a number or from one with a unit; units are powers of 1024.

    >>> parse_cap("4g"), parse_cap("1.5 MiB"), parse_cap(4096)
    (4294967296, 1572864, 4096)
    """
    if isinstance(wanted, int):
        nbytes: float = 0 if isinstance(wanted, bool) else wanted
    else:
        found = _CAP.fullmatch(str(wanted).strip())
        nbytes = float(found[1]) * 2 ** _UNITS[found[2].lower()] if found else 0
    if not 1 <= nbytes < MAX_BYTES:
        raise ValueError(
            f"a memory cap is a number of bytes, less than 2^63, or one with k, m, g or t, such "
            f"as 512m or 4g, got {short(wanted)}"
        )
    return int(nbytes)


def size(nbytes: int) -> str:
    """Bytes in a unit that suits them.

    >>> size(999), size(2**20), size(int(41.2 * 2**30))
    ('999 B', '1 MiB', '41.2 GiB')
    """
    power = min(4, (max(nbytes, 1).bit_length() - 1) // 10)
    number = f"{nbytes / 1024**power:.1f}".removesuffix(".0")
    return f"{number} {('B', 'KiB', 'MiB', 'GiB', 'TiB')[power]}"


def sizes(*nbytes: int) -> list[str]:
    """Several to be compared: in bytes where rounding would make unlike ones the same.

    >>> sizes(2**20, 2**20 + 4), sizes(2**20, 2**21)
    (['1048576 B', '1048580 B'], ['1 MiB', '2 MiB'])
    """
    texts = [size(n) for n in nbytes]
    return texts if len(set(texts)) == len(set(nbytes)) else [f"{n} B" for n in nbytes]
