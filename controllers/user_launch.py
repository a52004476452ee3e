# SPDX-License-Identifier: MIT
"""A user's kernel, built for one device, and its launches over boxes of cells."""
from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import prod
from typing import TypeAlias, Union

import numpy as np
import pyopencl as cl

from controllers.access import Access
from controllers.event import Command
from controllers.kernel import build_user_kernel
from controllers.kgt.cell import work_sizes
from controllers.opencl_executor import OpenCLExecutor, SharedKernel
from controllers.parameter import TILE_ROLES, Parameter, bind, cell_dtype
from controllers.stage_kernel import box_values, tile_values
from controllers.tied_tile import Selection, TiedTile, selection_of
from controllers.variant import Kernel
from hitmap.shape import Shape
from hitmap.strided import Strided

Argument: TypeAlias = Union[TiedTile, Selection, float, np.generic]

_OF_BOX = re.compile(r"(extent|lower)_\d")
_GROUPED_AXES = 3


class UserLaunch:
    """One kernel for boxes of `n_axes` axes; `grouped`: the caller chooses the work-groups."""

    def __init__(
        self, executor: OpenCLExecutor, kernel: Kernel, n_axes: int, *, grouped: bool
    ) -> None:
        self._executor = executor
        self._title = kernel.name
        macros = {"ONCE": ""} if grouped else {}
        self._built = build_user_kernel(
            executor.context, executor.device, kernel, n_axes, macros, executor.accessors
        )
        self._kernel = SharedKernel(self._built)

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
            is_tile = isinstance(argument, (TiedTile, Selection))
            if is_tile != (parameter.role in TILE_ROLES):
                wanted = "a tile or selection" if parameter.role in TILE_ROLES else "a number"
                raise TypeError(
                    f"kernel {self._title!r}: {name!r} takes {wanted}, got "
                    f"{type(argument).__name__}"
                )
            if isinstance(argument, (TiedTile, Selection)):
                accesses.append(self._access(parameter, selection_of(argument), over))
        return accesses

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
        numbers = dict(scalars)
        for name, argument in arguments.items():
            if isinstance(argument, (TiedTile, Selection)):
                selection = selection_of(argument)
                tile = selection.tile
                assert tile.memory is not None, "a tile with an image on the device"
                values |= {**self._tile_arguments(name, selection, over), name: tile.memory.buffer}
            else:
                numbers[name] = argument  # type: ignore[assignment]
        for parameter in self._built.parameters:
            if parameter.role == "local" and parameter.name in numbers:
                nbytes = int(numbers.pop(parameter.name)) * _cell(parameter).itemsize
                values[parameter.name] = cl.LocalMemory(nbytes)
        bound = bind(self._title, self._built.parameters, values, numbers)
        return self._executor.launch_once_command(self._kernel, bound, self._sizes(over, group))

    def _tile_arguments(self, name: str, selection: Selection, over: Shape) -> dict[str, object]:
        where = _start(selection.tile, over)
        if selection.cells.n_axes != over.n_axes:
            return {**tile_values(name, where)}
        cells = selection.cells.shift(tuple(-first for first in over.lower))
        return self._executor.tile_arguments(name, where, cells)

    def _access(self, parameter: Parameter, selection: Selection, over: Shape) -> Access:
        tile, dtype = selection.tile, cell_dtype(parameter.type_name)
        if dtype is not None and dtype != tile.dtype:
            raise TypeError(
                f"kernel {self._title!r}: {parameter.name!r} is a {parameter.type_name}, and the "
                f"tile holds {tile.dtype}; make them agree"
            )
        role = parameter.role
        assert role in ("in", "out", "inout"), "the role of a tile"
        inside = over.n_axes == tile.box.n_axes and selection.cells in over
        # cells of `out` beyond the launch are kept, not written
        return Access(selection, "inout" if role == "out" and not inside else role)

    def _sizes(
        self, over: Shape, group: Sequence[int] | None
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Global and local size in OpenCL's order."""
        if group is None:
            return work_sizes(over.extent, self._executor.device.kind == "cpu")
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
