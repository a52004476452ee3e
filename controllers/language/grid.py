# SPDX-License-Identifier: MIT
"""Grids: named axes, how many cells they have, and where these lie."""
from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, Union, runtime_checkable

import numpy as np
import numpy.typing as npt

from controllers.program.coordinates import Coordinates
from controllers.program.offsets import MAX_AXES
from hitmap.argument import number, sizes_of, whole, wrong

# what axes are called that nobody gave a name
USUAL_AXES = {1: ("x",), 2: ("y", "x"), 3: ("z", "y", "x"), 4: tuple(f"axis_{i}" for i in range(4))}
UNEVEN = 1e-6       # by how much of itself a spacing of coordinates that are given may vary
PerAxis = Union[float, Sequence[float], Mapping[str, float]]
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)


@runtime_checkable
class Labelled(Protocol):
    """What a grid takes of an xarray.DataArray."""

    @property
    def dims(self) -> Any: ...
    @property
    def shape(self) -> Any: ...
    @property
    def coords(self) -> Any: ...


class Grid:
    """The cells of a domain: `Grid(y=256, x=512, lower=0, upper=(1, 2))`, axes in C order.

    cells: how many there are along each axis, 1 to 4 axes by their names.
    lower, upper: the two ends of the domain, the outer faces of its outermost cells; one number for
        all axes, one per axis, or by name.  `lower` is 0 by default.
    spacing: from one cell to the next, in place of `upper`; 1 by default.
    boundary: what programs on this grid see beyond it where they do not say it themselves.

    `grid.dx` is the spacing of the axis x.  A grid cannot be changed.

    >>> grid = Grid(y=4, x=8, lower=0, upper=(1, 4))
    >>> grid
    Grid(y=4, x=8, lower=(0.0, 0.0), spacing=(0.25, 0.5))
    >>> grid.dx, grid.coordinates("y").tolist()
    (0.5, [0.125, 0.375, 0.625, 0.875])
    """

    __slots__ = ("_boundary", "_places", "_shape")
    _places: Coordinates
    _shape: tuple[int, ...]
    _boundary: object

    def __init__(
        self,
        *,
        lower: PerAxis = 0.0,
        upper: PerAxis | None = None,
        spacing: PerAxis | None = None,
        boundary: object = None,
        **cells: int,
    ) -> None:
        if not 1 <= len(cells) <= MAX_AXES:
            raise ValueError(
                f"a grid has 1 to {MAX_AXES} axes, got {len(cells)}; write Grid(y=256, x=256)"
            )
        axes = tuple(cells)
        for name in axes:
            _check_name(name)
        shape = tuple(whole(count, f"cells of axis {axis!r}", 1) for axis, count in cells.items())
        first = _per_axis(lower, axes, "lower")
        if upper is not None and spacing is not None:
            raise ValueError(
                f"a grid has either upper or spacing, got upper={upper!r} and "
                f"spacing={spacing!r}; leave one out"
            )
        if upper is None:
            steps = _per_axis(1.0 if spacing is None else spacing, axes, "spacing")
        else:
            last = _per_axis(upper, axes, "upper")
            _check_ends(axes, first, last)
            steps = tuple((b - a) / count for a, b, count in zip(first, last, shape))
        self._set(Coordinates(axes, first, steps), shape, boundary)

    def _set(self, places: Coordinates, shape: tuple[int, ...], boundary: object) -> None:
        for name, value in (("_places", places), ("_shape", shape), ("_boundary", boundary)):
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls, array: Labelled | npt.NDArray[Any] | Sequence[int] | int) -> Grid:
        """That of an array's shape, of sizes, or of an xarray.DataArray, with its coordinates.

        Axes without names are x, y x, z y x, from the last one; of four, axis_0 to axis_3.

        >>> Grid.of(np.zeros((3, 5))), Grid.of(9)
        (Grid(y=3, x=5), Grid(x=9))
        """
        if isinstance(array, Labelled):
            return cls._of_labelled(array)
        sizes = array.shape if isinstance(array, np.ndarray) else sizes_of(array)
        if len(sizes) not in USUAL_AXES:
            raise ValueError(f"a grid has 1 to {MAX_AXES} axes, got the shape {sizes}")
        return cls(**dict(zip(USUAL_AXES[len(sizes)], sizes)))

    @classmethod
    def _of_labelled(cls, array: Labelled) -> Grid:
        axes = tuple(map(str, array.dims))
        placed = [_placed(array, name, count) for name, count in zip(axes, array.shape)]
        lower, spacing = ({n: value[i] for n, value in zip(axes, placed)} for i in range(2))
        return cls(lower=lower, spacing=spacing, **dict(zip(axes, map(int, array.shape))))

    @property
    def axes(self) -> tuple[str, ...]:
        """The names of the axes, in C order."""
        return self._places.axes

    @property
    def shape(self) -> tuple[int, ...]:
        """Cells per axis."""
        return self._shape

    @property
    def lower(self) -> tuple[float, ...]:
        """The lower end of the domain along each axis."""
        return self._places.lower

    @property
    def upper(self) -> tuple[float, ...]:
        """The upper end of the domain along each axis."""
        ends = zip(self.lower, self.spacing, self._shape)
        return tuple(lower + count * spacing for lower, spacing, count in ends)

    @property
    def spacing(self) -> tuple[float, ...]:
        """From one cell to the next, along each axis."""
        return self._places.spacing

    @property
    def boundary(self) -> object:
        """What programs see beyond the grid where they do not say it themselves, or None."""
        return self._boundary

    @property
    def places(self) -> Coordinates:
        """Where the cells lie, as programs keep it."""
        return self._places

    def coordinates(self, axis: str, half: bool = False) -> npt.NDArray[np.float64]:
        """The centres of the cells along an axis; `half`: the points between them and on the ends.
        """
        number = self.number(axis)
        return self._places.along(number, 0, self._shape[number] + half, half)

    def number(self, axis: str) -> int:
        """Which axis has this name: 0 is the first one."""
        if axis not in self.axes:
            raise ValueError(f"there is no axis {axis!r}; the grid has {', '.join(self.axes)}")
        return self.axes.index(axis)

    def cell(self, position: PerAxis) -> tuple[int, ...]:
        """The indices of the cell that holds a position; ValueError outside the grid.

        A cell holds its lower faces, the last one of an axis its upper face, too.

        >>> Grid(y=4, x=8, upper=1).cell((0.5, 1.0))
        (2, 7)
        """
        at = _per_axis(position, self.axes, "position")
        return tuple(self._index(axis, value) for axis, value in enumerate(at))

    def _index(self, axis: int, value: float) -> int:
        count, faces = self._shape[axis], self._places
        ends = faces.along(axis, 0, count + 1, half=True)
        if not ends[0] <= value <= ends[-1]:
            raise ValueError(
                f"the position {value} on axis {self.axes[axis]!r} is outside the grid, which "
                f"goes from {ends[0]} to {ends[-1]}"
            )
        return min(int(np.searchsorted(ends, value, "right")) - 1, count - 1)

    def __getattr__(self, name: str) -> float:
        if name.startswith("_"):    # while a copy is being made
            raise AttributeError(name)
        if name[:1] == "d" and name[1:] in self._places.axes:
            return self.spacing[self.axes.index(name[1:])]
        known = ", ".join(f"d{axis}" for axis in self._places.axes)
        raise AttributeError(
            f"a grid has no {name!r}; it has {known}, axes, shape, lower, upper, spacing, "
            f'boundary and coordinates("{self.axes[-1]}")'
        )

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a grid cannot be changed, got a new {name!r}; make another")

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (self._places, self._shape, self._boundary)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Grid):
            return NotImplemented
        return self._places == other._places and self._shape == other._shape

    def __hash__(self) -> int:
        return hash((self._places, self._shape))

    def __repr__(self) -> str:
        parts = [f"{axis}={count}" for axis, count in zip(self.axes, self._shape)]
        if any(self.lower) or any(step != 1 for step in self.spacing):
            parts += [f"lower={self.lower}", f"spacing={self.spacing}"]
        if self._boundary is not None:
            parts.append(f"boundary={self._boundary!r}")
        return f"Grid({', '.join(parts)})"


