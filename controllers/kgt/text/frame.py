# SPDX-License-Identifier: MIT
"""What all generated kernels share: head, pragmas, parameters, the `StageKernel` itself.

A strategy writes the body, and helper functions where it needs some.
"""
from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from controllers.kgt.kernel import StageKernel, WorkSizes, stage_parameters
from controllers.kgt.parameter import Parameter, Role
from controllers.kgt.text import given
from controllers.kgt.text.analysis import divides, used_dtypes
from controllers.kgt.text.analysis import helpers as helper_functions
from controllers.kgt.text.c_lines import indented
from controllers.kgt.text.comment import head_comment
from controllers.kgt.text.emitter import OPENCL_TYPES, used_fields
from controllers.kgt.text.fast import CONTRACTION
from controllers.kgt.text.fold_text import fold_helpers, fold_parameters
from controllers.kgt.text.fold_values import values_of
from controllers.kgt.text.integer import quotient_for
from controllers.kgt.text.lanes import SCALAR, Lanes, clang_functions
from controllers.program.dtypes import given_dtype
from controllers.program.program import Program, Stage
from controllers.program.stage_check import Math


def kernel(
    program: Program,
    stage: Stage,
    how: str,
    body: Sequence[str],
    work_sizes: WorkSizes,
    *,
    helpers: Sequence[str] = (),
    own_functions: bool = False,
    lanes: Lanes = SCALAR,
    group: tuple[int, ...] = (),
    steps_per_launch: int = 1,
    scalars: Mapping[str, int] | None = None,
    more: Sequence[Parameter] = (),
    folds_by_group: bool = False,
    alike: bool = False,
) -> StageKernel:
    """The kernel of `stage` with this body; `how` says in a few words how it goes about it.

    `helpers` are lines before the kernel; `steps_per_launch` as in `StageKernel`; `group` is a
    fixed size of work-groups.  `scalars` are values of whole numbers that the body takes besides,
    and `more` parameters that whoever launches it knows.
    own_functions: clang computes what it can without OpenCL's library.  folds_by_group: as in
    `StageKernel`.  alike: the cells lie at the same elements of all fields.
    """
    more = (*(Parameter(each, "long", "scalar") for each in scalars or ()), *more)
    types = {field: OPENCL_TYPES[program.dtypes[field]] for field in used_fields(stage)}
    placed = used_fields(stage)[:1] if alike else used_fields(stage)
    as_first = _as_first(used_fields(stage), program.n_axes) if alike else []
    body = [*_overwritten(stage, types), *as_first, *body]
    helpers = [*_exact(program, fold_helpers(stage)), *helpers]
    real = OPENCL_TYPES[given_dtype(stage, program.dtypes)]
    name = _free(f"kgt_{stage.name}", [*helpers, *body, *given.declarations(stage, real)])
    lines = [
        *(f"// {line}".rstrip() for line in head_comment(program, stage, how, steps_per_launch)),
        *_pragmas(program, stage),
        "",
        *_functions(stage, program, helpers, body, lanes, own_functions),
        *(_fixed_group(group) if group else ()),
        f"__kernel void {name}(",
        *indented(_declared(program, stage, types, real, steps_per_launch, more, placed)),
        "{",
        *(line.rstrip() for line in indented(body)),
        "}",
        "",
    ]
    parameters = _parameters(program, stage, types, real, steps_per_launch, more, placed)
    return StageKernel(
        name, "\n".join(lines), parameters, work_sizes, steps_per_launch,
        divides(stage, program.dtypes), scalars or {},
        folds=values_of(stage), folds_by_group=folds_by_group,
    )  # fmt: skip


def _functions(
    stage: Stage, program: Program, helpers: Sequence[str], body: Sequence[str], lanes: Lanes,
    own_functions: bool,
) -> list[str]:  # fmt: skip
    """C lines: all functions before the kernel, and macros for what they call."""
    called, dtypes = helper_functions(stage, program.dtypes), used_dtypes(stage, program.dtypes)
    texts = [one.text for one in stage.elements]
    macros = clang_functions([*called, *helpers, *body], dtypes, texts) if own_functions else []
    return [*macros, *quotient_for([*helpers, *body], lanes), *called, *helpers]


def _parameters(
    program: Program, stage: Stage, types: Mapping[str, str], real: str, steps_per_launch: int,
    more: Sequence[Parameter], placed: tuple[str, ...],
) -> tuple[Parameter, ...]:  # fmt: skip
    """The parameters, which are those that `_declared` writes."""
    return stage_parameters(
        _buffers(stage), placed, types, program.n_axes,
        steps_per_launch=steps_per_launch,
        data=(*given.parameters(stage, real), *fold_parameters(stage), *more),
    )  # fmt: skip


