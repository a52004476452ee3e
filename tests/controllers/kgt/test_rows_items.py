# SPDX-License-Identifier: MIT
"""The items of "rows" are shared out evenly among the cores of a device."""
from __future__ import annotations

import re
from dataclasses import replace
from math import prod

import pytest

from controllers.kgt import Launch, choose
from controllers.kgt.strategies.rows import RowsConfig
from controllers.kgt.strategies.rows.config import work_sizes
from controllers.kgt.strategies.rows.item import cells_of_item
from controllers.language.weights import Stencil
from hitmap.shape import Shape
from hitmap.strided import Geometry

VOLUMES = RowsConfig(rows=1, band=64, depth=48)
HEAT = Stencil.of("heat", [(-1, 1)] * 3, [1] * 27, 2).program("float32")


def counts(extent: tuple[int, ...], config: RowsConfig) -> tuple[int, ...]:
    """The items along each axis of OpenCL's."""
    return work_sizes(config, len(extent))(extent, True)[0]


def bands(axis: int, config: RowsConfig, extent: int, groups: int) -> list[tuple[int, int]]:
    """The cells of each item along an axis of a volume, by the lines in C."""
    dimension = 2 - axis
    lines = [line for line in cells_of_item(config, 3, once=False) if f"_{axis} = " in line]
    found = []
    for number in range(groups):
        names = {f"extent_{axis}": extent}
        for line in lines:
            name, value = line.removeprefix("const long ").rstrip(";").split(" = ")
            value = value.replace(f"(long)get_group_id({dimension})", str(number))
            value = value.replace(f"(long)get_num_groups({dimension})", str(groups))
            value = re.sub(r"(\w+) < (\w+) \? \1 : \2", r"min(\1, \2)", value).replace("/", "//")
            names[name] = eval(value, {"min": min}, names)
        found.append((names[f"start_{axis}"], names[f"last_{axis}"]))
    return found


@pytest.mark.parametrize("extent", [(126, 126, 254), (254, 254, 510), (62, 62, 126)])
def test_half_of_the_items_have_half_of_the_cells(extent: tuple[int, ...]) -> None:
    config = replace(VOLUMES, shares=2)
    _, n_y, n_z = counts(extent, config)
    rows = bands(1, config, extent[1], n_y)
    planes = bands(0, config, extent[0], n_z)
    cells = [(b - a) * (d - c) for c, d in planes for a, b in rows]
    assert sum(cells) == extent[0] * extent[1]
    assert len(cells) % 2 == 0
    assert sum(cells[: len(cells) // 2]) == sum(cells) / 2


@pytest.mark.parametrize("cells", [1, 3, 4])
@pytest.mark.parametrize("extent", [5, 12, 47, 96])
def test_bands_are_whole_blocks_and_leave_out_no_cell(cells: int, extent: int) -> None:
    config = replace(VOLUMES, planes=cells)
    for groups in (1, 2, 5):
        found = bands(0, config, extent, groups)
        ends = [0, *(last for _, last in found)]
        assert [first for first, _ in found] == ends[:-1] and ends[-1] == extent
        assert all(end % cells == 0 for end in ends[:-1])
        sizes = {-(-(last - first) // cells) for first, last in found}
        assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("shares", [2, 3, 16, 96])
def test_items_are_a_multiple_of_the_cores_or_nearly_so(shares: int) -> None:
    for extent in ((126, 126, 254), (254, 254, 510), (4094, 4094), (9, 60, 62, 126)):
        least, found = counts(extent, VOLUMES), counts(extent, replace(VOLUMES, shares=shares))
        assert all(a <= b for a, b in zip(least, found))
        rounds = -(-prod(found) // shares)      # of which the last one may be incomplete
        assert rounds * shares == prod(found) or (len(extent), shares) == (4, 96)
        assert rounds * shares < 1.02 * prod(found)


def test_bands_do_not_become_low_for_many_cores() -> None:
    few = replace(VOLUMES, shares=97)
    assert counts((10, 10, 60), few) == counts((10, 10, 60), VOLUMES) == (1, 1, 1)
    x, y, z = counts((254, 254, 510), few)
    assert x == 1 and y <= 254 // 8 and z <= 254 // 8


def test_a_launch_says_how_many_cores_there_are() -> None:
    (stage,) = HEAT.stages
    where = {"u": Geometry.dense(Shape.of_extent((126, 126, 254))).strided(
        Shape.of_extent((126, 126, 254)))}  # fmt: skip
    config, alone = (choose(HEAT, stage, "cpu", Launch(where, units=n)) for n in (2, 0))
    assert isinstance(config, RowsConfig) and config.shares == 2
    assert replace(config, shares=1) == alone
    text, other = (one.kernel(HEAT, stage).source for one in (config, alone))
    assert text == other, "one build for both"
