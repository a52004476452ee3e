# SPDX-License-Identifier: MIT
"""A kernel of the user's own as the kernel of a stage: its variant, its text, its launches.

Its parameters are bound by name, as those of all kernels of stages (docs/kernels.md).
"""
from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from controllers.device import Device
from controllers.kernel.build import ARGUMENT_INFO, Accessors
from controllers.kernel.configuration import origin_of
from controllers.kernel.launch_form import DIMENSIONS, LaunchForm
from controllers.kernel.stage_source import StageKernel
from controllers.kernel.variant import Kernel, Variant
from controllers.kgt import Launch
from controllers.kgt.kernel import WorkSizes
from controllers.kgt.parameter import Parameter, Role, cell_dtype
from controllers.kgt.text.emitter import OPENCL_TYPES, used_fields
from controllers.program.program import INTEGERS, Program, Stage
from hitmap.shape import Shape

_SIZE = re.compile(r"size_\d")
_OF_BOX = re.compile(r"(lower|extent|computed_first|computed_last)_\d")
MANY = 1 << 12      # cells per axis of a large box


def user_variant(
    kernel: Kernel, program: Program, stage: Stage, device: Device, launch: Launch | None
) -> Variant:
    """The most specific variant that computes the box of `launch`; ValueError where none does."""
    found = kernel.fitting(device, None if launch is None else launch.n_steps)
    if launch is None:
        return found[0]
    tried = []
    for variant in found:
        like = variant.form.like
        if like is None or like.suits(launch.fields.values()):
            return variant
        tried.append(like)
    limits = "; ".join(
        f"{' x '.join(map(str, like.least(program.n_axes)))} cells or more"
        + f", with pitches that are multiples of {like.multiple}" * (like.multiple > 1)
        for like in tried
    )
    raise ValueError(
        f"kernel {kernel.name!r} cannot compute a box of {' x '.join(map(str, launch.extent))} "
        f"cells on {device.name}: it is made for {limits}; add a variant for such boxes "
        f"(device=\"\" is the least specific one), use fewer places, or zero_copy=False, which "
        f"pads tiles"
    )


def user_kernel(
    kernel: Kernel,
    program: Program,
    stage: Stage,
    device: Device,
    front: Accessors,
    launch: Launch | None,
) -> StageKernel:
    """The kernel of `stage` by a variant of `kernel`; see `stage_kernel`."""
    variant = user_variant(kernel, program, stage, device, launch)
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
    macros = {"VALUE": OPENCL_TYPES[program.dtype_of(stage)]}
    if form.is_grouped(source):     # a box may end within a group
        macros["ONCE"] = ""
    dtypes = dict.fromkeys(program.dtypes[field] for field in used_fields(stage))
    rounded = device.correctly_rounded_divide
    options = [one for dtype in dtypes for one in device.strict_options(dtype, rounded)]
    reads: dict[str, Role] = dict.fromkeys(stage.fields_read, "in")
    return StageKernel(
        source.kernel_name(kernel.name),
        source.complete(front(program.n_axes, macros), _body_parameters(kernel, program, stage)),
        (*options, ARGUMENT_INFO),
        roles={**reads, f"{stage.writes}_new": "out"},
        work_sizes=form.planned_sizes(program, stage),
        scalars=kernel.scalars,
        title=kernel.name,
        file=source.file,
        origin=origin_of(kernel, source.file),
        form=form,
    )


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
    """The names of the parameters that the fields of a stage make."""
    names = {*stage.fields_read, f"{stage.writes}_new"}
    for field_name in used_fields(stage):
        names |= {f"{field_name}_first", *(f"{field_name}_pitch_{n}" for n in range(n_axes - 1))}
    return names


def _body_parameters(kernel: Kernel, program: Program, stage: Stage) -> str:
    """The parameter list that a body gets."""
    own = {name: value for name, value in kernel.scalars.items() if not _SIZE.fullmatch(name)}
    domain = ["DOMAIN"] if len(own) < len(kernel.scalars) else []
    written = program.dtype_of(stage)
    real = "VALUE" if written not in INTEGERS else "float"
    scalars = [
        f"const {real if isinstance(value, (float, np.floating)) else 'long'} {name}"
        for name, value in own.items()
    ]
    types = {
        field: "VALUE" if dtype == written else OPENCL_TYPES[dtype]
        for field, dtype in program.dtypes.items()
    }
    old = [f"__global const {types[name]} *restrict {name}" for name in stage.fields_read]
    tiles = [f"TILE({name})" for name in used_fields(stage)]
    new = f"__global VALUE *restrict {stage.writes}_new"
    return ", ".join([*old, new, *tiles, "BOX", *domain, *scalars])


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
    source: StageKernel, parameters: Sequence[Parameter], group: tuple[int, ...], program: Program
) -> StageKernel:
    """The same as its compiled text is launched.

    group: what that is compiled for, in OpenCL's order; zeros where that is nothing.  ValueError
    where it contradicts what is declared.
    """
    if source.form is None:     # it was generated
        return source
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
    return replace(source, work_sizes=sizes)


def local_nbytes(source: StageKernel, parameters: Sequence[Parameter]) -> dict[str, int]:
    """Bytes of each local memory that is a parameter."""
    found: dict[str, int] = {}
    if source.form is None:
        return found
    for parameter in parameters:
        if parameter.role == "local":
            dtype = cell_dtype(parameter.type_name)
            if dtype is None:
                raise ValueError(
                    f"kernel {source.title!r}: {parameter.name!r} is a {parameter.type_name}; "
                    f"local memory is an array of numbers"
                )
            found[parameter.name] = source.form.local_elements[parameter.name] * dtype.itemsize
    return found