def _declared(
    program: Program, stage: Stage, types: Mapping[str, str], real: str, steps_per_launch: int,
    more: Sequence[Parameter], placed: tuple[str, ...],
) -> list[str]:  # fmt: skip
    """C lines: the parameters, up to the closing bracket."""
    return [
        *buffer_parameters(_buffers(stage), types),
        *given.declarations(stage, real),
        *(_declaration(one) for one in (*fold_parameters(stage), *more)),
        *_scalar_parameters(placed, program.n_axes, steps_per_launch),
    ]


def _declaration(one: Parameter) -> str:
    """A C line: a parameter that is no field."""
    if one.role == "scalar":
        return f"const {one.type_name} {one.name},"
    const = "const " if one.role == "in" else ""
    return f"__global {const}{one.type_name.replace('*', ' *restrict ')}{one.name},"


def _buffers(stage: Stage) -> tuple[tuple[str, Role], ...]:
    """The fields that have a parameter, and what it is for."""
    over = {*stage.overwrites.values()}     # known by what is written over them
    return (
        *((field, "in") for field in stage.fields_read if field not in over),
        *((field, "inout" if field in stage.overwrites else "out") for field in stage.stored),
    )


def _overwritten(stage: Stage, types: Mapping[str, str]) -> list[str]:
    """C lines: the names of fields that lie in the memory of new values."""
    return [
        f"__global const {types[old]} *const {old} = {new}_new;  // each cell is read, then written"
        for new, old in stage.overwrites.items()
    ]


def _as_first(fields: Sequence[str], n_axes: int) -> list[str]:
    """C lines: where cells lie in all fields but the first one, which has them there, too."""
    words = ["first", *(f"pitch_{axis}" for axis in range(n_axes - 1))]
    first, *others = fields
    return [
        f"const long {', '.join(f'{other}_{word} = {first}_{word}' for word in words)};"
        for other in others
    ]


def _pragmas(program: Program, stage: Stage) -> list[str]:
    """C lines: which arithmetic the compiler may use."""
    doubles = "float64" in used_dtypes(stage, program.dtypes)
    return [
        _contraction(program.math),
        *(["#pragma OPENCL EXTENSION cl_khr_fp64 : enable"] if doubles else []),
    ]


def _exact(program: Program, functions: list[str]) -> list[str]:
    """C lines: functions that have to round as they are written, in any arithmetic."""
    if program.math == "strict" or not functions:
        return functions
    return [_contraction("strict"), *functions, _contraction(program.math), ""]


def _contraction(math: Math) -> str:
    """A C line: whether a product and the sum it goes to may be rounded once."""
    return f"#pragma OPENCL FP_CONTRACT {CONTRACTION[math]}"


def _free(name: str, lines: Sequence[str]) -> str:
    """`name`, or a longer one where a stage is called as something that its kernel has."""
    while any(re.search(rf"\b{name}\b", line) for line in lines):
        name += "_stage"
    return name


def buffer_parameters(
    buffers: Sequence[tuple[str, str]], types: Mapping[str, str]
) -> list[str]:
    """The parameters of the buffers, one line each, each with its comma."""
    return [
        f"__global const {types[field]} *restrict {field},"
        if role == "in"
        else f"__global {types[field]} *restrict {field}_new,"
        for field, role in buffers
    ]


def minimum(left: str, right: str) -> str:
    """C text of the smaller of two names or numbers."""
    return f"{left} < {right} ? {left} : {right}"


def _fixed_group(group: tuple[int, ...]) -> list[str]:
    return [f"__attribute__((reqd_work_group_size({', '.join(map(str, group))})))"]


def _scalar_parameters(
    fields: tuple[str, ...], n_axes: int, steps_per_launch: int
) -> list[str]:
    pitches = "; elements per step on an axis" if n_axes > 1 else ""
    lines = [f"// the element of the box's first cell{pitches}"]
    for field in fields:
        names = [f"{field}_first", *(f"{field}_pitch_{axis}" for axis in range(n_axes - 1))]
        lines.append(", ".join(f"const long {name}" for name in names) + ",")
    extents = ", ".join(f"const long extent_{axis}" for axis in range(n_axes))
    lines.append("// the cells of the box")
    if steps_per_launch == 1:
        return [*lines, f"{extents})"]
    limits = ", ".join(
        f"const long computed_first_{axis}, const long computed_last_{axis}"
        for axis in range(n_axes)
    )
    return [*lines, f"{extents},", "// the cells that are computed at all", f"{limits})"]
