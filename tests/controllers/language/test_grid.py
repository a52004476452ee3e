# SPDX-License-Identifier: MIT
from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from controllers import Grid
from controllers.language.derivatives import coefficients
from controllers.program.coordinates import Coordinates


class Labelled:
    """As much of an xarray.DataArray as a grid looks at."""

    def __init__(self, shape: tuple[int, ...], **coords: Any) -> None:
        self.dims, self.shape, self.coords = tuple(coords), shape, {}
        self.coords = {name: np.asarray(at) for name, at in coords.items() if at is not None}


def test_a_grid_knows_its_axes_and_where_the_cells_lie() -> None:
    grid = Grid(z=2, y=4, x=5, lower=(0, -1, 10), upper={"z": 1, "x": 20, "y": 1})
    assert grid.axes == ("z", "y", "x") and grid.shape == (2, 4, 5)
    assert grid.spacing == (0.5, 0.5, 2.0) and grid.dx == 2.0 and grid.dz == 0.5
    assert grid.lower == (0.0, -1.0, 10.0) and grid.upper == (1.0, 1.0, 20.0)
    assert grid.coordinates("x").tolist() == [11.0, 13.0, 15.0, 17.0, 19.0]
    assert grid.places == Coordinates(grid.axes, grid.lower, grid.spacing)
    assert repr(Grid(y=3, x=4)) == "Grid(y=3, x=4)"
    assert repr(Grid(x=4, spacing=5, boundary="periodic")) == (
        "Grid(x=4, lower=(0.0,), spacing=(5.0,), boundary='periodic')"
    )


def test_coordinates_are_rounded_as_lower_end_plus_whole_and_half_spacings() -> None:
    grid = Grid(x=7, lower=0.1, upper=0.8)
    spacing = (0.8 - 0.1) / 7
    assert grid.coordinates("x").tolist() == [0.1 + (i + 0.5) * spacing for i in range(7)]
    faces = grid.places.along(0, -1, 3, half=True).tolist()
    assert faces == [0.1 + i * spacing for i in range(-1, 3)]


def test_grids_are_values() -> None:
    one, same = Grid(y=3, x=4, upper=1), Grid(y=3, x=4, spacing=(1 / 3, 0.25))
    assert one == same and hash(one) == hash(same) and one != Grid(x=4, y=3, upper=1)
    for other in (copy.copy(one), pickle.loads(pickle.dumps(one))):
        assert other == one and other.dx == 0.25
    with pytest.raises(AttributeError, match="cannot be changed.*make another"):
        one.dx = 2.0


def test_grids_of_arrays() -> None:
    assert Grid.of(np.zeros((3, 5))) == Grid(y=3, x=5)
    assert Grid.of((2, 3, 4)) == Grid(z=2, y=3, x=4) and Grid.of(9) == Grid(x=9)
    assert Grid.of((1, 2, 3, 4)).axes == ("axis_0", "axis_1", "axis_2", "axis_3")
    grid = Grid.of(Labelled((3, 5), lat=[10.0, 10.5, 11.0], time=None))
    assert grid == Grid(lat=3, time=5, lower=(9.75, 0), spacing=(0.5, 1))
    for uneven in ([0, 1, 3], [2, 1, 0]):
        with pytest.raises(ValueError, match='along .lat. do not grow by one spacing.*sortby'):
            Grid.of(Labelled((3,), lat=uneven))


def test_the_cell_that_holds_a_position() -> None:
    grid = Grid(y=4, x=10, lower=0, upper=(1, 1))
    assert grid.cell((0.0, 0.05)) == (0, 0) and grid.cell({"x": 1.0, "y": 0.25}) == (1, 9)
    for i in range(10):     # faces belong to the cell above, whatever the rounding
        assert grid.cell((0.5, grid.places.along(1, i, i + 1, half=True)[0])) == (2, i)
    with pytest.raises(ValueError, match="1.5 on axis 'x' is outside the grid.*0.0 to 1.0"):
        grid.cell((0.5, 1.5))


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({}, "1 to 4 axes, got 0"),
        (dict.fromkeys("abcde", 3), "1 to 4 axes, got 5"),
        ({"x": 0}, "cells of axis 'x' must be at least 1"),
        ({"x": 2.0}, "a whole number is expected"),
        ({"x": 3, "upper": 1, "spacing": 1}, "either upper or spacing"),
        ({"x": 3, "upper": 0}, "'x' needs an upper end above the lower one.*swap"),
        ({"x": 3, "spacing": 0}, "'x' needs a finite lower end and a spacing above 0"),
        ({"x": 3, "y": 3, "lower": (1, 2, 3)}, "one for each of x, y, got 3"),
        ({"x": 3, "lower": {"y": 1}}, "one number for each of x, got y"),
        ({"x": 3, "lower": "0"}, "a number, or one per axis"),
        ({"x": 3, "lower": np.nan}, "lower must be finite, got nan"),
        ({"ü": 3}, "an axis cannot be called 'ü'"),
    ],
)
def test_wrong_grids_are_refused(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        Grid(**arguments)


def test_names_that_a_grid_does_not_have() -> None:
    grid = Grid(y=3, x=4)
    with pytest.raises(AttributeError, match=r"no 'dz'; it has dy, dx"):
        _ = grid.dz
    with pytest.raises(ValueError, match="no axis 'z'; the grid has y, x"):
        grid.coordinates("z")


@pytest.mark.parametrize("order, accuracy", [(1, 2), (1, 8), (2, 2), (2, 8), (3, 4), (4, 6)])
def test_derivatives_are_exact_for_polynomials(order: int, accuracy: int) -> None:
    weights = coefficients(order, accuracy)
    n = len(weights) // 2
    for power in range(order + accuracy):
        factor = int(np.prod(range(power, power - order, -1))) if power >= order else 0
        right = factor if power == order else 0
        assert sum(w * k**power for k, w in enumerate(weights, -n)) == right


def test_wrong_derivatives_are_refused() -> None:
    for order, accuracy in ((0, 2), (1, 3), (1, 18), (1, 0)):
        with pytest.raises(ValueError, match=r"even number|must be at least"):
            coefficients(order, accuracy)
