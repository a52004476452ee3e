# SPDX-License-Identifier: MIT
"""The kernel of a stage, three ways: specialised, generic, or the user's own.

However it came about, a kernel's parameters are bound by name (docs/kernels.md): the buffers
`u` and `u_new` of a field, the scalars that say where its cells lie, and those of the box.
"""
from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from controllers import kgt
from controllers.device import Device
from controllers.kernel.build import ARGUMENT_INFO, Accessors
from controllers.kernel.choices import Choices
from controllers.kernel.configuration import origin_of
from controllers.kernel.registry import SPECIALISED, KernelChoice
from controllers.kernel.variant import Kernel
from controllers.kgt import Launch, generate
from controllers.kgt.kernel import Tables, WorkSizes
from controllers.kgt.parameter import Parameter, Role
from controllers.kgt.strategies.cell.config import work_sizes
from controllers.kgt.text.emitter import OPENCL_TYPES
from controllers.kgt.text.fixed import accessors
from controllers.language.weights import FIELD
from controllers.program.program import INTEGERS, Math, Program, Stage
from hitmap.shape import Shape
from hitmap.strided import Strided

_SIZE = re.compile(r"size_\d")


@dataclass(frozen=True)
class StageKernel:
    """OpenCL C of one stage, and how it is called.

    parameters: known beforehand, or () to ask the compiler, which must agree with `roles`.
    scalars: values of parameters other than the tiles' and the box's.
    title, file: what a user calls it, and the user's file, for messages; "" where there is none.
    origin: where the text comes from, for people.
    math: strict arithmetic is built without options that the environment adds.
    """

    name: str
    source: str
    options: tuple[str, ...]
    parameters: tuple[Parameter, ...] = ()
    roles: Mapping[str, Role] = field(default_factory=dict)
    work_sizes: WorkSizes = work_sizes
    scalars: Mapping[str, float] = field(default_factory=dict)
    tables: Tables | None = None
    title: str = ""
    file: str = ""
    origin: str = ""
    math: Math = "strict"


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
    if isinstance(choice, Kernel):
        return _user_kernel(choice, program, device, front)
    if choice == SPECIALISED:
        config = choices.configuration(program, stage, launch)
    else:
        config = kgt.config_of(choice, program, stage)
    generated = generate(program, stage, config)
    return StageKernel(
        generated.name,
        generated.source,
        _options(program, device, generated.divides),
        generated.parameters,
        work_sizes=generated.work_sizes,
        scalars=generated.constants,
        tables=generated.tables,
        origin=config.origin(stage),
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


def _user_kernel(
    kernel: Kernel, program: Program, device: Device, front: Accessors
) -> StageKernel:
    if len(program.stages) > 1 or len(program.fields) > 1:
        raise ValueError(
            f"program {program.name!r} has {len(program.stages)} stages on {len(program.fields)} "
            f"fields, and the kernel {kernel.name!r} is for one of each; use kernel='specialised'"
        )
    source = kernel.variant(device).source
    options = device.strict_options(program.dtype, device.correctly_rounded_divide)
    return StageKernel(
        source.kernel_name(kernel.name),
        source.complete(front(program.n_axes, _macros(program)), _body_parameters(kernel, program)),
        (*options, ARGUMENT_INFO),
        roles={FIELD: "in", f"{FIELD}_new": "out"},
        scalars=kernel.scalars,
        title=kernel.name,
        file=source.file,
        origin=origin_of(kernel, source.file),
    )


def _body_parameters(kernel: Kernel, program: Program) -> str:
    """The parameter list that a body gets."""
    own = {name: value for name, value in kernel.scalars.items() if not _SIZE.fullmatch(name)}
    domain = ["DOMAIN"] if len(own) < len(kernel.scalars) else []
    real = "VALUE" if program.dtype not in INTEGERS else "float"
    scalars = [
        f"const {real if isinstance(value, (float, np.floating)) else 'long'} {name}"
        for name, value in own.items()
    ]
    tiles = f"__global const VALUE *restrict {FIELD}, __global VALUE *restrict {FIELD}_new"
    return ", ".join([tiles, f"TILE({FIELD})", "BOX", *domain, *scalars])


def domain_values(domain: Shape) -> dict[str, int]:
    """The scalars of the parameters DOMAIN."""
    return {f"size_{axis}": extent for axis, extent in enumerate(domain.extent)}


def _macros(program: Program) -> dict[str, str]:
    return {"VALUE": OPENCL_TYPES[program.dtype]}
