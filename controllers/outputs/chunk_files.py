# SPDX-License-Identifier: MIT
"""Chunks of zarr arrays as files: those that lie within a part are written straight from it.

Nobody reads a chunk before its moment is listed, and nobody else writes it, so that it needs no
other name meanwhile.
"""
from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np

from controllers.outputs.variable import Part, Variable
from hitmap.files import sync
from hitmap.shape import Shape

PIECE_BYTES = 1 << 20   # that are made ready and written at a time: they stay in a core's cache
WRITERS = 2             # chunks at a time: steps have the other cores (docs/output.md)


class Chunk(NamedTuple):
    """A chunk of a variable, and the box of its cells that a part has; whole: these are all."""

    at: tuple[int, ...]
    box: Shape
    is_whole: bool


def chunks_of(part: Part) -> Iterator[Chunk]:
    """In C order; one that ends beyond the variable is not whole."""
    box, size = part.box, part.variable.chunk
    firsts = [low // n for low, n in zip(box.lower, size)]
    ends = [-(-high // n) for high, n in zip(box.upper, size)]
    for index in product(*map(range, firsts, ends)):
        lower = tuple(at * n for at, n in zip(index, size))
        own = box & Shape(lower, tuple(low + n for low, n in zip(lower, size)))
        yield Chunk(index, own, own.extent == size)


def write_chunks(chunks: Sequence[tuple[Path, Variable, np.ndarray]]) -> None:
    """`write_chunk` for each, of unlike names, some at a time; after an error no more are begun."""
    if chunks:
        with ThreadPoolExecutor(WRITERS, "controllers-chunk") as writers:
            for _ in writers.map(write_chunk, *zip(*chunks)):
                pass


def write_chunk(path: Path, variable: Variable, cells: np.ndarray) -> None:
    """The cells of a whole chunk, which are on the disk when this returns, its name aside."""
    rows = max(1, PIECE_BYTES * len(cells) // max(1, cells.nbytes))
    with open(path, "wb", buffering=0) as file:
        for first in range(0, len(cells), rows):
            plain = variable.plain(cells[first : first + rows])
            little = np.ascontiguousarray(plain, plain.dtype.newbyteorder("<"))
            left = little.reshape(-1).view(np.uint8).data
            while left:     # a call may write less than it is given
                left = left[file.write(left) :]
        os.fsync(file.fileno())


def sync_folders(folders: Iterable[Path], above: Path) -> None:
    """The names in folders are on the disk, and theirs, up to those in `above`."""
    every = {above}
    for folder in folders:
        while folder != above and folder not in every:
            every.add(folder)
            folder = folder.parent
    for folder in every:
        sync(folder)
