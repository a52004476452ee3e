# SPDX-License-Identifier: MIT
"""The engine that replays plans; there is no second one."""
from controllers.engine.driver import Engine, Progress

__all__ = ["Engine", "Progress"]
