# SPDX-License-Identifier: MIT
"""Small boxes to check configurations on before they work on a box that matters."""
from __future__ import annotations

from dataclasses import replace

from controllers.kernel.configuration import Placed
from controllers.program.sweep import Sweep
from hitmap.shape import Shape
from hitmap.strided import Geometry

# Cells per axis, at most: odd, more than one block or work-group of most configurations.
MOST = {1: (150_001,), 2: (251, 1031), 3: (37, 53, 131), 4: (7, 17, 23, 91)}


def scratch(placed: Placed, sweep: Sweep) -> tuple[Sweep, Placed]:
    """`sweep` on the first cells of a box, in tiles that are aligned like those it lies in.

    What it computes ends as far behind these cells as behind the box.
    """
    box, geometries = placed
    extent = tuple(map(min, zip(box.extent, MOST[box.n_axes])))
    upper = tuple(low + n for low, n in zip(box.lower, extent))
    small = Shape(box.lower, upper)
    around = zip(small.upper, sweep.cells.upper, box.upper)
    cells = Shape(sweep.cells.lower, tuple(new + end - old for new, end, old in around))
    tiles = {name: _cut(geometry, box, small) for name, geometry in geometries.items()}
    return replace(sweep, cells=cells), (small, tiles)


def _cut(geometry: Geometry, box: Shape, small: Shape) -> Geometry:
    """The tile around `small`: halo as around `box`, rows aligned if they were."""
    around = zip(small.upper, geometry.box.upper, box.upper)
    full = Shape(geometry.box.lower, tuple(new + end - old for new, end, old in around))
    aligned = geometry.pitches == Geometry.padded(geometry.box).pitches
    return Geometry.padded(full) if aligned else Geometry.dense(full)
