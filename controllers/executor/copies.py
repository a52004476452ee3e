# SPDX-License-Identifier: MIT
"""Copies of boxes of cells on one device, by kernels: several in one launch where that pays."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyopencl as cl

from controllers.executor.rect_copy import boxes_of, four_axes
from controllers.kernel.build import Built, build
from controllers.kgt.strategies.cell.config import work_sizes
from controllers.kgt.text.fixed import fixed_source
from controllers.memory.tile import Linear
from hitmap.strided import Strided

# The OpenCL types that copies take cells as, by their size: bits are moved, not numbers.
CELL_TYPES = {1: "uchar", 2: "ushort", 4: "uint", 8: "ulong"}
Sizes: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]
Launch: TypeAlias = tuple[Built, Sequence[object], Sizes]      # with its arguments
Move: TypeAlias = tuple[Strided, Strided]


class Copies:
    """The kernels that copy, built when they are needed first.

    constants: makes device memory that holds an array.
    """

    def __init__(
        self, context: cl.Context, is_cpu: bool,
        constants: Callable[[npt.NDArray[Any]], cl.Buffer],
    ) -> None:  # fmt: skip
        self._context, self._is_cpu, self._constants = context, is_cpu, constants
        self._built: dict[tuple[str, int], Built] = {}

    def launches(
        self, source: Linear, target: Linear, itemsize: int, moves: Sequence[Move]
    ) -> Iterator[Launch]:
        """Those that copy boxes between two buffers.

        One for each on a CPU, where cells cost more than launches; elsewhere one for all.
        """
        if not self._is_cpu and len(moves) > 1:
            yield self._together(source, target, itemsize, moves)
            return
        for move in moves:
            four = [four_axes(end) for end in move]
            extent = four[0].extent
            scalars = [value for end in four for value in (end.first, *end.pitches)]
            sizes = work_sizes((extent[0] * extent[1], *extent[2:]), self._is_cpu)
            arguments = [source, target, *map(np.int64, (*scalars, *extent))]
            yield self._kernel("copy_box", itemsize), arguments, sizes

    def _together(
        self, source: Linear, target: Linear, itemsize: int, moves: Sequence[Move]
    ) -> Launch:
        found = boxes_of(moves)
        n_cells = int(found[:, 0].sum())
        (local,) = work_sizes((n_cells,), is_cpu=False)[1]
        arguments = [source, target, self._constants(found.reshape(-1)), np.int64(n_cells)]
        sizes = (-(-n_cells // local) * local,), (local,)
        return self._kernel("copy_boxes", itemsize), arguments, sizes

    def _kernel(self, name: str, itemsize: int) -> Built:
        """For cells of so many bytes."""
        if (name, itemsize) not in self._built:
            options = [f"-DCELL={CELL_TYPES[itemsize]}"]
            built = build(self._context, name, fixed_source(name), options)
            self._built[name, itemsize] = Built(name, built, ())
        return self._built[name, itemsize]
