# SPDX-License-Identifier: MIT
"""The cells of a checkpoint, read into the places of this rank, whoever has written them."""
from __future__ import annotations

import zlib
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from controllers.checkpoint.error import Damaged
from controllers.checkpoint.manifest import Block, Manifest
from controllers.engine import Engine
from controllers.fields.cells import dtype_of, put_cells


def load(engine: Engine, folder: Path, manifest: Manifest) -> None:
    """Set all fields of the places of this rank; `Damaged` where a block is not as it was written.

    Only the blocks are read of which a place has cells.
    """
    with BlockFiles(folder) as files:
        for field in engine.plan.program.fields:
            dtype = dtype_of(engine, field.name)
            owned = {place: engine.plan.owned(field.name, place) for place in engine.executors}
            for block in (one for one in manifest.blocks if one.field == field.name):
                wanted = {place: box & block.box for place, box in owned.items()}
                if all(box.empty for box in wanted.values()):
                    continue
                cells = files.cells(block, dtype)
                for place, box in wanted.items():
                    if not box.empty:
                        inside = cells[box.slices(block.lower)]
                        put_cells(engine, field.name, place, box, inside)


def array(
    folder: Path, manifest: Manifest, name: str, dtype: np.dtype[Any]
) -> npt.NDArray[Any]:
    """What was written under a name, as a whole; `Damaged` where it is not as it was."""
    blocks = [block for block in manifest.blocks if block.field == name]
    whole = np.zeros(tuple(map(max, zip(*(block.upper for block in blocks)))), dtype)
    with BlockFiles(folder) as files:
        for block in blocks:
            whole[block.box.slices((0,) * whole.ndim)] = files.cells(block, dtype)
    return whole


class BlockFiles(ExitStack):
    """The files of a checkpoint, each opened once."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self._open: dict[str, BinaryIO] = {}

    def cells(self, block: Block, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        """Those of a block, checked."""
        try:
            if block.file not in self._open:
                opened = (self._folder / block.file).open("rb", buffering=0)
                self._open[block.file] = self.enter_context(opened)
            data = _read(self._open[block.file], block)
        except OSError as error:
            raise Damaged(f"{block.file}: {error.strerror}") from None
        if zlib.crc32(data.data) != block.crc:
            raise Damaged(
                f"{block.file} has another checksum at the bytes {block.first} to "
                f"{block.first + block.nbytes}: the cells {block.box} of {block.field}"
            )
        return data.view(dtype).reshape(block.box.extent)


def _read(file: BinaryIO, block: Block) -> npt.NDArray[np.uint8]:
    data = np.empty(block.nbytes, np.uint8)
    left = data.data
    file.seek(block.first)
    while left:
        n_bytes = file.readinto(left)       # type: ignore[attr-defined]
        if not n_bytes:
            raise Damaged(f"{block.file} ends within the cells {block.box} of {block.field}")
        left = left[n_bytes:]
    return data
