# SPDX-License-Identifier: MIT
"""A portable heterogeneous runtime for stencil computing on OpenCL devices and MPI.

Importing it loads neither OpenCL nor MPI: the names below come when they are asked for.
What it does is told to the logger `controllers`, in silence by default (docs/troubleshooting.md).
Where it is one of several ranks, an uncaught exception ends the job on all of them
(`hitmap.install_abort_hook`); a process that runs alone is left as it is.
"""
from __future__ import annotations

import importlib
import logging
from typing import TYPE_CHECKING

from hitmap.uncaught import install_where_ranks_are

if TYPE_CHECKING:
    from controllers.check import CheckError
    from controllers.controller.access import reading, updating, writing
    from controllers.controller.controller import Controller
    from controllers.kernel.registry import register_stencil
    from controllers.kernel.variant import Kernel
    from controllers.language.pattern_file import read_patterns
    from controllers.language.weights import Stencil
    from controllers.memory.tile import TileView
    from controllers.plan import Plan
    from controllers.program.program import Program
    from controllers.program.reference import reference_run
    from controllers.report.report import Report
    from controllers.run.computation import Computation
    from controllers.run.skeleton import stencil_computation

__version__ = "0.1.0"

_HOMES = {
    "CheckError": "controllers.check",
    "Computation": "controllers.run.computation",
    "Controller": "controllers.controller.controller",
    "Kernel": "controllers.kernel.variant",
    "Plan": "controllers.plan",
    "Program": "controllers.program.program",
    "Report": "controllers.report.report",
    "Stencil": "controllers.language.weights",
    "TileView": "controllers.memory.tile",
    "reading": "controllers.controller.access",
    "read_patterns": "controllers.language.pattern_file",
    "reference_run": "controllers.program.reference",
    "register_stencil": "controllers.kernel.registry",
    "stencil_computation": "controllers.run.skeleton",
    "updating": "controllers.controller.access",
    "writing": "controllers.controller.access",
}
__all__ = [
    "CheckError", "Computation", "Controller", "Kernel", "Plan", "Program", "Report", "Stencil",
    "TileView", "read_patterns", "reading", "reference_run", "register_stencil",
    "stencil_computation", "updating", "writing",
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'controllers' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


logging.getLogger(__name__).addHandler(logging.NullHandler())     # silent until it is asked
install_where_ranks_are()
