# SPDX-License-Identifier: MIT
"""How devices are opened: a table of what computes without OpenCL, and OpenCL for all others."""
from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from controllers import check
from controllers.device import Device
from controllers.executor.executor import Executor
from controllers.executor.opencl import OpenCLExecutor
from controllers.executor.reference import ReferenceExecutor
from controllers.kernel.registry import SPECIALISED, KernelChoice
from controllers.kernel.variant import Kernel
from controllers.program.expression import Outcome
from controllers.program.program import Program
from controllers.program.schedule import sweeps_of
from controllers.settings.execution import Execution

DEFAULT = Execution()
Open: TypeAlias = Callable[[Device, Program, Execution], Executor]


def open_device(
    device: Device,
    program: Program,
    execution: Execution = DEFAULT,
    kernel: KernelChoice = SPECIALISED,
) -> Executor:
    """The executor of `device`, whose kernels can compute `program`.

    They are compiled when launches are bound to their boxes, on which the texts depend; one of
    the user's own is tried here.
    """
    if device.uses_opencl:
        return _opencl(device, program, execution, kernel)
    if isinstance(kernel, Kernel):
        raise ValueError(
            f"the {device.kind} device computes descriptions and cannot run the kernel "
            f"{kernel.name!r}, which is OpenCL C; choose another device, or no kernel"
        )
    return OPEN[device.kind](device, program, execution)


def _reference(device: Device, program: Program, execution: Execution) -> Executor:
    for node in (node for stage in program.stages for node in stage.given):
        if isinstance(node, Outcome):
            node.specified()
    return ReferenceExecutor(device, memory_cap=execution.memory_cap)


# By kinds of devices that use no OpenCL (`controllers.device.device.WITHOUT_OPENCL`).
OPEN: dict[str, Open] = {"reference": _reference}


def _opencl(
    device: Device, program: Program, execution: Execution, kernel: KernelChoice
) -> Executor:
    zero_copy, memory_cap = execution.zero_copy, execution.memory_cap
    controller = OpenCLExecutor(device, zero_copy=zero_copy, kernel=kernel, memory_cap=memory_cap)
    for sweep in sweeps_of(program):
        controller.source(program, sweep)
    if isinstance(kernel, Kernel):
        check.check_kernel(controller, program, kernel)
    if execution.checked == "off":
        return controller
    return check.open_executor(
        device, execution.checked, zero_copy=zero_copy, kernel=kernel, memory_cap=memory_cap
    )
