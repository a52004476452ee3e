# SPDX-License-Identifier: MIT
"""The kernel of a stage, three ways: specialised, generic, or the user's own.

However it came about, a kernel's parameters are bound by name (docs/kernels.md): for a field `u`
of the program the buffers `u` and `u_new`, the scalars that say where its cells lie, and those of
the box.
"""
from __future__ import annotations

import numpy as np

from controllers import kgt
from controllers.device import Device
from controllers.kernel.build import Accessors
from controllers.kernel.choices import Choices
from controllers.kernel.registry import SPECIALISED, KernelChoice
from controllers.kernel.stage_source import StageKernel
from controllers.kernel.user_kernel import user_kernel
from controllers.kernel.variant import Kernel
from controllers.kgt import Launch, generate
from controllers.kgt.text.analysis import used_dtypes
from controllers.kgt.text.fixed import accessors
from controllers.program.program import Program, Stage
from hitmap.shape import Shape
from hitmap.strided import Strided


def stage_kernel(
    choice: KernelChoice,
    program: Program,
    stage: Stage,
    device: Device,
    choices: Choices,
    launch: Launch | None = None,
    front: Accessors = accessors,
) -> StageKernel:
    """The kernel of `stage` on `device`, for `launch` or, without it, for a large box.

    `choices` says how a generated kernel is configured.  `front` makes the accessors of a user's
    kernel.

    ValueError where the device lacks what strict arithmetic needs, where the generic kernel
    cannot do the stage, or where a user's kernel has no variant for the device.
    """
    if isinstance(choice, Kernel) and choice.computes(program, stage):
        return user_kernel(choice, program, stage, device, front, launch)
    if isinstance(choice, str) and choice != SPECIALISED:
        config = kgt.config_of(choice, program, stage)
    else:
        config = choices.configuration(program, stage, launch)
    generated = generate(program, stage, config)
    return StageKernel(
        generated.name,
        generated.source,
        _options(program, stage, device, generated.divides),
        generated.parameters,
        work_sizes=generated.work_sizes,
        scalars=generated.constants,
        tables=generated.tables,
        origin=config.origin(stage),
        math=program.math,
    )


def _options(
    program: Program, stage: Stage, device: Device, divides: bool
) -> tuple[str, ...]:
    options: dict[str, None] = {}
    for dtype in used_dtypes(stage, program.dtypes):
        device.check_dtype(dtype)
        if program.math != "fast":
            options |= dict.fromkeys(device.strict_options(dtype, divides))
    return tuple(options)


def box_values(over: Shape, computed: Shape | None = None) -> dict[str, object]:
    """The scalars of the parameters BOX; with `computed`, those of kernels of several steps too."""
    values: dict[str, object] = {}
    for axis, (lower, extent) in enumerate(zip(over.lower, over.extent)):
        values[f"lower_{axis}"] = np.int64(lower)
        values[f"extent_{axis}"] = np.int64(extent)
        if computed is not None:
            values[f"computed_first_{axis}"] = np.int64(computed.lower[axis] - lower)
            values[f"computed_last_{axis}"] = np.int64(computed.upper[axis] - lower)
    return values


def tile_values(name: str, where: Strided) -> dict[str, np.int64]:
    """The scalars of the parameters TILE(name), for the box that lies at `where`."""
    values = {f"{name}_first": np.int64(where.first)}
    for axis, pitch in enumerate(where.pitches[:-1]):
        values[f"{name}_pitch_{axis}"] = np.int64(pitch)
    return values
