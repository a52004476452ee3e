# SPDX-License-Identifier: MIT
"""The engine that replays plans; there is no second one."""
from controllers.engine.driver import Engine, Progress
from controllers.engine.state import activity, describe

__all__ = ["Engine", "Progress", "activity", "describe"]
