# SPDX-License-Identifier: MIT
"""Which process of a node may use which cores and devices: leases, given in turn.

What names devices loads OpenCL when it is asked for.
"""
from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from controllers.arbiter.arbiter import Arbiter
from controllers.arbiter.kept import Kept
from controllers.arbiter.lease import Lease
from controllers.arbiter.mark import Mark
from controllers.arbiter.note import Holder
from controllers.arbiter.owned import OwnedNodes
from controllers.arbiter.request import Request
from controllers.arbiter.want import Want, node_cores

if TYPE_CHECKING:
    from controllers.arbiter.unit import marked, unit_of

__all__ = [
    "Arbiter", "Holder", "Kept", "Lease", "Mark", "OwnedNodes", "Request", "Want",
    "marked", "node_cores", "unit_of",
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name not in ("marked", "unit_of"):
        raise AttributeError(f"module 'controllers.arbiter' has no attribute {name!r}")
    return getattr(importlib.import_module("controllers.arbiter.unit"), name)
