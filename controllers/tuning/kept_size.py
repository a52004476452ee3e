# SPDX-License-Identifier: MIT
"""The sizes of chunks that an earlier run has found: kept where fastest configurations are."""
from __future__ import annotations

import json
from dataclasses import asdict, astuple

from controllers.kernel.winners import winners_folder
from controllers.plan import Plan
from controllers.process.entry_cache import UNREADABLE, EntryCache
from controllers.program.structure import described
from controllers.tuning.sizes import Size

_MAX_BYTES = 1 << 16


class KeptSize:
    """An entry for each program on such devices, with its cells, what it may take, and options."""

    def __init__(self, plan: Plan, options: object) -> None:
        """`plan`: of whole places; `options`: what else decides how these are cut."""
        folder = winners_folder()
        self._entries = None if folder is None else EntryCache(folder, ".pass", _MAX_BYTES)
        homes = [(where.rank, where.controller, where.device) for where in plan.locations]
        self._key = (
            "sizes 1", described(plan.program), str([str(box) for box in plan.layout.owned]),
            str(homes), str(options),
        )  # fmt: skip

    def load(self) -> Size | None:
        """What is kept, if anything of use is."""
        content = None if self._entries is None else self._entries.load(self._key)
        if content is None:
            return None
        try:
            found = json.loads(content)
            size = Size(*(int(found[name]) for name in ("span", "chunks", "slots")))
        except UNREADABLE:
            return None
        return size if min(astuple(size)) > 0 else None

    def store(self, size: Size) -> None:
        """Keep it, in place of the last one."""
        if self._entries is not None:
            self._entries.store(self._key, json.dumps(asdict(size)).encode())
