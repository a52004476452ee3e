# SPDX-License-Identifier: MIT
"""Tiles: boxes of cells in the memory of one controller."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias, Union

import numpy as np
import numpy.typing as npt

from controllers.memory.ledger import Ledger
from hitmap.conversion import converted
from hitmap.shape import Shape
from hitmap.strided import Geometry, Strided

if TYPE_CHECKING:
    import pyopencl as cl

    from controllers.memory.scratch_file import FilePart

# Linear memory that cells lie in: a buffer, or a flat host array.
Linear: TypeAlias = "Union[cl.Buffer, npt.NDArray[Any]]"

PAGE = 4096
SLACK = 2 * PAGE    # bytes that `aligned` takes beside the elements
ALIGNMENT = 128     # bytes; what PoCL gives its own buffers, a cache line pair on CPUs


class Tile:
    """A box of cells, owned cells and halo, of one field in one buffer.

    `host` is the tile's memory as a flat array where the controller computes in host memory
    (host and device are then one allocation), else None: the tile is *internal*.  `buffer`
    is its OpenCL side, None for the NumPy reference.  `part` says of which file `host` is a
    mapping, if it is one.
    """

    def __init__(
        self,
        geometry: Geometry,
        dtype: np.dtype[Any],
        host: npt.NDArray[Any] | None,
        buffer: cl.Buffer | None,
        part: FilePart | None = None,
    ) -> None:
        self.geometry = geometry
        self.part = part
        self.dtype = dtype
        self.host = host
        self.buffer = buffer

    def __repr__(self) -> str:
        where = "a device" if self.host is None else "the host"
        return f"<tile {self.geometry.box} of {self.dtype} on {where}>"

    @property
    def nbytes(self) -> int:
        return self.geometry.n_elements * self.dtype.itemsize

    @property
    def linear(self) -> Linear:
        """What the commands of its controller work on."""
        if self.buffer is not None:
            return self.buffer
        assert self.host is not None, "a tile lies on the host, on a device, or on both"
        return self.host

    def strided(self, cells: Shape) -> Strided:
        """Where `cells` lie in the tile's memory."""
        return self.geometry.strided(cells)

    def view(self, cells: Shape) -> npt.NDArray[Any]:
        """The cells in host memory, writable; only where the controller shares it."""
        assert self.host is not None, "an internal tile has no host image"
        return self.strided(cells).view(self.host)

    def clear_host(self, used: Shape | None) -> None:
        """What the host has of it becomes 0; just the cells `used`, if all others are 0 already.

        So memory of a new tile that nobody has touched stays untouched.
        """
        assert self.host is not None, "an internal tile has no host image"
        (self.host if used is None else self.view(used))[...] = 0


@dataclass(frozen=True)
class TileView:
    """What `init` and `output` see of one place: the cells that it owns, of one or more fields.

    `arrays` has the cells of each field, writable, without halo; `box` says which these are, in
    global indices, possibly none; `domain` the extents of the whole field.  `tile["v"]` is the same
    of one field, `tile.array` the cells where there is only one.  Of several fields, some of them
    at half points, `box` and `domain` are those of cells, and `tile["v"]` has its own.
    """

    arrays: Mapping[str, npt.NDArray[Any]]
    box: Shape
    domain: tuple[int, ...]
    place: int
    boxes: Mapping[str, tuple[Shape, tuple[int, ...]]] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}: {array.dtype}" for name, array in self.arrays.items())
        return f"<place {self.place}: {self.box} of {self.domain} cells of {fields}>"

    def __getitem__(self, field: str) -> TileView:
        if field not in self.arrays:
            raise KeyError(f"there is no field {field!r} here; there are {', '.join(self.arrays)}")
        box, domain = self.boxes.get(field, (self.box, self.domain))
        return replace(self, arrays={field: self.arrays[field]}, box=box, domain=domain)

    @property
    def array(self) -> npt.NDArray[Any]:
        """The cells of the one field; ValueError where there are several."""
        if len(self.arrays) > 1:
            first = next(iter(self.arrays))
            raise ValueError(
                f"the tile has the fields {', '.join(self.arrays)}; say which one, such as "
                f"tile[{first!r}].array"
            )
        return next(iter(self.arrays.values()))

    @property
    def shape(self) -> tuple[int, ...]:
        """Cells per axis, as of `array`."""
        return self.box.extent

    @property
    def dtype(self) -> np.dtype[Any]:
        """What each cell of the one field holds; ValueError where there are several."""
        return self.array.dtype

    def indices(self) -> tuple[npt.NDArray[np.intp], ...]:
        """The global indices of the cells, an array per axis, which broadcast to all.

        >>> tile = TileView({"u": np.zeros((1, 2))}, Shape((4, 6), (5, 8)), (9, 9), 0)
        >>> i, j = tile.indices()
        >>> (10 * i + j).tolist()
        [[46, 47]]
        """
        return self.box.indices()

    def write(self, values: npt.ArrayLike) -> None:
        """Set the cells; ValueError where a value does not fit the dtype, which `array` converts.

        >>> tile = TileView({"u": np.zeros(2, np.uint8)}, Shape.of_extent((2,)), (2,), 0)
        >>> tile.write([7, 2**40 + 7])
        Traceback (most recent call last):
        ValueError: cell (1) holds 1099511627783, but uint8 takes whole numbers from 0 to 255...
        """
        self.array[...] = converted(values, self.array.shape, self.array.dtype)


def aligned(n_elements: int, dtype: np.dtype[Any], stagger: int = 0) -> npt.NDArray[Any]:
    """Zeroed host memory whose first byte lies `stagger` cache-line pairs after a page's start.

    Arrays that start at the same place of a page make loops that read one and write the
    other slow, by a factor of two on some CPUs (docs/performance.md): stagger them.
    """
    nbytes = n_elements * dtype.itemsize
    raw = np.zeros(nbytes + SLACK, np.uint8)
    start = -raw.ctypes.data % PAGE + stagger * ALIGNMENT % PAGE
    return raw[start : start + nbytes].view(dtype)


def host_tile_memory(
    n_elements: int, dtype: np.dtype[Any], ledger: Ledger, stagger: int = 0
) -> npt.NDArray[Any]:
    """`aligned` memory of a tile, in the account of its device."""
    nbytes = n_elements * dtype.itemsize
    ledger.check(nbytes, "tiles")
    host = aligned(n_elements, dtype, stagger)
    ledger.hold(host, nbytes, "tiles")
    ledger.hold(host, SLACK, "alignment")
    return host
