# SPDX-License-Identifier: MIT
"""A kernel of the user's own as the kernel of a stage: its variant, its text, its launches.

Its parameters are bound by name, as those of all kernels of stages (docs/kernels.md).
"""
from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np

from controllers.device import Device
from controllers.kernel.build import ARGUMENT_INFO, Accessors
from controllers.kernel.configuration import origin_of
from controllers.kernel.launch_form import DIMENSIONS, LaunchForm
from controllers.kernel.variant import Kernel, Variant
from controllers.kgt.kernel import StageKernel, WorkSizes
from controllers.kgt.parameter import Parameter, Role, cell_dtype
from controllers.kgt.text.emitter import OPENCL_TYPES, used_fields
from controllers.kgt.text.given import scalars_of
from controllers.program.dtypes import given_dtype
from controllers.program.program import INTEGERS, Program, Stage
from hitmap.shape import Shape

_SIZE = re.compile(r"size_\d")
_OF_BOX = re.compile(r"(lower|extent|computed_first|computed_last)_\d")
MANY = 1 << 12      # cells per axis of a large box


@dataclass(frozen=True)
class UserKernel(StageKernel):
    """That of a user's own kernel, whose parameters are known once it is compiled.

    roles: of the tiles, with which the compiled text must agree.
    title, file: what the user calls it, and the user's file, for messages; "" where there is none.
    form: how it is launched.
    """

    roles: Mapping[str, Role] = field(default_factory=dict)
    title: str = ""
    file: str = ""
    form: LaunchForm = field(default_factory=LaunchForm)


def user_kernel(
    kernel: Kernel,
    variant: Variant,
    program: Program,
    stage: Stage,
    device: Device,
    front: Accessors,
) -> UserKernel:
    """The kernel of `stage` by a variant of `kernel`; see `stage_kernel`."""
    source, form = variant.source, variant.form
    _check(kernel, variant, program, stage, device)
    macros = {"VALUE": OPENCL_TYPES[_first_dtype(program, stage)], **form.definitions}
    if form.is_grouped(source):     # a box may end within a group
        macros["ONCE"] = ""
    dtypes = dict.fromkeys(program.dtypes[field] for field in used_fields(stage))
    rounded = device.correctly_rounded_divide
    options = [one for dtype in dtypes for one in device.strict_options(dtype, rounded)]
    return UserKernel(
        source.kernel_name(kernel.name),
        source.complete(front(program.n_axes, macros), _body_parameters(kernel, program, stage)),
        (),
        form.planned_sizes(program, stage),
        form.steps_per_launch,
        scalars={**(form.like.scalars() if form.like else {}), **kernel.scalars},
        options=(*options, ARGUMENT_INFO),
        roles=_roles(stage),
        title=kernel.name,
        file=source.file,
        origin=origin_of(kernel, variant),
        form=form,
    )


def _check(
    kernel: Kernel, variant: Variant, program: Program, stage: Stage, device: Device
) -> None:
    """ValueError where a launch of the variant is not as it is declared, or not for the device."""
    source, form, what = variant.source, variant.form, f"kernel {kernel.name!r}"
    form.check(what, program.n_axes)
    n_items = prod(form.work_group or ())
    if n_items > device.max_items > 0:
        raise ValueError(
            f"{what}: work_group has {n_items} work-items, {device.name} takes at most "
            f"{device.max_items}; use a smaller one, or a variant for this device"
        )
    if not source.kernels and (form.cells_per_item or form.local or not form.takes_any_box):
        raise ValueError(
            f"{what} is a body, which computes one cell: cells_per_item, local and like are for "
            f"whole kernels; leave them out, or write a __kernel"
        )
    for name in kernel.scalars:
        if name in _own_names(stage, program.n_axes) or _OF_BOX.fullmatch(name):
            raise ValueError(
                f"{what}: the scalar {name!r} has the name of a parameter that each launch sets; "
                f"give it another name"
            )


def _roles(stage: Stage) -> dict[str, Role]:
    """The roles of the tiles, by the names of their parameters."""
    return {**dict.fromkeys(stage.fields_read, "in"), **dict.fromkeys(_new(stage), "out")}


def compiled_sizes(
    form: LaunchForm, sizes: WorkSizes, group: tuple[int, ...], n_axes: int, what: str
) -> WorkSizes:
    """`sizes`, or what they become for a kernel compiled for work-groups of `group`; zeros: any.

    ValueError where `form` declares others.
    """
    if not any(group):
        return sizes
    declared: tuple[int, ...] = (*group[: min(n_axes, DIMENSIONS)],)
    if form.work_group is not None or form.like is not None:
        declared = sizes((MANY,) * n_axes, False)[1]
    if _in_three(declared) != _in_three(group):
        raise ValueError(
            f"{what} is compiled for work-groups of {_times(group)} (reqd_work_group_size, whose "
            f"first extent is along the last axis), and is launched over {n_axes} axes with groups "
            f"of {_times(declared)} in that order; make the two agree, or declare no work_group"
        )
    if form.like is not None:
        return sizes
    compiled = (1,) * (n_axes - len(declared)) + declared[::-1]
    form.check(what, n_axes)
    return form.sizes(compiled)


