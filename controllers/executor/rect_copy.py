# SPDX-License-Identifier: MIT
"""Rectangular copies in OpenCL's terms: three axes counted in bytes; four for our own kernel."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, chain

import numpy as np
import numpy.typing as npt

from hitmap.strided import Strided


def three_axes(where: Strided) -> list[Strided]:
    """A box of one to four axes as boxes of three, which is what OpenCL copies."""
    if len(where.extent) < 4:
        missing = 3 - len(where.extent)
        pitches, extent = (0,) * missing + where.pitches, (1,) * missing + where.extent
        return [Strided(where.first, pitches, extent)]
    return [
        Strided(where.first + index * where.pitches[0], where.pitches[1:], where.extent[1:])
        for index in range(where.extent[0])
    ]


def four_axes(where: Strided) -> Strided:
    """A box of one to four axes as one of four, which is what copy_box.cl copies."""
    missing = 4 - len(where.extent)
    return Strided(where.first, (0,) * missing + where.pitches, (1,) * missing + where.extent)


def boxes_of(copies: Sequence[Sequence[tuple[Strided, Strided]]]) -> npt.NDArray[np.int64]:
    """What copy_boxes.cl must know of the boxes of some copies, and where they go.

    Where each copy begins; from there on how many cells it has, then 18 numbers for each box or
    two: boxes of as many rows, as far apart, are taken together row by row, as both ends of rows
    are close in memory.

    >>> boxes_of([[(Strided(8, (1,), (3,)), Strided(2, (5,), (3,)))]]).tolist()
    [1, 3, 3, 8, 0, 0, 0, 1, 2, 0, 0, 0, 5, 1, 1, 1, 3, 3, 0, 0]
    """
    parts = []
    for moves in copies:
        boxes: list[list[int]] = []
        alone: dict[object, list[int]] = {}
        for source, target in (map(four_axes, move) for move in moves):
            ends = source.first, *source.pitches, target.first, *target.pitches
            rows = source.pitches, target.pitches, source.extent[:-1]
            other = alone.pop(rows, None)
            if other is None:
                boxes.append([source.n_cells, *ends, *source.extent, source.extent[-1], 0, 0])
                alone[rows] = boxes[-1]
            else:
                other[0] += source.n_cells
                other[-4] += source.extent[-1]
                other[-2:] = source.first, target.first
        parts.append([sum(box[0] for box in boxes), *chain.from_iterable(boxes)])
    starts = accumulate(map(len, parts[:-1]), initial=len(parts))
    return np.array([*starts, *chain.from_iterable(parts)], np.int64)


def rectangles(buffer: Strided, host: Strided, itemsize: int) -> Iterator[dict[str, object]]:
    """The arguments of `pyopencl.enqueue_copy` for each copy; OpenCL's axis 0 is our last.

    >>> [copy] = rectangles(Strided(13, (6, 1), (2, 3)), Strided(0, (3, 1), (2, 3)), 4)
    >>> copy["buffer_origin"], copy["host_origin"], copy["region"]
    ((4, 2, 0), (0, 0, 0), (12, 2, 1))
    """
    for there, here in zip(three_axes(buffer), three_axes(host), strict=True):
        yield {
            "buffer_origin": _origin(there, itemsize),
            "host_origin": _origin(here, itemsize),
            "region": (there.extent[2] * itemsize, there.extent[1], there.extent[0]),
            "buffer_pitches": (there.pitches[1] * itemsize, there.pitches[0] * itemsize),
            "host_pitches": (here.pitches[1] * itemsize, here.pitches[0] * itemsize),
        }


def _origin(where: Strided, itemsize: int) -> tuple[int, int, int]:
    planes, rest = divmod(where.first, where.pitches[0] or where.first + 1)
    rows, cells = divmod(rest, where.pitches[1] or rest + 1)
    return cells * itemsize, rows, planes
