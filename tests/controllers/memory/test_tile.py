# SPDX-License-Identifier: MIT
from __future__ import annotations

import numpy as np
import pytest

from controllers.memory.tile import ALIGNMENT, PAGE, Tile, aligned
from hitmap import Shape
from hitmap.strided import Geometry

BOX = Shape((10, -2), (15, 6))
FLOAT = np.dtype("float32")


def host_tile() -> Tile:
    geometry = Geometry.dense(BOX)
    return Tile(geometry, FLOAT, aligned(geometry.n_elements, FLOAT), None)


def test_a_view_shows_the_cells_of_global_indices_and_can_be_written() -> None:
    tile = host_tile()
    tile.view(BOX)[...] = np.arange(40).reshape(5, 8)
    part = Shape((11, 0), (13, 3))
    assert tile.view(part).tolist() == [[10, 11, 12], [18, 19, 20]]
    tile.view(part)[...] = -1
    assert (tile.host == -1).sum() == 6
    assert np.shares_memory(tile.view(part), tile.host)


def test_cells_outside_the_tile_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\[9:11, 0:3\].*not in the tile"):
        host_tile().view(Shape((9, 0), (11, 3)))


def test_the_bytes_of_a_tile_are_those_of_its_elements() -> None:
    assert host_tile().nbytes == 5 * 8 * 4
    padded = Tile(Geometry(BOX, (16, 1)), np.dtype("float64"), None, None)
    assert padded.nbytes == 5 * 16 * 8


def test_commands_work_on_the_buffer_if_there_is_one_else_on_the_host_array() -> None:
    tile = host_tile()
    assert tile.linear is tile.host
    buffer = object()
    both = Tile(tile.geometry, FLOAT, tile.host, buffer)  # type: ignore[arg-type]
    assert both.linear is buffer
    with pytest.raises(AssertionError, match="on the host, on a device, or on both"):
        _ = Tile(tile.geometry, FLOAT, None, None).linear


def test_an_internal_tile_has_no_view() -> None:
    tile = Tile(Geometry.dense(BOX), FLOAT, None, object())  # type: ignore[arg-type]
    with pytest.raises(AssertionError, match="internal"):
        tile.view(BOX)


@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8"])
@pytest.mark.parametrize("n_elements", [0, 1, 1000, 5000])
def test_aligned_memory_is_zeroed_and_starts_where_the_stagger_says(
    n_elements: int, dtype: str
) -> None:
    for stagger in (0, 1, 5, PAGE // ALIGNMENT - 1, PAGE // ALIGNMENT, 1000):
        array = aligned(n_elements, np.dtype(dtype), stagger)
        assert (array.size, array.dtype) == (n_elements, dtype)
        assert array.ctypes.data % PAGE == stagger * ALIGNMENT % PAGE or not n_elements
        assert not array.any() and array.flags.c_contiguous and array.flags.writeable
        array[...] = 1      # all of it is there
