# SPDX-License-Identifier: MIT
"""A user's kernel, built for one device, and its launches over boxes of cells."""
from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, TypeAlias, Union

import numpy as np
import pyopencl as cl

from controllers.controller.access import Access
from controllers.controller.footprint import touches
from controllers.controller.structure import check_structure
from controllers.controller.tied_tile import Cells, TiedTile
from controllers.device.event import Command
from controllers.executor.launching_device import SharedKernel
from controllers.executor.opencl import OpenCLExecutor
from controllers.kernel.build import build_user_kernel
from controllers.kernel.stage_kernel import box_values, tile_values
from controllers.kernel.user_kernel import compiled_sizes
from controllers.kernel.variant import Kernel
from controllers.kgt.parameter import TILE_ROLES, Parameter, bind, cell_dtype
from hitmap.argument import wholes
from hitmap.shape import Shape
from hitmap.strided import Strided

Argument: TypeAlias = Union[Cells, float, np.generic]    # of one parameter

_OF_BOX = re.compile(r"(extent|lower)_\d")
_GROUPED_AXES = 3


class UserLaunch:
    """One kernel for boxes of `n_axes` axes; `grouped`: the caller chooses the work-groups."""

    def __init__(
        self, executor: OpenCLExecutor, kernel: Kernel, n_axes: int, *, grouped: bool
    ) -> None:
        self._executor = executor
        self._title = kernel.name
        variant = kernel.variant(executor.device)
        source, self._form = variant.source, variant.form
        self._form.check(f"kernel {kernel.name!r}", n_axes)
        if self._form.like is not None or self._form.steps_per_launch > 1:
            raise ValueError(
                f"kernel {kernel.name!r} is launched like a generated one, or computes several "
                f"steps, which is for stages of programs; use a Computation"
            )
        macros = {"ONCE": ""} if grouped or self._form.is_grouped(source) else {}
        self._built = build_user_kernel(
            executor.context, executor.device, kernel, n_axes, macros, executor.accessors,
            executor.own_options,
        )  # fmt: skip
        self._kernel, self._group = SharedKernel(self._built), self._built.group
        self._touches = touches(source.body(self._built.name), source.code)
        self._alike: set[tuple[str, np.dtype[Any]]] = set()     # parameters that suit these dtypes

    def accesses(self, over: Shape, arguments: Mapping[str, Argument]) -> list[Access]:
        """What a launch over `over` reads and writes; all tiles have an image on the device.

        ValueError or TypeError where an argument does not suit its parameter.
        """
        known = {parameter.name: parameter for parameter in self._built.parameters}
        accesses = []
        for name, argument in arguments.items():
            if name not in known or _OF_BOX.fullmatch(name):
                raise TypeError(
                    f"kernel {self._title!r} has no parameter {name!r} to set; it has "
                    f"{', '.join(p for p in known if not _OF_BOX.fullmatch(p))}"
                )
            parameter = known[name]
            is_tile = isinstance(argument, Cells)
            if is_tile != (parameter.role in TILE_ROLES):
                wanted = "a tile or selection" if parameter.role in TILE_ROLES else "a number"
                raise TypeError(
                    f"kernel {self._title!r}: {name!r} takes {wanted}, got "
                    f"{type(argument).__name__}"
                )
            if isinstance(argument, Cells):
                accesses.append(self._access(parameter, argument, over))
        self._check_writing(over, arguments)
        return accesses

    def _check_writing(self, over: Shape, arguments: Mapping[str, Argument]) -> None:
        """ValueError where a launch reads cells by one name that by another it only writes.

        Such cells may be computed twice (`build_user_kernel`), the second time from what is new.
        """
        roles = {parameter.name: parameter.role for parameter in self._built.parameters}
        tiles = {name: one for name, one in arguments.items() if isinstance(one, Cells)}
        for name, written in tiles.items():
            if roles[name] != "out":
                continue
            box = written.box & over if written.box.n_axes == over.n_axes else written.box
            others = ((other, read) for other, read in tiles.items() if roles[other] != "out")
            for other, read in others:
                if read.tile is written.tile and not (both := box & read.box).empty:
                    raise ValueError(
                        f"kernel {self._title!r}: {name!r} is given as writing, so that no cell "
                        f"of it may be read, and {other!r} reads {both} of the same tile; give a "
                        f"copy as {other!r}, or {name!r} as updating where each cell is made of "
                        f"itself alone"
                    )

    def check_cells(self, over: Shape, arguments: Mapping[str, Argument]) -> None:
        """ValueError where a launch over `over` leads out of a tile or selection.

        Only what `controllers.controller.footprint` knows of is seen.
        """
        for touch in self._touches:
            argument = arguments.get(touch.name)
            if isinstance(argument, Cells):
                cells = argument.box
                if cells.n_axes != over.n_axes or len(touch.offset or over.extent) != over.n_axes:
                    continue
                within = touch.launched_within(cells, over)
                if within is not None:
                    smaller = "" if within.empty else f"launch over {within}, or "
                    raise ValueError(
                        f"kernel {self._title!r}: a launch over {over} leads {touch.text} out of "
                        f"the cells {cells} that it was given as {touch.name!r}; {smaller}give "
                        f"more cells; cells that only some work-items need are read by AT"
                    )

    def command(
        self,
        over: Shape,
        arguments: Mapping[str, Argument],
        scalars: Mapping[str, float],
        group: Sequence[int] | None,
    ) -> Command:
        """The launch over `over`, which has a cell, with all arguments set.

        `scalars` are the values of those that `arguments` does not name.
        """
        values: dict[str, object] = {**box_values(over)}
        numbers = {**self._form.local_elements, **scalars}
        for name, argument in arguments.items():
            if isinstance(argument, Cells):
                memory = argument.tile.memory
                assert memory is not None, "a tile with an image on the device"
                values |= {**self._tile_arguments(name, argument, over), name: memory.buffer}
            else:
                numbers[name] = argument  # type: ignore[assignment]
        for parameter in self._built.parameters:
            if parameter.role == "local" and parameter.name in numbers:
                nbytes = int(numbers.pop(parameter.name)) * _cell(parameter).itemsize
                values[parameter.name] = cl.LocalMemory(nbytes)
        bound = bind(self._title, self._built.parameters, values, numbers)
        return self._executor.shared_command(self._kernel, bound, self._sizes(over, group))

    def _tile_arguments(self, name: str, cells: Cells, over: Shape) -> dict[str, object]:
        where = _start(cells.tile, over)
        if cells.box.n_axes != over.n_axes:
            return {**tile_values(name, where)}
        reachable = cells.box.shift(tuple(-first for first in over.lower))
        return self._executor.tile_arguments(name, where, reachable)

    def _access(self, parameter: Parameter, cells: Cells, over: Shape) -> Access:
        dtype = cell_dtype(parameter.type_name)
        if cells.dtype.kind == "V" and dtype is None:
            self._check_structure(parameter, cells.dtype)
        if dtype is not None and dtype != cells.dtype:
            raise TypeError(
                f"kernel {self._title!r}: {parameter.name!r} is a {parameter.type_name}, and the "
                f"tile holds {cells.dtype}; make them agree"
            )
        role = parameter.role
        assert role in ("in", "out", "inout"), "the role of a tile"
        inside = over.n_axes == cells.box.n_axes and cells.box in over
        # cells of `out` beyond the launch are kept, not written
        return Access(cells, "inout" if role == "out" and not inside else role)

    def _check_structure(self, parameter: Parameter, dtype: np.dtype[Any]) -> None:
        """TypeError where the cells of `parameter` are laid out otherwise than `dtype`."""
        pair = parameter.name, dtype
        if pair not in self._alike:
            type_name = parameter.type_name.replace("*", "").strip()
            check_structure(
                self._executor.context, self._title, self._built.text, type_name, dtype
            )
            self._alike.add(pair)

    def _sizes(
        self, over: Shape, group: Sequence[int] | None
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Global and local size in OpenCL's order."""
        if group is None:
            title, form = f"kernel {self._title!r}", self._form
            sizes = compiled_sizes(form, form.sizes(()), self._group, over.n_axes, title)
            return sizes(over.extent, self._executor.device.kind == "cpu")
        group = wholes(group, "group")
        handle = self._executor.device.handle
        assert handle is not None, "an OpenCL device"
        fits = len(group) == over.n_axes <= _GROUPED_AXES and min(group) > 0
        if not fits or prod(group) > handle.max_work_group_size:
            raise ValueError(
                f"a work-group has one extent per axis, for at most {_GROUPED_AXES} axes, and at "
                f"most {handle.max_work_group_size} items here, got {tuple(group)} for {over}; "
                f"use a smaller one, or None"
            )
        whole = [-(-cells // items) * items for cells, items in zip(over.extent, group)]
        return tuple(whole[::-1]), tuple(group[::-1])


def _start(tile: TiedTile, over: Shape) -> Strided:
    """Where the first cell of `over` lies, or would lie, in a tile of as many axes.

    In others the cell with the coordinates 0.
    """
    same = tile.box.n_axes == over.n_axes
    first = tile.geometry.element(over.lower if same else (0,) * tile.box.n_axes)
    return Strided(first, tile.geometry.pitches, over.extent)


def _cell(parameter: Parameter) -> np.dtype[np.generic]:
    dtype = cell_dtype(parameter.type_name)
    if dtype is None:
        raise TypeError(
            f"{parameter.name!r} is a {parameter.type_name}; local memory is an array of numbers"
        )
    return dtype
