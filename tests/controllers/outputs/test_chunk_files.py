# SPDX-License-Identifier: MIT
"""Chunks as files: which cells of a part they have, and what is in them."""
from __future__ import annotations

import random
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
import xarray
from kept_programs import PROGRAMS

from controllers.outputs import chunk_files
from controllers.outputs.chunk_files import chunks_of, write_chunk, write_chunks
from controllers.outputs.variable import Part, Variable
from controllers.outputs.zarr_store import ZarrStore
from hitmap.section import Section
from hitmap.shape import Shape


def variable(shape: tuple[int, ...], chunk: tuple[int, ...], dtype: str = "f4") -> Variable:
    section = Section(tuple(map(range, shape)), (False,) * len(shape))
    return Variable("u", section, (), {}, np.dtype(dtype), chunk)


@pytest.mark.parametrize("seed", range(20))
def test_chunks_have_each_cell_of_a_part_once(seed: int) -> None:
    chosen = random.Random(seed)
    shape = tuple(chosen.randrange(1, 30) for _ in range(chosen.randrange(1, 4)))
    chunk = tuple(chosen.randrange(1, n + 1) for n in shape)
    lower = tuple(chosen.randrange(n) for n in shape)
    box = Shape(lower, tuple(chosen.randrange(low + 1, n + 1) for low, n in zip(lower, shape)))
    part = Part(variable(shape, chunk), box, np.zeros(box.extent, "f4"))
    count = np.zeros(shape, int)
    for one in chunks_of(part):
        own = tuple(slice(at * n, (at + 1) * n) for at, n in zip(one.at, chunk))
        cells = one.box.slices((0,) * len(shape))
        count[cells] += 1
        inside = np.zeros(shape, bool)
        inside[own] = True
        assert inside[cells].all() and not one.box.empty
        assert one.is_whole == (inside[box.slices((0,) * len(shape))].sum() == np.prod(chunk))
    assert (count[box.slices((0,) * len(shape))] == 1).all() and count.sum() == box.n_cells


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4"])
@pytest.mark.parametrize("piece", [1, 100, 1 << 20])
def test_a_chunk_has_its_cells_as_they_are_written(tmp_path: Path, dtype: str, piece: int) -> None:
    cells = np.arange(12 * 7, dtype="i8").reshape(12, 7).astype(dtype)
    if dtype != "i4":
        bits = cells.view(f"u{cells.itemsize}")
        bits[5, 3] = bits[11, 6] = np.array([np.nan], dtype).view(bits.dtype)[0] + 5   # payloads
    padded = np.zeros((14, 9), dtype)
    padded[1:-1, 1:-1] = cells      # a view of a tile has gaps
    own = variable((12, 7), (12, 7), "f4" if dtype == "f8" else dtype)
    (tmp_path / "chunk").write_bytes(b"what was there, and was longer" * 100)
    with patch.object(chunk_files, "PIECE_BYTES", piece):
        write_chunk(tmp_path / "chunk", own, padded[1:-1, 1:-1])
    right = cells.astype(own.dtype)
    if dtype != "i4":
        right[np.isnan(right)] = np.nan
    assert (tmp_path / "chunk").read_bytes() == right.tobytes()


def test_chunks_are_written_some_at_a_time_until_one_fails(tmp_path: Path) -> None:
    own = variable((2, 3), (2, 3))
    paths = [tmp_path / str(number) for number in range(40)]
    write_chunks([(path, own, np.full((2, 3), at, "f4")) for at, path in enumerate(paths)])
    for at, path in enumerate(paths):
        assert path.read_bytes() == np.full(6, at, "<f4").tobytes()
    write_chunks([])
    gone = [tmp_path / "gone" / "0", *(tmp_path / f"later {number}" for number in range(40))]
    with pytest.raises(FileNotFoundError, match="gone"):
        write_chunks([(path, own, np.zeros((2, 3), "f4")) for path in gone])
    assert len([*tmp_path.glob("later*")]) < 40


def test_tensorstore_is_not_asked_for_chunks_that_one_place_has(tmp_path: Path) -> None:
    never = patch.object(ZarrStore, "_array", side_effect=AssertionError)
    with PROGRAMS["wave"](devices="reference") as run, never:
        run.run(4, output=tmp_path / "a.zarr")
        right = {name: run[name].get() for name in xarray.open_zarr(tmp_path / "a.zarr").data_vars}
    found = xarray.open_zarr(tmp_path / "a.zarr").load()
    assert right and found.step.values.tolist() == [0, 4]
    for name, cells in right.items():
        assert found[name].values[-1].tobytes() == cells.tobytes()
