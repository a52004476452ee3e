# SPDX-License-Identifier: MIT
"""The engine that replays plans; there is no second one."""
from controllers.engine.course import Course
from controllers.engine.driver import Engine, Progress
from controllers.engine.samples import Log, Timed
from controllers.engine.state import activity, describe, phase

__all__ = ["Course", "Engine", "Log", "Progress", "Timed", "activity", "describe",
           "phase"]
