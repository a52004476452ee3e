# SPDX-License-Identifier: MIT
"""Files that are written are asked for while they are written."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hitmap.write_back
from hitmap import SerialCommunicator, Shape
from hitmap.npy import NpyWriter
from hitmap.write_back import BEHIND_NBYTES, PIECE_NBYTES, WriteBack

MIB = 1 << 20


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The first byte and the number of bytes of what was asked for, in MiB."""
    found: list[tuple[int, int]] = []

    def begin_writing(_: int, first: int, nbytes: int) -> None:
        found.append((first // MIB, nbytes // MIB))

    monkeypatch.setattr(hitmap.write_back, "begin_writing", begin_writing)
    return found


def test_a_piece_is_asked_for_when_it_is_whole_and_those_before_it_once_more(
    asked: list[tuple[int, int]]
) -> None:
    written = WriteBack()
    for first in range(0, 44, 2):
        written.wrote(7, first * MIB, 2 * MIB)
    assert (PIECE_NBYTES, BEHIND_NBYTES) == (4 * MIB, 32 * MIB)
    assert asked[:3] == [(0, 4), (0, 8), (0, 12)] and len(asked) == 11
    assert asked[7:] == [(0, 32), (4, 32), (8, 32), (12, 32)]


def test_what_is_scattered_is_left_to_the_system(asked: list[tuple[int, int]]) -> None:
    written = WriteBack()
    for number in range(8):
        written.wrote(7, number * 5 * MIB, 3 * MIB)
    assert not asked
    written.wrote(7, 38 * MIB, 3 * MIB)     # right after the last one
    assert asked == [(35, 6)]


def test_a_file_of_several_pieces_has_all_its_bytes(
    tmp_path: Path, asked: list[tuple[int, int]]
) -> None:
    cells = np.arange(3 * PIECE_NBYTES // 8 + 17).reshape(-1, 1)
    domain = Shape.of_extent(cells.shape)
    with NpyWriter(tmp_path / "a.npy", domain, cells.dtype, SerialCommunicator()) as file:
        for first in range(0, len(cells), 1 << 18):
            box = domain.slab(0, first, min(first + (1 << 18), len(cells)))
            file.write(box, cells[box.slices((0, 0))])
    assert np.array_equal(np.load(tmp_path / "a.npy"), cells) and len(asked) == 3
