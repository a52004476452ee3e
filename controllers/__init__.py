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
    from numpy import float32, float64, int16, int32, int64, uint8

    from controllers.array.by_label import sum_by
    from controllers.check import CheckError
    from controllers.check.finding import KernelError
    from controllers.checkpoint.error import CheckpointError
    from controllers.controller.access import reading, updating, writing
    from controllers.controller.controller import Controller
    from controllers.controller.tied_tile import Selection, TiedTile
    from controllers.device import Device, NoDeviceError
    from controllers.device.listing import devices
    from controllers.integrity.message_error import MessageError
    from controllers.kernel.build import BuildError
    from controllers.kernel.registry import register_stencil
    from controllers.kernel.variant import Kernel
    from controllers.language.accumulated import accumulate
    from controllers.language.derivatives import derivative, gradient, laplacian
    from controllers.language.each import Each, each
    from controllers.language.folds import all as all
    from controllers.language.folds import any as any
    from controllers.language.folds import argmax, argmin, dot, mean, norm
    from controllers.language.folds import max as max
    from controllers.language.folds import min as min
    from controllers.language.folds import sum as sum
    from controllers.language.grid import Grid
    from controllers.language.integrators import heun, leapfrog, rk3
    from controllers.language.item_parameters import All, Column, Near, Row
    from controllers.language.opencl_c import opencl_c
    from controllers.language.pattern_file import PatternFileError, read_patterns
    from controllers.language.point import point
    from controllers.language.profile import fixed
    from controllers.language.steady import steady
    from controllers.language.step import Step, Time, parity, repeat, step
    from controllers.language.stored import stored
    from controllers.language.struct import struct
    from controllers.language.weights import Stencil
    from controllers.memory.ledger import MemoryCapError
    from controllers.memory.tile import TileView
    from controllers.plan import Plan
    from controllers.pool.hybrid.hybrid import hybrid, replicated, series
    from controllers.pool.task import Task, task
    from controllers.pool.task_error import TaskError
    from controllers.pool.tasks import tasks
    from controllers.process.error import ControllersError
    from controllers.program.boundary import Boundary
    from controllers.program.coordinates import Coordinates
    from controllers.program.expression import Coordinate, Index, Read, Scalar
    from controllers.program.program import Field, Program, Stage
    from controllers.program.reference import reference_run, reference_steps
    from controllers.program.rule import custom, extrapolate, keep, mirror
    from controllers.program.scalars import Parameter
    from controllers.report.report import Report
    from controllers.run.computation import Computation
    from controllers.run.dry_run import dry_run
    from controllers.run.listening import Stopped
    from controllers.run.skeleton import stencil_computation
    from controllers.settings.division import Division
    from controllers.settings.every import every
    from controllers.settings.execution import Execution
    from controllers.settings.outputs import output
    from controllers.settings.plots import plot
    from controllers.space.workspace import workspace
    from controllers.tuning.offline import tune

__version__ = "0.1.0"

