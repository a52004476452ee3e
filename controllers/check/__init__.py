# SPDX-License-Identifier: MIT
"""The checked mode: what a run reads and writes is watched, cell by cell (docs/checking.md)."""
from controllers.check.engine import CheckedEngine
from controllers.check.finding import CheckError
from controllers.check.opening import device_for, open_executor
from controllers.check.setting import Check, Setting, setting_of

__all__ = [
    "Check", "CheckError", "CheckedEngine", "Setting", "device_for", "open_executor", "setting_of",
]  # fmt: skip
