# SPDX-License-Identifier: MIT
"""What a device allows, and what a kernel asks for."""
from __future__ import annotations

from math import prod

import pyopencl as cl

from controllers import kgt
from controllers.kernel.build import Built, compiled
from controllers.kernel.candidate import Candidate
from controllers.program.program import Program
from controllers.program.sweep import Sweep


def problem_before_build(
    program: Program, sweep: Sweep, config: Candidate, launch: kgt.Launch, device: cl.Device
) -> str | None:
    """Why a configuration cannot compute the box of `launch`, as far as it says itself."""
    local_bytes = config.local_bytes(program, sweep.stage)
    if local_bytes > device.local_mem_size:
        return _local_problem(local_bytes, device.local_mem_size)
    if not config.suits(launch.fields.values()):
        return "does not suit the box"
    sizes = config.work_sizes(program, sweep.stage)
    group = sizes(launch.extent, bool(device.type & cl.device_type.CPU))[1]
    return _group_problem(group, device.max_work_group_size)


def problem_of_build(
    built: Built, group: tuple[int, ...], device: cl.Device
) -> str | None:
    """Why a compiled kernel cannot be launched with work-groups of this extent."""
    kernel, info = compiled(built.program, built.name), cl.kernel_work_group_info
    local_bytes = kernel.get_work_group_info(info.LOCAL_MEM_SIZE, device)
    if local_bytes > device.local_mem_size:
        return _local_problem(local_bytes, device.local_mem_size)
    if any(kernel.get_work_group_info(info.COMPILE_WORK_GROUP_SIZE, device)):
        return None     # compiled for groups of just this extent
    return _group_problem(group, kernel.get_work_group_info(info.WORK_GROUP_SIZE, device))


def _local_problem(needed: int, most: int) -> str:
    return f"needs {needed} bytes of local memory, the device has {most}"


def _group_problem(group: tuple[int, ...], most: int) -> str | None:
    if prod(group) <= most:
        return None
    return f"has work-groups of {prod(group)} items, at most {most} are possible"
