# SPDX-License-Identifier: MIT
"""The checked mode: what a run reads and writes is watched, cell by cell (docs/checking.md).

What it may be set to needs no OpenCL; what watches loads it when asked for.
"""
from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from controllers.check.setting import Check, Setting, setting_of

if TYPE_CHECKING:
    from controllers.check.engine import CheckedEngine, CheckedRepeatingEngine
    from controllers.check.finding import CheckError
    from controllers.check.opening import device_for, open_executor
    from controllers.check.trial import check_kernel

_HOMES = {
    "CheckError": "finding",
    "CheckedEngine": "engine",
    "CheckedRepeatingEngine": "engine",
    "check_kernel": "trial",
    "device_for": "opening",
    "open_executor": "opening",
}
__all__ = [
    "Check", "CheckError", "CheckedEngine", "CheckedRepeatingEngine", "Setting", "check_kernel",
    "device_for", "open_executor", "setting_of",
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'controllers.check' has no attribute {name!r}")
    return getattr(importlib.import_module(f"controllers.check.{_HOMES[name]}"), name)
