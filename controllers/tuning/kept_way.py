# SPDX-License-Identifier: MIT
"""The way to exchange that an earlier run has found: kept where the fastest configurations are."""
from __future__ import annotations

import json
from collections.abc import Sequence

from controllers.kernel.winners import winners_folder
from controllers.plan import Plan
from controllers.plan.way import ExchangeWay
from controllers.process.entry_cache import UNREADABLE, EntryCache
from controllers.program.structure import described

_MAX_BYTES = 1 << 16


class KeptWay:
    """An entry for each program, with its cells, cut so over such devices of so many ranks."""

    def __init__(self, plan: Plan) -> None:
        folder = winners_folder()
        self._entries = None if folder is None else EntryCache(folder, ".way", _MAX_BYTES)
        homes = [(where.rank, where.controller, where.device) for where in plan.locations]
        self._key = (
            "way 2", described(plan.program), str([str(box) for box in plan.layout.owned]),
            str(homes), str(plan.steps_per_launch), str(plan.halo_width), str(plan.way),
        )  # fmt: skip

    def load(self, ways: Sequence[ExchangeWay]) -> ExchangeWay | None:
        """What is kept, where it is one of these."""
        content = None if self._entries is None else self._entries.load(self._key)
        if content is None:
            return None
        try:
            number = int(json.loads(content)["way"])
            text = str(json.loads(content)["text"])
        except UNREADABLE:
            return None
        known = 0 <= number < len(ways) and str(ways[number]) == text
        return ways[number] if known else None

    def store(self, way: ExchangeWay, ways: Sequence[ExchangeWay]) -> None:
        """Keep it, in place of the last one."""
        if self._entries is not None:
            content = {"way": [*ways].index(way), "text": str(way)}
            self._entries.store(self._key, json.dumps(content).encode())
