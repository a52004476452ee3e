# SPDX-License-Identifier: MIT
"""Transfers between a device and files of the host: the file is told what they are going to use."""
from __future__ import annotations

from collections.abc import Iterable, Sequence

from controllers.device.event import COMPLETE, Command, Event
from controllers.memory.scratch_file import Run
from controllers.memory.tile import Tile
from hitmap.shape import Shape
from hitmap.strided import Strided


def announced(
    command: Command, images: Iterable[tuple[Tile, Strided]], *, is_up: bool
) -> Command:
    """`command`, which uploads these cells of images or downloads them, in files or not."""
    found = [(tile.part, _run(tile, cells)) for tile, cells in images if tile.part is not None]
    if not found:
        return command
    file, runs = found[0][0].file, [run for _, run in found]
    tell = file.will_read if is_up else file.will_write

    def announcing(wait_for: Sequence[Event] | None = None) -> Event:
        event = command(wait_for)
        tell(lambda: event.command_execution_status <= COMPLETE, runs)
        return event

    return announcing


def wanted(tile: Tile, cells: Shape) -> None:
    """The host is going to read these cells of an image, in a file or not."""
    if tile.part is not None:
        tile.part.file.will_read(lambda: True, [_run(tile, tile.strided(cells))])


def changed(tile: Tile, cells: Shape) -> None:
    """The host has changed these cells of an image, in a file or not."""
    if tile.part is not None:
        tile.part.file.will_write(lambda: True, [_run(tile, tile.strided(cells))])


def _run(tile: Tile, cells: Strided) -> Run:
    """The bytes of the file from the first one of these cells to the last one."""
    assert tile.part is not None, "of a file"
    n_elements = 1 + sum((n - 1) * pitch for n, pitch in zip(cells.extent, cells.pitches))
    itemsize = tile.dtype.itemsize
    return tile.part.first + cells.first * itemsize, n_elements * itemsize
