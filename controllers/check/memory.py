# SPDX-License-Identifier: MIT
"""The memory of a tile as the checker sees it: all elements, guards before and behind included.

A guarded tile lies within a larger piece of memory, so that a kernel that leaves it does harm to
nothing but the guards, and is seen.
"""
from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyopencl as cl

from controllers.executor.executor import Executor
from controllers.memory.tile import Linear, Tile
from hitmap.shape import Shape
from hitmap.strided import Geometry

Array = npt.NDArray[Any]
Bits = npt.NDArray[np.bool_]

_FLOAT_JUNK = -1234.5678
_BYTE_JUNK = (0xA5, 0x5A)


class GuardedTile(Tile):
    """A tile in the middle of `whole`, between two times `guard` elements."""

    def __init__(
        self,
        geometry: Geometry,
        dtype: np.dtype[Any],
        host: Array | None,
        buffer: cl.Buffer,
        whole: Linear,
        guard: int,
    ) -> None:
        super().__init__(geometry, dtype, host, buffer)
        self.whole, self.guard = whole, guard


class TileMemory:
    """Reads and writes all elements of a tile, while the device is idle."""

    def __init__(self, executor: Executor, tile: Tile) -> None:
        guarded = isinstance(tile, GuardedTile)
        self.tile = tile
        self.guard = tile.guard if isinstance(tile, GuardedTile) else 0
        self.n_elements = tile.geometry.n_elements + 2 * self.guard
        self._linear = tile.whole if isinstance(tile, GuardedTile) else tile.linear
        if not guarded and tile.host is not None:
            self._linear = tile.host
        self._queue: cl.CommandQueue | None = getattr(executor, "transfer", None)

    def read(self) -> Array:
        """A copy of all elements."""
        if isinstance(self._linear, np.ndarray):
            copied: Array = self._linear.copy()
            return copied
        assert self._queue is not None, "buffers belong to OpenCL devices"
        values = np.empty(self.n_elements, self.tile.dtype)
        cl.enqueue_copy(self._queue, values, self._linear)
        return values

    def write(self, values: Array, keep: Bits | None = None) -> None:
        """New values for all elements, in host memory but for those to `keep`."""
        if isinstance(self._linear, np.ndarray):
            np.copyto(self._linear, values, where=True if keep is None else ~keep)
            return
        assert self._queue is not None, "buffers belong to OpenCL devices"
        cl.enqueue_copy(self._queue, self._linear, values)

    def mask(self, boxes: list[Shape]) -> Bits:
        """Which elements are cells of `boxes`."""
        found = np.zeros(self.n_elements, np.bool_)
        for box in boxes:
            self.view(found, box)[...] = True
        return found

    def view(self, values: npt.NDArray[Any], box: Shape) -> npt.NDArray[Any]:
        """The cells of `box` in an array of all elements."""
        inner = values[self.guard : self.n_elements - self.guard]
        return self.tile.strided(box).view(inner)

    def cell(self, element: int) -> tuple[int, ...] | None:
        """The global index of an element; None where it is none of the tile's cells."""
        geometry, rest, cell = self.tile.geometry, element - self.guard, []
        if not 0 <= rest < geometry.n_elements:
            return None
        for pitch, origin in zip(geometry.pitches, geometry.box.lower):
            step, rest = divmod(rest, pitch)
            cell.append(step + origin)
        return tuple(cell)

    def where(self, element: int) -> str:
        """An element in words."""
        cell = self.cell(element)
        if cell is not None:
            return f"cell {cell}"
        before = self.guard - element
        if before > 0:
            return f"{before} elements before its first cell"
        return f"{element - self.guard - self.tile.geometry.n_elements + 1} elements behind its end"


def junk(dtype: np.dtype[Any], number: int = 0, written: bool = False) -> np.generic:
    """What nobody should read, in two kinds: NaN or a pattern, and something else.

    It is unlike what lies where something will be `written`.

    >>> junk(np.dtype("float32")), junk(np.dtype("uint8"), 1), junk(np.dtype("uint8"), 1, True)
    (np.float32(nan), np.uint8(90), np.uint8(91))
    """
    if dtype.kind == "f" and number == 1:
        value: np.generic = dtype.type(_FLOAT_JUNK + 64 * written)
        return value
    pattern = bytearray([_BYTE_JUNK[number]] * dtype.itemsize)
    if dtype.kind == "f":
        pattern = bytearray(np.array(np.nan, dtype.newbyteorder("<")).tobytes())
    pattern[0] += written       # another NaN, or another number
    scalar: np.generic = np.frombuffer(bytes(pattern), dtype)[0]
    return scalar


def scattered(dtype: np.dtype[Any], number: int, count: int) -> Array:
    """Junk that is another one in each of `count` elements, and of another kind by `number`."""
    rng = np.random.default_rng(number)
    if dtype.kind == "f":
        return (rng.standard_normal(count) * 1e3).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, count, dtype, endpoint=True)


def differ(one: Array, other: Array) -> Bits:
    """Where the bytes of two arrays of one shape differ."""
    nbytes = one.dtype.itemsize
    a, b = (np.ascontiguousarray(x).view(np.uint8).reshape(*x.shape, nbytes) for x in (one, other))
    result: Bits = (a != b).any(axis=-1)
    return result


def unlike_bits(result: Array, right: Array) -> Bits:
    """Where bits differ; which NaN it is, no one promises."""
    unlike = differ(result, right)
    if result.dtype.kind == "f":
        unlike &= ~(np.isnan(result) & np.isnan(right))
    return unlike
