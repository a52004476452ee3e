# SPDX-License-Identifier: MIT
"""Blocks come to the file as they were given, whatever is in flight beside, or not at all."""
from __future__ import annotations

import os
import zlib
from pathlib import Path

import numpy as np
import pytest

from controllers.checkpoint import block_file
from controllers.checkpoint.block_file import BlockFile
from hitmap import Shape

BOX = Shape((2, 3), (22, 33))


def test_blocks_are_what_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_file, "SYNC_BYTES", 4000)
    rng = np.random.default_rng(0)
    wide = [rng.integers(0, 99, (20, 40)).astype(dtype) for dtype in ("f4", "f8", "i2", "u1")] * 5
    with BlockFile(tmp_path / "a", "a") as file:
        for number, one in enumerate(wide):     # some of rows with gaps, some without
            file.add(f"u{number}", BOX, one[:, 5:35] if number % 3 else one[:, :30].copy())
        blocks = file.finish()
    content = (tmp_path / "a").read_bytes()
    first = 0
    for number, (one, block) in enumerate(zip(wide, blocks, strict=True)):
        right = (one[:, 5:35] if number % 3 else one[:, :30]).tobytes()
        assert block.first == first and content[first : first + block.nbytes] == right
        assert (block.field, block.crc) == (f"u{number}", zlib.crc32(right))
        assert (block.lower, block.upper) == (BOX.lower, BOX.upper)
        first += block.nbytes
    assert first == len(content)


@pytest.mark.parametrize("number", range(1, 4))
def test_what_a_disk_says_once_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    calls = list[int]()

    def fail_once(handle: int) -> None:
        calls.append(handle)
        if len(calls) == number:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(block_file, "SYNC_BYTES", 1)
    monkeypatch.setattr(os, "fdatasync", fail_once)
    with (
        BlockFile(tmp_path / "a", "a") as file,
        pytest.raises(OSError, match="Input/output error"),
    ):
        while len(calls) <= number:     # then it has failed
            file.add("u", BOX, np.ones(BOX.extent))
        file.finish()