_HOMES = {
    "All": "controllers.language.item_parameters",
    "Boundary": "controllers.program.boundary",
    "BuildError": "controllers.kernel.build",
    "CheckError": "controllers.check",
    "CheckpointError": "controllers.checkpoint.error",
    "Column": "controllers.language.item_parameters",
    "Computation": "controllers.run.computation",
    "Controller": "controllers.controller.controller",
    "ControllersError": "controllers.process.error",
    "Coordinate": "controllers.program.expression",
    "Coordinates": "controllers.program.coordinates",
    "Device": "controllers.device",
    "Division": "controllers.settings.division",
    "Each": "controllers.language.each",
    "Execution": "controllers.settings.execution",
    "Field": "controllers.program.program",
    "Grid": "controllers.language.grid",
    "Index": "controllers.program.expression",
    "Kernel": "controllers.kernel.variant",
    "KernelError": "controllers.check.finding",
    "MemoryCapError": "controllers.memory.ledger",
    "MessageError": "controllers.integrity.message_error",
    "Near": "controllers.language.item_parameters",
    "NoDeviceError": "controllers.device",
    "Parameter": "controllers.program.scalars",
    "PatternFileError": "controllers.language.pattern_file",
    "Plan": "controllers.plan",
    "Program": "controllers.program.program",
    "Read": "controllers.program.expression",
    "Report": "controllers.report.report",
    "Row": "controllers.language.item_parameters",
    "Scalar": "controllers.program.expression",
    "Selection": "controllers.controller.tied_tile",
    "Stage": "controllers.program.program",
    "Stencil": "controllers.language.weights",
    "Step": "controllers.language.step",
    "Stopped": "controllers.run.listening",
    "Task": "controllers.pool.task",
    "TaskError": "controllers.pool.task_error",
    "TiedTile": "controllers.controller.tied_tile",
    "TileView": "controllers.memory.tile",
    "Time": "controllers.language.step",
    "accumulate": "controllers.language.accumulated",
    "all": "controllers.language.folds",
    "any": "controllers.language.folds",
    "argmax": "controllers.language.folds",
    "argmin": "controllers.language.folds",
    "custom": "controllers.program.rule",
    "derivative": "controllers.language.derivatives",
    "devices": "controllers.device.listing",
    "dot": "controllers.language.folds",
    "dry_run": "controllers.run.dry_run",
    "each": "controllers.language.each",
    "every": "controllers.settings.every",
    "extrapolate": "controllers.program.rule",
    "fixed": "controllers.language.profile",
    "float32": "numpy",
    "float64": "numpy",
    "gradient": "controllers.language.derivatives",
    "heun": "controllers.language.integrators",
    "hybrid": "controllers.pool.hybrid.hybrid",
    "keep": "controllers.program.rule",
    "int16": "numpy",
    "int32": "numpy",
    "int64": "numpy",
    "laplacian": "controllers.language.derivatives",
    "leapfrog": "controllers.language.integrators",
    "max": "controllers.language.folds",
    "mean": "controllers.language.folds",
    "min": "controllers.language.folds",
    "mirror": "controllers.program.rule",
    "norm": "controllers.language.folds",
    "opencl_c": "controllers.language.opencl_c",
    "output": "controllers.settings.outputs",
    "parity": "controllers.language.step",
    "plot": "controllers.settings.plots",
    "point": "controllers.language.point",
    "read_patterns": "controllers.language.pattern_file",
    "reading": "controllers.controller.access",
    "reference_run": "controllers.program.reference",
    "reference_steps": "controllers.program.reference",
    "register_stencil": "controllers.kernel.registry",
    "repeat": "controllers.language.step",
    "replicated": "controllers.pool.hybrid.hybrid",
    "rk3": "controllers.language.integrators",
    "steady": "controllers.language.steady",
    "series": "controllers.pool.hybrid.hybrid",
    "stencil_computation": "controllers.run.skeleton",
    "step": "controllers.language.step",
    "stored": "controllers.language.stored",
    "struct": "controllers.language.struct",
    "sum": "controllers.language.folds",
    "sum_by": "controllers.array.by_label",
    "task": "controllers.pool.task",
    "tasks": "controllers.pool.tasks",
    "tune": "controllers.tuning.offline",
    "uint8": "numpy",
    "updating": "controllers.controller.access",
    "workspace": "controllers.space.workspace",
    "writing": "controllers.controller.access",
}
__all__ = [     # not those of Python's own names: all, any, max, min, sum
    "All", "Boundary", "BuildError", "CheckError", "CheckpointError", "Column", "Computation",
    "Controller", "ControllersError", "Coordinate", "Coordinates", "Device", "Division", "Each",
    "Execution", "Field", "Grid", "Index", "Kernel", "KernelError", "MemoryCapError",
    "MessageError", "Near",
    "NoDeviceError", "Parameter", "PatternFileError", "Plan", "Program", "Read", "Report", "Row",
    "Scalar", "Selection", "Stage", "Stencil", "Step", "Stopped", "Task", "TaskError", "TiedTile",
    "TileView", "Time",
    "accumulate", "argmax", "argmin", "custom", "derivative", "devices", "dot", "dry_run", "each",
    "every", "extrapolate", "fixed", "float32", "float64", "gradient", "heun", "hybrid", "int16",
    "int32", "int64", "keep", "laplacian", "leapfrog", "mean", "mirror", "norm", "opencl_c",
    "output", "parity", "plot", "point", "read_patterns", "reading", "reference_run",
    "reference_steps", "register_stencil", "repeat", "replicated", "rk3", "series",
    "steady", "stencil_computation", "step", "stored", "struct", "sum_by", "task", "tasks", "tune",
    "uint8", "updating", "workspace", "writing",
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'controllers' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*_HOMES, "__doc__", "__version__"]


logging.getLogger(__name__).addHandler(logging.NullHandler())     # silent until it is asked
install_where_ranks_are()
