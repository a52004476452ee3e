# SPDX-License-Identifier: MIT
"""Links that were measured, kept from run to run: one entry of a cache folder each.

JSON; what cannot be read is a miss.  Entries change where places are, never a result.  The
environment variable CONTROLLERS_LINKS moves them: a folder, or "off", which measures none either.
"""
from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, astuple
from math import inf
from pathlib import Path

from controllers.links.link import Link
from controllers.process.entry_cache import UNREADABLE, EntryCache, user_folder

VARIABLE = "CONTROLLERS_LINKS"
_MAX_BYTES = 1 << 20
_VERSION = "link 1"


class KeptLinks:
    """The links that are known in a folder."""

    def __init__(self, folder: Path) -> None:
        self._entries = EntryCache(folder, ".json", _MAX_BYTES)

    @classmethod
    def of_user(cls) -> KeptLinks | None:
        """Those of this user, or of the folder that the environment names; None where it is off."""
        folder = links_folder()
        return None if folder is None else cls(folder)

    def load(self, key: Sequence[str]) -> tuple[Link, ...] | None:
        """The links of one measurement, if they are kept."""
        content = self._entries.load((_VERSION, *key))
        if content is None:
            return None
        try:
            found = tuple(
                Link(float(one["latency_s"]), float(one["bytes_per_s"]))
                for one in json.loads(content)
            )
        except UNREADABLE:
            return None
        is_sane = all(0 < value < inf for one in found for value in astuple(one))
        return found if found and is_sane else None

    def store(self, key: Sequence[str], links: Sequence[Link]) -> None:
        """Keep the links of one measurement."""
        self._entries.store((_VERSION, *key), json.dumps([asdict(one) for one in links]).encode())


def links_folder() -> Path | None:
    """Where links are kept; None where that is off."""
    wanted = os.environ.get(VARIABLE, "")
    if wanted.lower() == "off":
        return None
    return Path(wanted).expanduser() if wanted else user_folder("links")
