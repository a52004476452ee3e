# SPDX-License-Identifier: MIT
"""Cells that a stage singles out are looked for in their rows alone; the bits stay."""
from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from sample import sample

from controllers import Computation
from controllers.kgt import generate
from controllers.kgt.choice import config_of
from controllers.kgt.text.elsewhere import elsewhere
from controllers.program.expression import Expression, Index, Read, Scalar, where
from controllers.program.fold import Fold
from controllers.program.program import Field, Program, Stage
from controllers.program.reference import reference_run
from controllers.program.scalars import Parameter


def single(cell: tuple[int, ...], one: float = 1, other: float = 0) -> Expression:
    """`one` in a cell."""
    condition = Index(0) == cell[0]
    for axis, number in enumerate(cell[1:], 1):
        condition &= Index(axis) == number
    return where(condition, one, other)


def program_of(
    updates: Mapping[str, Expression], n_axes: int, folds: Mapping[str, Fold] | None = None
) -> Program:
    fields = tuple(Field(name, "float32") for name in updates)
    stage = Stage("push", updates, ((-1, 1),) * n_axes, folds=folds or {})
    return Program("push", fields, (stage,), scalars={"rate": Parameter(0.7)})


def mean(field: str, n_axes: int) -> Expression:
    ends = [[0] * n_axes, [0] * n_axes]
    ends[0][-1], ends[1][0] = -1, 1
    return (Read(field, tuple(ends[0])) + Read(field, tuple(ends[1]))) * Scalar("rate")


CASES = {
    "a point": ((37, 61), ((9, 40),)),
    "at the ends of rows": ((23, 50), ((1, 1), (21, 48), (5, 48))),
    "two in a row": ((20, 70), ((6, 7), (6, 63))),
    "outside": ((20, 70), ((60, 7),)),
    "in a volume": ((9, 11, 40), ((4, 5, 6), (7, 9, 38))),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("several", sample([False, True], 3))
def test_the_bits_are_those_of_the_reference(case: str, several: bool) -> None:
    extent, cells = CASES[case]
    n_axes = len(extent)
    pulses = [single(cell, 3, -0.5) * Scalar("rate") for cell in cells]
    updates = {"u": sum(pulses, mean("u", n_axes))}
    if several:
        updates["v"] = mean("v", n_axes) - Read("u", (0,) * n_axes) * single(cells[0])
    program = program_of(updates, n_axes)
    (stage,) = program.stages
    assert elsewhere(stage, program.dtypes) is not None
    rng = np.random.default_rng(3)
    fields = {name: rng.standard_normal(extent).astype("float32") for name in updates}
    fields["u"][3, 4] = np.inf      # times 0 is no number, in vectors too
    expected = reference_run(program, fields, 3)
    with Computation(program, extent, devices="cpu") as run:
        for name, values in fields.items():
            run[name].scatter(values)
        run.run(3)
        for name in fields:
            assert np.array_equal(run[name].gather(), expected[name], equal_nan=True), name


def test_a_fold_sees_the_cell() -> None:
    at = single((9, 40), 5)
    program = program_of({"u": mean("u", 2) + at}, 2, {"top": Fold("max", Read("u", (0, 0)) + at)})
    field = np.zeros((20, 70), np.float32)
    with Computation(program, field.shape, devices="cpu") as run:
        run.scatter(field)
        assert run.run(1).top == 5


def text_of(program: Program) -> str:
    (stage,) = program.stages
    return generate(program, stage, config_of("rows", program, stage)).source


def test_other_rows_are_computed_in_vectors() -> None:
    text = text_of(program_of({"u": mean("u", 2) + single((9, 40)) * Scalar("rate")}, 2))
    assert "__builtin_expect((lower_0 + item_place_0) == 9, 0)" in text
    assert text.count("kgt_cell_by_cell(") == 2
    assert "item_lane < 16" in text and "const kgt_cells item_value =" in text


@pytest.mark.parametrize("other", [
    mean("u", 2) * where(Index(1) == 4, 1, 0),                      # no row without one
    mean("u", 2) * where((Index(0) == 4) | (Index(1) == 4), 1, 0),  # nor here
    mean("u", 2) * where(Index(0) == 4, Read("u", (0, 0)), 0),      # no number
    mean("u", 2) * where(Index(0, 1) == 4, 1, 0),                   # another cell's index
    mean("u", 2) * single((2, 3)) * where(Index(1) > 4, 1, 2),      # an index besides
    mean("u", 2) * (0.5 * single((2, 3))),                          # 0.5 * 0, of numbers alone
])  # fmt: skip
def test_others_are_computed_cell_by_cell(other: Expression) -> None:
    program = program_of({"u": other}, 2)
    (stage,) = program.stages
    assert elsewhere(stage, program.dtypes) is None
    assert "__builtin_expect" not in text_of(program)
