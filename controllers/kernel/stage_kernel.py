# SPDX-License-Identifier: MIT
"""The kernel of a stage, three ways: specialised, generic, or the user's own.

However it came about, a kernel's parameters are bound by name (docs/kernels.md): for a field `u`
of the program the buffers `u` and `u_new`, the scalars that say where its cells lie, and those of
the box.
"""
from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np

from controllers import kgt
from controllers.device import Device
from controllers.kernel.build import Accessors
from controllers.kernel.candidate import OwnCandidate
from controllers.kernel.choices import Choices
from controllers.kernel.offer import offer
from controllers.kernel.registry import KernelChoice
from controllers.kernel.user_kernel import user_kernel
from controllers.kernel.variant import Kernel
from controllers.kgt import Launch, generate
from controllers.kgt.kernel import StageKernel
from controllers.kgt.text.analysis import used_dtypes
from controllers.kgt.text.fixed import accessors
from controllers.kgt.text.fold_text import needs_doubles
from controllers.kgt.text.fold_values import with_values
from controllers.program.dtypes import Dtypes
from controllers.program.program import Math, Program, Stage
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

    `choices` says how a generated kernel is configured, and which variant of a user's one is used.
    `front` makes the accessors of a user's kernel.

    ValueError where the device lacks what strict arithmetic needs, where the generic kernel
    cannot do the stage, or where a user's kernel has no variant for the device.
    """
    config = choices.configuration(offer(choice, program, stage, device), launch)
    if isinstance(config, OwnCandidate):
        assert isinstance(choice, Kernel), "it offers its variants"
        return user_kernel(choice, config.variant, program, stage, device, front)
    config = cast("kgt.Config", config)
    program, stage = with_values(program, stage)
    if needs_doubles(stage):
        device.check_dtype("float64")   # sums are exact, whatever is summed
    digests = launch is not None and launch.digests
    generated = generate(program, stage, config, digests=digests)
    options = options_of(stage, program.dtypes, program.math, device, generated.divides)
    return replace(generated, options=options, origin=config.origin(stage), math=program.math)


def options_of(
    stage: Stage, dtypes: Dtypes, math: Math, device: Device, divides: bool
) -> tuple[str, ...]:
    """Those of the build of a generated kernel."""
    options: dict[str, None] = {}
    for dtype in used_dtypes(stage, dtypes):
        device.check_dtype(dtype)
        if math != "fast":
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