def _rebuilt(places: Coordinates, shape: tuple[int, ...], boundary: object) -> Grid:
    grid = object.__new__(Grid)
    grid._set(places, shape, boundary)
    return grid


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"an axis cannot be called {name!r}: a name is made of letters, digits and _, a "
            f"letter first"
        )


def _check_ends(
    axes: Sequence[str], lower: Sequence[float], upper: Sequence[float]
) -> None:
    for axis, low, high in zip(axes, lower, upper):
        if not low < high:
            raise ValueError(
                f"axis {axis!r} needs an upper end above the lower one, got {low} to {high}; swap "
                f"them"
            )


def _per_axis(value: object, axes: tuple[str, ...], what: str) -> tuple[float, ...]:
    """One finite number per axis, of one number, a sequence, or a mapping of the names."""
    if isinstance(value, Mapping):
        if sorted(map(str, value)) != sorted(axes):
            raise ValueError(
                f"{what} by name needs one number for each of {', '.join(axes)}, got "
                f"{', '.join(map(str, value)) or 'none'}"
            )
        values = [value[axis] for axis in axes]
    elif isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, str):
        values = [*value]
        if len(values) != len(axes):
            raise ValueError(
                f"{what} needs one number, or one for each of {', '.join(axes)}, got {len(values)}"
            )
    elif isinstance(value, str) or value is None:
        raise wrong(what, "a number, or one per axis,", value, "write a number")
    else:
        values = [value] * len(axes)
    numbers = tuple(float(number(one, what)) for one in values)
    for one in numbers:
        if not math.isfinite(one):
            raise ValueError(f"{what} must be finite, got {one}")
    return numbers


def _placed(array: Labelled, axis: str, count: int) -> tuple[float, float]:
    """The lower end and the spacing of an axis of a DataArray."""
    if axis not in array.coords or count < 2:
        return 0.0, 1.0
    centres = np.asarray(array.coords[axis], np.float64)
    spacing = float((centres[-1] - centres[0]) / (count - 1))
    even = centres[0] + spacing * np.arange(count)
    if not spacing > 0 or not np.allclose(centres, even, rtol=0, atol=UNEVEN * spacing):
        raise ValueError(
            f"the coordinates along {axis!r} do not grow by one spacing, as those of a grid do; "
            f'interpolate the array, or sort it by sortby("{axis}")'
        )
    return float(centres[0]) - spacing / 2, spacing
