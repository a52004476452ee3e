# SPDX-License-Identifier: MIT
"""The engine that replays plans; there is no second one."""
from controllers.engine.chunked import ChunkEngine
from controllers.engine.course import Course
from controllers.engine.driver import Engine, Progress
from controllers.engine.installation import Configurable
from controllers.engine.looks import Looks
from controllers.engine.paced import PacedEngine
from controllers.engine.repeating import RepeatingEngine
from controllers.engine.samples import Log, RunLog, Runner, Several, Timed
from controllers.engine.state import activity, describe
from controllers.engine.uses import configurations

__all__ = ["ChunkEngine", "Configurable", "Course", "Engine", "Log", "Looks", "PacedEngine",
           "Progress", "RepeatingEngine", "RunLog", "Runner", "Several", "Timed",
           "activity", "configurations", "describe"]
