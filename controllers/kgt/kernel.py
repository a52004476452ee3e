# SPDX-License-Identifier: MIT
"""A generated kernel: its source, and how it is called."""
from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from controllers.kgt.parameter import Parameter

WorkSizes = Callable[[tuple[int, ...], bool], tuple[tuple[int, ...], tuple[int, ...]]]
# Constant arrays that a kernel reads, given the pitches of its field.
Tables: TypeAlias = Callable[[tuple[int, ...]], Mapping[str, npt.NDArray[Any]]]


@dataclass(frozen=True)
class GeneratedKernel:
    """OpenCL C of one stage, which compiles alone, and the arguments of its one kernel, `name`.

    Arguments in order: `buffers` as (field, "in" | "out"); then per field of `fields` its first
    element and its pitches; then the extents of the box (`scalars` gives them all).  The cells of
    a field have the OpenCL C type of `cell_types`.  Where `divides` is true float32 has the strict
    bits only if it is built with -cl-fp32-correctly-rounded-divide-sqrt, on devices that need it.
    `work_sizes(extent, is_cpu)` gives the global and the local size, in OpenCL order, for a box
    that suits the configuration.

    With `steps_per_launch` over 1 it computes so many time steps, and the last arguments are, per
    axis, the first and the last cell (exclusive) that the stage computes, counted from the box's
    first cell: all others keep their value.

    A kernel that is written by hand may have `data` after its buffers, which are scalars of values
    in `constants` and arrays of `tables`, and be told at last where the box `starts`.
    """

    name: str
    source: str
    buffers: tuple[tuple[str, str], ...]
    fields: tuple[str, ...]
    cell_types: Mapping[str, str]
    n_axes: int
    divides: bool
    work_sizes: WorkSizes
    steps_per_launch: int = 1
    data: tuple[Parameter, ...] = ()
    starts: bool = False
    constants: Mapping[str, float] = dataclasses.field(default_factory=dict)
    tables: Tables | None = None

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters, in order."""
        cells = {field: f"{name}*" for field, name in self.cell_types.items()}
        buffers = (
            Parameter(field, cells[field], "in")
            if role == "in"
            else Parameter(f"{field}_new", cells[field], "out")
            for field, role in self.buffers
        )
        scalars = (Parameter(name, "long", "scalar") for name in self._scalar_names())
        return (*buffers, *self.data, *scalars)

    def _scalar_names(self) -> list[str]:
        names: list[str] = []
        for field in self.fields:
            names += [f"{field}_first", *_numbered(f"{field}_pitch", self.n_axes - 1)]
        names += _numbered("extent", self.n_axes)
        if self.steps_per_launch > 1:
            for axis in range(self.n_axes):
                names += [f"computed_first_{axis}", f"computed_last_{axis}"]
        return names + (_numbered("lower", self.n_axes) if self.starts else [])

    def scalars(
        self,
        first: Mapping[str, int],
        pitches: Mapping[str, tuple[int, ...]],
        extent: tuple[int, ...],
        computed: Sequence[tuple[int, int]] = (),
    ) -> list[np.int64]:
        """The arguments after the buffers, for one box.

        Per field: `first`, the element index of the box's first cell in its buffers, and
        `pitches`, the elements per step on every axis but the last (there it is 1).  `extent` is
        the box's, in cells.  `computed`, per axis, is for a kernel of several steps.
        """
        values: list[int] = []
        for field in self.fields:
            if len(pitches[field]) != self.n_axes - 1:
                raise ValueError(
                    f"kernel {self.name!r}: field {field!r} needs {self.n_axes - 1} pitches, "
                    f"got {pitches[field]}; leave out the last axis, whose pitch is 1"
                )
            values += [first[field], *pitches[field]]
        if len(extent) != self.n_axes:
            raise ValueError(f"kernel {self.name!r}: a box has {self.n_axes} extents, got {extent}")
        if len(computed) != (self.n_axes if self.steps_per_launch > 1 else 0):
            raise ValueError(
                f"kernel {self.name!r}, {self.steps_per_launch} steps per launch: the cells that "
                f"are computed are told per axis to a kernel of several steps, and to no other"
            )
        limits = (limit for axis in computed for limit in axis)
        return [np.int64(value) for value in (*values, *extent, *limits)]


def _numbered(name: str, count: int) -> list[str]:
    return [f"{name}_{axis}" for axis in range(count)]
