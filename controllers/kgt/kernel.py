# SPDX-License-Identifier: MIT
"""The kernel of a stage: its source, and how it is called."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy.typing as npt

from controllers.kgt.parameter import Parameter, Role
from controllers.kgt.text.fold_values import FoldValue
from controllers.program.program import Math

WorkSizes = Callable[[tuple[int, ...], bool], tuple[tuple[int, ...], tuple[int, ...]]]
# Constant arrays that a kernel reads, given the pitches of its field.
Tables: TypeAlias = Callable[[tuple[int, ...]], Mapping[str, npt.NDArray[Any]]]


@dataclass(frozen=True)
class StageKernel:
    """OpenCL C of one stage, which compiles alone, and how its one kernel, `name`, is called.

    parameters: in order; all are bound by name, to the tiles' buffers and places, to the scalars of
        the box, and to `scalars` and `tables`, which it has beside them.
    work_sizes: `work_sizes(extent, is_cpu)` gives the global and the local size, in OpenCL's order,
        for a box that suits.
    steps_per_launch: time steps that it computes.
    divides: a float32 kernel has the strict bits only if built with
        -cl-fp32-correctly-rounded-divide-sqrt, on devices that need it.
    options: of its build on a device, where one is known.
    origin: where the text comes from, for people.
    math: strict arithmetic is built without options that the environment adds.
    hint: what a user's text in it may name, for errors of the compiler.
    folds: what it folds.  folds_by_group: each work-group has a slot for that, else each item.
    """

    name: str
    source: str
    parameters: tuple[Parameter, ...]
    work_sizes: WorkSizes
    steps_per_launch: int = 1
    divides: bool = False
    scalars: Mapping[str, float] = field(default_factory=dict)
    tables: Tables | None = None
    options: tuple[str, ...] = ()
    origin: str = ""
    math: Math = "strict"
    hint: str = ""
    folds: tuple[FoldValue, ...] = ()
    folds_by_group: bool = False

    @property
    def title(self) -> str:
        """What people call it."""
        return self.name

    @property
    def file(self) -> str:
        """The user's file, for messages; "" where there is none."""
        return ""


def stage_parameters(
    buffers: Sequence[tuple[str, Role]],
    fields: Sequence[str],
    cell_types: Mapping[str, str],
    n_axes: int,
    *,
    steps_per_launch: int = 1,
    data: Sequence[Parameter] = (),
    starts: bool = False,
) -> tuple[Parameter, ...]:
    """The parameters of a kernel, in order: `buffers` as (field, "in" | "out"), of `cell_types`.

    Then `data`, per field of `fields` its first element and its pitches, and the extents of the
    box.  With several steps per launch follow, per axis, the first and the last cell (exclusive)
    that the stage computes, counted from the box's first cell: all others keep their value.
    starts: at last it is told where the box starts.
    """
    tiles = (
        Parameter(field if role == "in" else f"{field}_new", f"{cell_types[field]}*", role)
        for field, role in buffers
    )
    names: list[str] = []
    for one in fields:
        names += [f"{one}_first", *_numbered(f"{one}_pitch", n_axes - 1)]
    names += _numbered("extent", n_axes)
    if steps_per_launch > 1:
        for axis in range(n_axes):
            names += [f"computed_first_{axis}", f"computed_last_{axis}"]
    names += _numbered("lower", n_axes) if starts else []
    return (*tiles, *data, *(Parameter(name, "long", "scalar") for name in names))


def _numbered(name: str, count: int) -> list[str]:
    return [f"{name}_{axis}" for axis in range(count)]
