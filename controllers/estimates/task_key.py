# SPDX-License-Identifier: MIT
"""What times are kept under: a task in one of its variants on one device, and how large it was."""
from __future__ import annotations

from dataclasses import dataclass, replace

from controllers.device.device import Device


@dataclass(frozen=True)
class TaskKey:
    """A task as one device executes it; `driver` says which one, with its version.

    Parts of a device have the name of the whole: how many of its units compute is in the `Case`.
    which: of parts, and of several devices of this name, the one that is meant; "" means all.
    """

    task: str
    variant: str
    device: str
    driver: str
    which: str = ""

    @classmethod
    def of(cls, task: str, variant: str, device: Device) -> TaskKey:
        """Of a device, or of a part of one."""
        whole = device if device.part is None else device.part.whole
        driver = f"{device.platform} {device.version}"
        return cls(task, variant, whole.name, driver, which_of(device))

    @property
    def of_all(self) -> TaskKey:
        """The task on any of the devices of this name, and on their parts."""
        return replace(self, which="")

    @property
    def words(self) -> tuple[str, ...]:
        """All that tells it from others."""
        words = self.task, self.variant, self.device, self.driver
        return (*words, self.which) if self.which else words

    @property
    def place(self) -> str:
        """The device, and which one it is, for people."""
        return f"{self.device}, {self.which}" if self.which else self.device

    def __str__(self) -> str:
        """
        >>> print(TaskKey("scale", "numpy", "reference", "host 2.4"))
        scale (numpy) on reference
        """
        return f"{self.task} ({self.variant}) on {self.place}"


@dataclass(frozen=True, order=True)
class Case:
    """How much one execution had to do, and by how much.

    size: in whatever the task counts, such as cells, bytes or operations.  units: cores of a CPU,
    or devices.
    """

    size: float
    units: int = 1

    def __str__(self) -> str:
        """
        >>> print(Case(1e6, 4)), print(Case(12))
        size 1e+06 on 4 units
        size 12
        (None, None)
        """
        return f"size {self.size:.6g}" + (f" on {self.units} units" if self.units > 1 else "")


@dataclass(frozen=True)
class Work:
    """What a program says of an execution: bytes that it moves, and operations."""

    nbytes: float = 0.0
    operations: float = 0.0


def which_of(device: Device) -> str:
    """Which one of its kind a device is; "" where it is the only one.

    >>> from controllers.device.device import reference_device
    >>> cpu = replace(reference_device(), kind="cpu", compute_units=8)
    >>> which_of(cpu), which_of(cpu.divided((2, 6), 1))
    ('', 'cores 2 to 7')
    """
    part, words = device.part, list[str]()
    whole = device if part is None else part.whole
    if whole.number is not None:
        words.append(f"number {whole.number}")
    if part is not None:
        first = sum(part.counts[: part.index])
        words.append(f"cores {first} to {first + part.counts[part.index] - 1}")
    return ", ".join(words)


def units_of(device: Device) -> int:
    """How many units a device computes with: cores of a CPU, else one.

    >>> from controllers.device.device import reference_device
    >>> units_of(reference_device())
    1
    """
    return max(1, device.compute_units) if device.kind == "cpu" else 1
