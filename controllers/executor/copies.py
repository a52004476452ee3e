# SPDX-License-Identifier: MIT
"""Copies of boxes of cells on one device, by kernels: several in one launch where that pays."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyopencl as cl

from controllers.executor.rect_copy import boxes_of, four_axes
from controllers.kernel.build import Built, build
from controllers.kgt.strategies.cell.config import work_sizes
from controllers.kgt.text.fixed import UNSIGNED_TYPES, fixed_source
from controllers.memory.tile import Linear
from hitmap.strided import Strided

# The OpenCL types that copies take cells as, by their size: bits are moved, not numbers.
CELL_TYPES = {**UNSIGNED_TYPES, 16: "uint4"}
LEAST_RUN = 1 << 20     # bytes without a gap that a device's driver copies rather than a kernel
MOST_PAIRS = 8      # of buffers, that copy_boxes.cl takes
MOST_CELLS = 2**32 - 2**16  # of a pair, rounded up to work-groups
Sizes: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]
Launch: TypeAlias = tuple[Built, Sequence[object], Sizes]      # with its arguments
Move: TypeAlias = tuple[Strided, Strided]
Run: TypeAlias = tuple[Linear, Linear, int, int, int]   # from where to where, in bytes, how many


def without_runs(
    itemsize: int, copies: Sequence[tuple[Linear, Linear, Sequence[Move]]]
) -> tuple[list[Run], list[tuple[Linear, Linear, Sequence[Move]]]]:
    """The moves of many cells without a gap at either end, and the others.

    >>> many, few = (Strided(8, (1,), (n,)) for n in (1 << 20, 9))
    >>> a, b = np.zeros(1), np.zeros(2)
    >>> runs, rest = without_runs(4, [(a, b, [(many, many), (few, few)])])
    >>> [run[2:] for run in runs], [len(moves) for _, _, moves in rest]
    ([(32, 32, 4194304)], [1])
    """
    runs: list[Run] = []
    rest: list[tuple[Linear, Linear, Sequence[Move]]] = []
    for source, target, moves in copies:
        few = []
        for move in moves:
            a, b = move
            nbytes = a.n_cells * itemsize
            if nbytes >= LEAST_RUN and a.contiguous and b.contiguous:
                runs.append((source, target, a.first * itemsize, b.first * itemsize, nbytes))
            else:
                few.append(move)
        rest += [(source, target, few)] if few else []
    return runs, rest


def widened(itemsize: int, move: Move) -> tuple[int, Move]:
    """The same bytes as fewer cells, as wide as both ends allow: the size of one, and the move.

    >>> dense = Strided(0, (12, 1), (3, 12))
    >>> widened(4, (Strided(8, (20, 1), (3, 12)), dense))[1][0]
    Strided(first=2, pitches=(5, 1), extent=(3, 3))
    >>> [widened(4, (Strided(8, (pitch, 1), (3, 12)), dense))[0] for pitch in (20, 22, 23)]
    [16, 8, 4]
    """
    for size in sorted(CELL_TYPES, reverse=True):
        n = size // itemsize
        if n > 1 and all(_divides(n, end) for end in move):
            source, target = (_in_groups(n, end) for end in move)
            return size, (source, target)
    return itemsize, move


def _divides(n: int, end: Strided) -> bool:
    """Whether each row consists of whole groups of so many cells, which begin at such a group."""
    numbers = (end.first, *end.pitches[:-1], end.extent[-1])
    return end.pitches[-1] == 1 and not any(number % n for number in numbers)


def _in_groups(n: int, end: Strided) -> Strided:
    pitches = (*(pitch // n for pitch in end.pitches[:-1]), 1)
    return Strided(end.first // n, pitches, (*end.extent[:-1], end.extent[-1] // n))


class Copies:
    """The kernels that copy, built with `options` when they are needed first.

    constants: makes device memory that holds an array.
    """

    def __init__(
        self, context: cl.Context, is_cpu: bool,
        constants: Callable[[npt.NDArray[Any]], cl.Buffer], options: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self._context, self._is_cpu, self._constants = context, is_cpu, constants
        self._options = options
        self._built: dict[tuple[str, int], Built] = {}

    def launches(
        self, itemsize: int, copies: Sequence[tuple[Linear, Linear, Sequence[Move]]]
    ) -> Iterator[Launch]:
        """Those that copy boxes between pairs of buffers.

        One for each box on a CPU, where cells cost more than launches; elsewhere one for all.
        """
        n_boxes = sum(len(moves) for _, _, moves in copies)
        if not self._is_cpu and n_boxes > 1 and _most_cells(copies) < MOST_CELLS:
            for first in range(0, len(copies), MOST_PAIRS):
                yield self._together(itemsize, copies[first : first + MOST_PAIRS])
            return
        for source, target, moves in copies:
            for cells in moves:
                size, move = (itemsize, cells) if self._is_cpu else widened(itemsize, cells)
                four = [four_axes(end) for end in move]
                extent = four[0].extent
                scalars = [value for end in four for value in (end.first, *end.pitches)]
                sizes = work_sizes((extent[0] * extent[1], *extent[2:]), self._is_cpu)
                arguments = [source, target, *map(np.int64, (*scalars, *extent))]
                yield self._kernel("copy_box", size), arguments, sizes

    def _together(
        self, itemsize: int, copies: Sequence[tuple[Linear, Linear, Sequence[Move]]]
    ) -> Launch:
        most = _most_cells(copies)
        (local,) = work_sizes((most,), is_cpu=False)[1]
        buffers = [(source, target) for source, target, _ in copies]
        buffers += buffers[:1] * (MOST_PAIRS - len(buffers))
        table = self._constants(boxes_of([moves for _, _, moves in copies]))
        sizes = (-(-most // local) * local, len(copies)), (local, 1)
        return self._kernel("copy_boxes", itemsize), [*chain(*buffers), table], sizes

    def _kernel(self, name: str, itemsize: int) -> Built:
        """For cells of so many bytes."""
        if (name, itemsize) not in self._built:
            options = [f"-DCELL={CELL_TYPES[itemsize]}", *self._options]
            built = build(self._context, name, fixed_source(name), options)
            self._built[name, itemsize] = Built(name, built, ())
        return self._built[name, itemsize]


def _most_cells(copies: Sequence[tuple[Linear, Linear, Sequence[Move]]]) -> int:
    """That are copied for one pair of buffers."""
    return max((sum(move[0].n_cells for move in moves) for _, _, moves in copies), default=0)
