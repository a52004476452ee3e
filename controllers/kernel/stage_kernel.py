# SPDX-License-Identifier: MIT
"""The kernel of a stage, three ways: specialised, generic, or the user's own.

However it came about, a kernel's parameters are bound by name (docs/kernels.md): for a field `u`
of the program the buffers `u` and `u_new`, the scalars that say where its cells lie, and those of
the box.
"""
from __future__ import annotations

import hashlib
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from controllers import kgt
from controllers.device import Device
from controllers.kernel.build import ARGUMENT_INFO, Accessors, accessors, fixed_source
from controllers.kernel.choices import Choices
from controllers.kernel.configuration import origin_of
from controllers.kernel.registry import GENERIC, KernelChoice
from controllers.kernel.stage_source import StageKernel
from controllers.kernel.user_kernel import user_kernel
from controllers.kernel.variant import Kernel
from controllers.kgt import Launch, generate
from controllers.kgt.emitter import OPENCL_TYPES, divides, has_exact_reciprocal
from controllers.language.weights import FIELD
from controllers.program.program import INTEGERS, Program, Stage
from controllers.program.schedule import single_updates
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
    if choice == GENERIC:
        return _generic_kernel(program, stage, device)
    made = choices.configuration(program, stage, launch)
    if made is None and kgt.loops_over_terms(stage):
        return _generic_kernel(program, stage, device)
    generated = generate(program, stage, made)
    return StageKernel(
        generated.name,
        generated.source,
        _options(program, device, generated.divides),
        generated.parameters,
        work_sizes=generated.work_sizes,
        origin=origin_of(choice, "", made),
        math=program.math,
    )


def _options(program: Program, device: Device, divides: bool) -> tuple[str, ...]:
    if program.math == "fast":
        device.check_dtype(program.dtype)
        return ()
    return tuple(device.strict_options(program.dtype, divides))


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


def _generic_kernel(program: Program, stage: Stage, device: Device) -> StageKernel:
    found = kgt.terms_of(stage)
    if found is None:
        raise ValueError(
            f"stage {stage.name!r} is no weighted sum over the field {FIELD!r} divided by a "
            f"constant, which is all that the generic kernel computes; use kernel='specialised'"
        )
    weights, factor = found
    cell = OPENCL_TYPES[program.dtype]
    term, finish = cell, "DIVIDES"
    values = np.array([*weights.values()], np.int64 if program.dtype in INTEGERS else program.dtype)
    if program.dtype in INTEGERS:
        term, finish, factor = "ulong", "TRUNCATES", int(factor) % 2**64
    elif has_exact_reciprocal(factor, program.dtype):
        finish, factor = "MULTIPLIES", 1 / factor
    offsets = np.array([*weights], np.int64)

    def tables(pitches: tuple[int, ...]) -> dict[str, npt.NDArray[Any]]:
        return {"offsets": offsets @ np.array(pitches, np.int64), "weights": values}

    macros = {**_macros(program), "TERM": term, finish: ""}
    options = _options(program, device, divides(stage, program.dtype))
    return StageKernel(
        "generic_stencil",
        accessors(program.n_axes, macros) + fixed_source("generic_stencil"),
        (*options, ARGUMENT_INFO),
        scalars={"n_terms": len(weights), "factor": factor},
        tables=tables,
        origin=origin_of(GENERIC, n_terms=len(weights)),
    )


def described(program: Program) -> str:
    """A short text that differs where programs compute differently."""
    stages = chain.from_iterable(map(single_updates, program.stages))
    sources = [generate(program, stage).source for stage in stages]
    digest = hashlib.sha256(repr((program.fields, program.renames, sources)).encode()).hexdigest()
    return f"{program.name} in {program.dtype}, {digest[:16]}"


def _macros(program: Program) -> dict[str, str]:
    return {"VALUE": OPENCL_TYPES[program.dtype]}
