# SPDX-License-Identifier: MIT
"""Where the cells of a domain lie: a name, a lower end and a spacing per axis, in float64."""
from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from controllers.program.offsets import MAX_AXES


@dataclass(frozen=True)
class Coordinates:
    """The axes by their names, in C order, and where the cells lie along them.

    The centre of cell i is at lower + (i + 1/2) spacing, its lower face at lower + i spacing.  How
    many cells there are is not said: a cell has its place from its global index alone.
    """

    axes: tuple[str, ...]
    lower: tuple[float, ...]
    spacing: tuple[float, ...]

    def __post_init__(self) -> None:
        for name in ("axes", "lower", "spacing"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if not 1 <= len(self.axes) <= MAX_AXES:
            raise ValueError(f"coordinates have 1 to {MAX_AXES} axes, got {len(self.axes)}")
        if len(set(self.axes)) < len(self.axes):
            raise ValueError(f"two axes have one name: {', '.join(self.axes)}; rename one")
        if not len(self.axes) == len(self.lower) == len(self.spacing):
            raise ValueError(
                f"coordinates need one lower end and one spacing per axis, got "
                f"{len(self.axes)} axes, {len(self.lower)} lower ends and "
                f"{len(self.spacing)} spacings"
            )
        for axis, lower, spacing in zip(self.axes, self.lower, self.spacing):
            if not (math.isfinite(lower) and math.isfinite(spacing) and spacing > 0):
                raise ValueError(
                    f"axis {axis!r} needs a finite lower end and a spacing above 0, got lower end "
                    f"{lower} and spacing {spacing}"
                )

    @property
    def n_axes(self) -> int:
        """Axes of the domain, 1 to 4."""
        return len(self.axes)

    def along(
        self, axis: int, first: int, end: int, half: bool = False
    ) -> npt.NDArray[np.float64]:
        """The coordinates of the cells first <= i < end along an axis: their centres.

        half: their lower faces instead.  Cells outside the domain have coordinates, too.

        >>> Coordinates(("x",), (10.0,), (2.0,)).along(0, -1, 3).tolist()
        [9.0, 11.0, 13.0, 15.0]
        """
        cells = np.arange(first, end, dtype=np.int64).astype(np.float64)
        within = 0.0 if half else 0.5
        found: npt.NDArray[np.float64] = self.lower[axis] + (cells + within) * self.spacing[axis]
        return found
