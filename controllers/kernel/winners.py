# SPDX-License-Identifier: MIT
"""Winners: the configurations that were found fastest, kept from run to run.

One entry of a cache folder (`controllers.process.entry_cache`) for each device, driver, kernel,
class of extents and number of steps per launch; JSON, and what cannot be read is a miss.  Entries
change how fast a stage is computed, never its result.

The environment variable CONTROLLERS_TUNING moves them: a folder, or "off".
"""
from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from controllers.device.device import Device
from controllers.kernel.candidate import Candidate, KeptCandidate, candidate_from, plain
from controllers.process.entry_cache import UNREADABLE, EntryCache, user_folder

VARIABLE = "CONTROLLERS_TUNING"
_MAX_BYTES = 4 << 20


@dataclass(frozen=True)
class Winner:
    """A configuration, and the seconds that it took for a step."""

    config: Candidate | KeptCandidate
    seconds: float


class Winners:
    """The winners on one device; without a folder there are none."""

    def __init__(self, device: Device, folder: Path | None) -> None:
        self._entries = None if folder is None else EntryCache(folder, ".json", _MAX_BYTES)
        self._device = (
            "winner 1", device.name, device.platform, device.version, str(device.compute_units)
        )  # fmt: skip

    @classmethod
    def of(cls, device: Device) -> Winners:
        """Those of this user, or of the folder that the environment names."""
        return cls(device, winners_folder())

    @property
    def kept(self) -> bool:
        """Whether there is a folder to keep them in."""
        return self._entries is not None

    def load(self, key: Sequence[str]) -> Winner | None:
        """The winner for `key`, if one is kept."""
        content = self._entries.load((*self._device, *key)) if self._entries else None
        if content is None:
            return None
        try:
            found = json.loads(content)
            return Winner(candidate_from(found["configuration"]), float(found["seconds"]))
        except UNREADABLE:
            return None

    def store(self, key: Sequence[str], winner: Winner) -> None:
        """Keep a winner, in place of the last one for `key`."""
        if self._entries is not None:
            content = {"configuration": plain(winner.config), "seconds": winner.seconds}
            self._entries.store((*self._device, *key), json.dumps(content).encode())


def winners_folder() -> Path | None:
    """Where winners are kept; None where that is off."""
    wanted = os.environ.get(VARIABLE, "")
    if wanted.lower() == "off":
        return None
    return Path(wanted).expanduser() if wanted else user_folder("tuning")
