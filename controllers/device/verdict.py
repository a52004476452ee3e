# SPDX-License-Identifier: MIT
"""What became of the trial of a driver: a value that can be sent, kept and read again."""
from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from typing import Literal

from controllers.device.device import Device
from controllers.device.driver import Driver, loading_only

MARK = "controllers-trial "     # begins what a trial says; drivers print too
TrialOutcome = Literal["good", "failed", "empty", "aborted", "hung", "untried"]


@dataclass(frozen=True)
class TriedDevice:
    """A device that a kernel was tried on; `problem` is empty if it computed what it should.

    `address` identifies the hardware, if known.
    """

    device: Device
    address: str | None
    seconds: float
    problem: str


@dataclass(frozen=True)
class Verdict:
    """What became of the trial of a driver; `detail` says why where it is not good.

    failed: no device computed what it should.  empty: there is no device.  aborted, hung: what
    happened to the process.  untried: no process could be started, or none should.
    """

    driver: Driver
    outcome: TrialOutcome
    tried: tuple[TriedDevice, ...] = ()
    detail: str = ""
    seconds: float = 0.0

    @property
    def usable(self) -> bool:
        """Whether it does no harm to load the driver."""
        return self.outcome in ("good", "empty", "untried")

    def to_json(self) -> str:
        """A line of text; `from_json` reads it."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Verdict:
        """KeyError, TypeError or ValueError where `text` is not what this version writes."""
        plain = json.loads(text)
        tried = [TriedDevice(**{**t, "device": plain_device(t["device"])}) for t in plain["tried"]]
        return cls(**{**plain, "driver": Driver(**plain["driver"]), "tried": tuple(tried)})


def plain_device(plain: dict[str, object]) -> Device:
    """The device with these fields, as JSON gives them."""
    device = Device(**plain)  # type: ignore[arg-type]
    return replace(device, dtypes=tuple(device.dtypes))


def loading_usable(verdicts: Collection[Verdict]) -> AbstractContextManager[None]:
    """The first OpenCL call of this process, if made in here, loads no driver that does harm."""
    if all(verdict.usable for verdict in verdicts):
        return nullcontext()
    return loading_only([verdict.driver for verdict in verdicts if verdict.usable])


def computing(devices: Sequence[Device], verdicts: Collection[Verdict]) -> list[Device]:
    """The devices without those that failed their trial, also where their drivers are loaded.

    A program may have made OpenCL calls of its own before; its loader has all drivers then.
    """
    tried = [(_alike(t.device), v.usable and not t.problem) for v in verdicts for t in v.tried]
    failed = {key for key, good in tried if not good} - {key for key, good in tried if good}
    return [device for device in devices if _alike(device) not in failed]


def _alike(device: Device) -> tuple[str, str, str]:
    return device.platform, device.version, device.name
