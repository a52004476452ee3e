# SPDX-License-Identifier: MIT
"""Files of VTK: cells of a regular grid (`.vti`), their pieces (`.pvti`), moments (`.pvd`).

XML with the cells as they are in memory behind it, after "VTK XML Formats" (docs.vtk.org).  VTK
counts points, of which there is one more than cells along each axis, and names x first, which is
our last axis: so C order is its order.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import quoteattr

import numpy as np

from controllers.outputs.variable import Axis, Part, Variable
from hitmap.shape import Shape

_TYPES = {"float32": "Float32", "float64": "Float64", "int16": "Int16", "int32": "Int32",
          "int64": "Int64", "uint8": "UInt8"}  # fmt: skip
MOST_AXES = 3


@dataclass(frozen=True)
class Image:
    """The grid of variables that have all cells in common: 1 to 3 axes, evenly spaced."""

    variables: tuple[Variable, ...]

    def __post_init__(self) -> None:
        axes = self.axes
        for one in self.variables:
            if one.axes != axes:
                raise ValueError(
                    f"{one.field} lies elsewhere than {self.variables[0].field}: fields of one "
                    f".pvd lie at the same cells; choose fields=, or write to .zarr"
                )
        if len(axes) > MOST_AXES:
            raise ValueError(
                f"files of ParaView have up to {MOST_AXES} axes, got {len(axes)}; give one a "
                f"number, such as {axes[0].name}=0, or write to .zarr"
            )

    @property
    def axes(self) -> tuple[Axis, ...]:
        """Those of all of them."""
        return self.variables[0].axes

    def piece(self, parts: Sequence[Part]) -> bytes:
        """A `.vti` of one box, of which there is a part of each variable."""
        box = parts[0].box
        data = [np.ascontiguousarray(_little(part)).tobytes() for part in parts]
        first, arrays = 0, []
        for part, content in zip(parts, data):
            arrays.append(f'<DataArray {_array(part.variable)} format="appended" '
                          f'offset="{first}"/>')  # fmt: skip
            first += 8 + len(content)
        lines = [
            f'{_head("ImageData")}', f'<ImageData WholeExtent="{_extent(box)}" {self._where}>',
            f'<Piece Extent="{_extent(box)}">', "<CellData>", *arrays, "</CellData>", "</Piece>",
            "</ImageData>", '<AppendedData encoding="raw">',
        ]  # fmt: skip
        blocks = b"".join(len(one).to_bytes(8, "little") + one for one in data)
        return "\n".join(lines).encode() + b"\n_" + blocks + b"\n</AppendedData>\n</VTKFile>\n"

    def pieces(self, sources: Sequence[tuple[Shape, str]]) -> bytes:
        """A `.pvti` of boxes, which lie in these files, by names beside it."""
        whole = Shape.of_extent(self.variables[0].shape)
        arrays = [f"<PDataArray {_array(one)}/>" for one in self.variables]
        listed = [f'<Piece Extent="{_extent(box)}" Source={quoteattr(name)}/>'
                  for box, name in sources]  # fmt: skip
        lines = [
            f'{_head("PImageData")}',
            f'<PImageData WholeExtent="{_extent(whole)}" GhostLevel="0" {self._where}>',
            "<PCellData>", *arrays, "</PCellData>", *listed, "</PImageData>", "</VTKFile>\n",
        ]  # fmt: skip
        return "\n".join(lines).encode()

    @property
    def _where(self) -> str:
        ends = [_even(axis) for axis in reversed(self.axes)]
        ends += [(0.0, 1.0)] * (MOST_AXES - len(ends))
        lower = " ".join(repr(low) for low, _ in ends)
        spacing = " ".join(repr(step) for _, step in ends)
        return f'Origin="{lower}" Spacing="{spacing}"'


def collection(files: Sequence[tuple[float, str]]) -> bytes:
    """A `.pvd` of files, each at its time."""
    listed = [f'<DataSet timestep="{time!r}" file={quoteattr(name)}/>' for time, name in files]
    lines = [f'{_head("Collection")}', "<Collection>", *listed, "</Collection>", "</VTKFile>\n"]
    return "\n".join(lines).encode()


def _head(kind: str) -> str:
    return (
        f'<?xml version="1.0"?>\n<VTKFile type="{kind}" version="1.0" byte_order="LittleEndian" '
        f'header_type="UInt64">'
    )


def _array(one: Variable) -> str:
    return f"type={quoteattr(_TYPES[one.dtype.name])} Name={quoteattr(one.field)}"


def _extent(box: Shape) -> str:
    """The first and the last point along x, y and z."""
    ends = [*reversed([*zip(box.lower, box.upper)])]
    ends += [(0, 0)] * (MOST_AXES - len(ends))
    return " ".join(f"{low} {high}" for low, high in ends)


def _even(axis: Axis) -> tuple[float, float]:
    """The lower face of the first cell, and the spacing."""
    along = axis.along
    step = float(along[1] - along[0]) if len(along) > 1 else axis.spacing
    return float(along[0]) - step / 2, step


def _little(part: Part) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    cells = part.plain()
    return cells.astype(cells.dtype.newbyteorder("<"), copy=False)