def _in_three(group: tuple[int, ...]) -> tuple[int, ...]:
    return (*group, 1, 1)[:DIMENSIONS]


def _times(extents: tuple[int, ...]) -> str:
    return " x ".join(map(str, extents))


def _check_cells(parameter: Parameter, program: Program, what: str) -> None:
    """ValueError where the buffer of a field is declared as one of other cells."""
    name = parameter.name.removesuffix("_new")
    dtype = cell_dtype(parameter.type_name)
    if dtype is None or name not in {field.name for field in program.fields}:
        return
    held = np.dtype(program.field(name).dtype)
    if (dtype.itemsize, dtype.kind == "f") != (held.itemsize, held.kind == "f"):
        raise ValueError(
            f"{what}: {parameter.name!r} is a {parameter.type_name}, and the field {name!r} holds "
            f"{held}; write VALUE, or run the program in {dtype}"
        )


def _own_names(stage: Stage, n_axes: int) -> set[str]:
    """The names of the parameters that the fields and the scalars of a stage make."""
    names = {*stage.fields_read, *_new(stage), *scalars_of(stage)}
    for field_name in used_fields(stage):
        names |= {f"{field_name}_first", *(f"{field_name}_pitch_{n}" for n in range(n_axes - 1))}
    return names


def _body_parameters(kernel: Kernel, program: Program, stage: Stage) -> str:
    """The parameter list that a body gets."""
    own = {name: value for name, value in kernel.scalars.items() if not _SIZE.fullmatch(name)}
    domain = ["DOMAIN"] if len(own) < len(kernel.scalars) else []
    written = _first_dtype(program, stage)
    real = "VALUE" if written not in INTEGERS else "float"
    scalars = [
        f"const {real if isinstance(value, (float, np.floating)) else 'long'} {name}"
        for name, value in own.items()
    ]
    types = {
        field: "VALUE" if dtype == written else OPENCL_TYPES[dtype]
        for field, dtype in program.dtypes.items()
    }
    held = given_dtype(stage, program.dtypes)
    given = [
        f"const {'VALUE' if held == written else OPENCL_TYPES[held]} {name}"
        for name in scalars_of(stage)
    ]
    old = [f"__global const {types[name]} *restrict {name}" for name in stage.fields_read]
    tiles = [f"TILE({name})" for name in used_fields(stage)]
    new = [f"__global {types[name]} *restrict {name}_new" for name in stage.updates]
    return ", ".join([*old, *new, *tiles, "BOX", *domain, *given, *scalars])


def _first_dtype(program: Program, stage: Stage) -> str:
    """The one that VALUE is: of the first field that the stage updates."""
    return program.dtypes[next(iter(stage.updates))]


def _new(stage: Stage) -> list[str]:
    """The names of the fields' next levels."""
    return [f"{name}_new" for name in stage.updates]


def with_domain(kernel: Kernel, domain: Shape) -> Kernel:
    """The same with the scalars of the parameters DOMAIN."""
    sizes = {f"size_{axis}": extent for axis, extent in enumerate(domain.extent)}
    taken = [name for name in sizes if name in kernel.scalars]
    if taken:
        raise ValueError(
            f"kernel {kernel.name!r}: the scalar {taken[0]!r} has the name of a parameter that is "
            f"the extent of the field (DOMAIN); give it another name"
        )
    return kernel.with_scalars(sizes)


def as_compiled(
    source: UserKernel, parameters: Sequence[Parameter], group: tuple[int, ...], program: Program
) -> UserKernel:
    """The same as its compiled text is launched.

    group: what that is compiled for, in OpenCL's order; zeros where that is nothing.  ValueError
    where it contradicts what is declared.
    """
    what, local = f"kernel {source.title!r}", source.form.local_elements
    for parameter in parameters:
        _check_cells(parameter, program, what)
        if parameter.role == "local" and parameter.name not in local:
            raise ValueError(
                f"{what}: the local memory {parameter.name!r} has no size; declare "
                f"local={{{parameter.name!r}: elements}}"
            )
    known = {parameter.name for parameter in parameters if parameter.role == "local"}
    missing = [name for name in local if name not in known]
    if missing:
        raise ValueError(
            f"{what}: local gives {missing[0]!r} a size, which is no __local parameter; leave it "
            f"out, or add `__local VALUE *{missing[0]}`"
        )
    sizes = compiled_sizes(source.form, source.work_sizes, group, program.n_axes, what)
    return replace(source, parameters=(*parameters,), work_sizes=sizes)


def local_nbytes(source: StageKernel) -> dict[str, int]:
    """Bytes of each local memory that is a parameter."""
    found: dict[str, int] = {}
    if not isinstance(source, UserKernel):
        return found
    for parameter in source.parameters:
        if parameter.role == "local":
            dtype = cell_dtype(parameter.type_name)
            if dtype is None:
                raise ValueError(
                    f"kernel {source.title!r}: {parameter.name!r} is a {parameter.type_name}; "
                    f"local memory is an array of numbers"
                )
            found[parameter.name] = source.form.local_elements[parameter.name] * dtype.itemsize
    return found
