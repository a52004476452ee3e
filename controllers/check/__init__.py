# SPDX-License-Identifier: MIT
"""The checked mode: what a run reads and writes is watched, cell by cell (docs/checking.md)."""
from controllers.check.engine import CheckedEngine
from controllers.check.executor import CheckedExecutor
from controllers.check.finding import CheckError
from controllers.check.setting import Check, Setting, setting_of

__all__ = ["Check", "CheckError", "CheckedEngine", "CheckedExecutor", "Setting", "setting_of"]
