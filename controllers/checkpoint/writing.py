# SPDX-License-Identifier: MIT
"""A checkpoint written by all ranks, each of them the cells of its places.

Cells leave their device in blocks; while one is written the next one is made ready.
"""
from __future__ import annotations

import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy.typing as npt

from controllers.checkpoint.block_file import BlockFile
from controllers.checkpoint.folder import begin, complete, drop_others, prepare
from controllers.checkpoint.manifest import Block, Manifest
from controllers.engine import Engine
from controllers.fields.cells import cells_of
from hitmap.agreement import on_all_ranks
from hitmap.comm import Communicator
from hitmap.conversion import with_one_nan
from hitmap.files import sync
from hitmap.shape import Shape
from hitmap.strided import consecutive

BLOCK_CELLS = 1 << 22       # at most: a block is read as a whole

# Cells of a box of what has a name.
Cells = tuple[str, Shape, "npt.NDArray[Any]"]


def prepare_together(folder: Path, comm: Communicator) -> None:
    """Make the folder of a run ready for checkpoints; OSError on all ranks.  Collective."""
    error: OSError | None = None
    if comm.rank == 0:
        try:
            prepare(folder)
        except OSError as own:
            error = own
    _raise(comm, error, folder, None)


def write(
    folder: Path, step: int, state: Mapping[str, Any], cells: Iterable[Cells], comm: Communicator,
    damaged: Collection[str],
) -> Path:  # fmt: skip
    """A new checkpoint in `folder`, of these cells of this rank; where it is.

    OSError on all ranks where any of them cannot write, and those before are as they were.
    Collective.
    """
    temporary = target = folder
    error: BaseException | None = None
    if comm.rank == 0:
        try:
            temporary, target = begin(folder, step)
        except OSError as own:
            error = own
    temporary, target = comm.bcast((temporary, target))
    _raise(comm, error, folder, None)
    name, blocks = f"rank-{comm.rank}.cells", list[Block]()
    nbytes = 0
    try:
        blocks = _written(temporary / name, name, cells)
        nbytes = sum(block.nbytes for block in blocks)
    except OSError as own:
        error = own
    _raise(comm, error, folder, temporary)
    everyone = comm.gather((name, nbytes, blocks))
    if everyone is not None:
        files = {name: nbytes for name, nbytes, _ in everyone}
        every = [block for _, _, rank in everyone for block in rank]
        try:
            complete(temporary, target, Manifest(state, files, every))
            drop_others(target, damaged)
        except OSError as own:
            error = own
    _raise(comm, error, folder, temporary)
    return target


def field_cells(engine: Engine) -> Iterator[Cells]:
    """All cells of all fields that the places of this rank own, as they are now, in blocks."""
    for field in engine.plan.program.fields:
        for place in engine.executors:
            for box in consecutive(engine.plan.owned(field.name, place), BLOCK_CELLS):
                yield field.name, box, with_one_nan(cells_of(engine, field.name, place, box))


def _written(path: Path, name: str, cells: Iterable[Cells]) -> list[Block]:
    """The blocks in the file, which is on the disk."""
    with BlockFile(path, name) as file:
        for each in cells:
            file.add(*each)
        blocks = file.finish()
    sync(path.parent)
    return blocks


def _raise(
    comm: Communicator, error: BaseException | None, folder: Path, temporary: Path | None
) -> None:
    """OSError on all ranks where one has an error; nothing is left of the new one.  Collective."""
    texts = comm.allgather(None if error is None else _text(error))
    if not any(texts):
        return
    if comm.rank == 0 and temporary is not None:
        with suppress(OSError):
            shutil.rmtree(temporary)
    named = [
        f"rank {rank}: {text}" if comm.size > 1 else text
        for rank, text in enumerate(texts) if text is not None
    ]  # fmt: skip
    raise on_all_ranks(OSError(
        f"{folder}: writing a checkpoint has failed: {'; '.join(named)}; those before it are as "
        f"they were, and the fields are those of the last step"
    )) from error  # fmt: skip


def _text(error: BaseException) -> str:
    if isinstance(error, OSError):
        where = "" if error.filename is None else f" ({error.filename})"
        return f"{error.strerror or error}{where}"
    return f"{type(error).__name__}: {error}"
