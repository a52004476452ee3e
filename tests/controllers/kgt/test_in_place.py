# SPDX-License-Identifier: MIT
"""Kernels that store over what they read: each cell is computed once, and read before that."""
from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
import numpy.typing as npt
import pytest

from controllers import Computation, reference_run
from controllers.kgt import STRATEGIES, Config, Launch, choose, generate
from controllers.kgt.choice import config_of
from controllers.kgt.strategies.cell import CellConfig
from controllers.kgt.strategies.rows import RowsConfig
from controllers.program.expression import Read
from controllers.program.program import Field, Program, Stage
from controllers.program.stage import Stage as AnyStage

# Blocks of rows and planes, bands and segments of which the extents are no multiples.
SMALL, HIGH = RowsConfig(4, 2, 3, 5, 4, 16), RowsConfig(8, 4, 1, 16, 2, 24)
EXTENTS = (201,), (23, 45), (7, 11, 40), (3, 5, 6, 33)
ALWAYS: list[tuple[tuple[int, ...], Config | None]] = [
    ((201,), SMALL), ((23, 45), SMALL), ((13, 19), CellConfig())
]  # fmt: skip
OTHERS = [(e, c) for e in EXTENTS for c in (None, CellConfig(), SMALL, HIGH)]


def program(n_axes: int) -> Program:
    """A wave whose earlier level is renamed, and two fields that each become the other one."""
    def at(field: str, axis: int = 0, step: int = 0) -> Read:
        return Read(field, tuple(step * (axis == n) for n in range(n_axes)))

    box = ((-1, 1),) * n_axes
    around = sum(at("u", axis, step) for axis in range(n_axes) for step in (-1, 1))
    leap = Stage("leap", {"u": around - 2 * at("u") - at("old")}, box)
    turn = Stage("turn", {"a": at("b") + at("u", n_axes - 1, 1), "b": at("a") - at("b")}, box)
    fields = tuple(Field(name, "float32") for name in ("u", "old", "a", "b"))
    return Program("both", fields, (leap, turn), renames={"old": "u"})


def one_of(config: Config, launch: Launch) -> Config:
    """`config` where it suits a launch; "cell" suits all."""
    last = launch.fields[next(iter(launch.fields))].extent
    cut = config.within(last)
    if isinstance(cut, RowsConfig) and len(last) < 3:
        cut = replace(cut, planes=1, rows=cut.rows if len(last) > 1 else 1)
    return cut if cut.suits(launch.fields.values()) else CellConfig()


@pytest.mark.parametrize(
    ("extent", "config"),
    [*ALWAYS, *(pytest.param(*one, marks=pytest.mark.whole) for one in OTHERS)],
)
def test_no_cell_is_computed_from_what_is_new(
    extent: tuple[int, ...], config: Config | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def chosen(
        program: Program, stage: AnyStage, kind: str, launch: Launch | None = None
    ) -> Config:
        known = config is None or launch is None
        return choose(program, stage, kind, launch) if known else one_of(config, launch)

    monkeypatch.setattr("controllers.kgt.choose", chosen)
    what, rng = program(len(extent)), np.random.default_rng(0)
    start: dict[str, npt.NDArray[np.float32]] = {
        field.name: rng.random(extent, np.float32) for field in what.fields
    }
    with Computation(what, extent, devices="cpu:0", places_per_controller=2, **start) as run:
        assert run.plan.liveness.n_buffers == {"u": 2, "a": 1, "b": 1}
        run.run(3)
        got = {name: run[name].gather() for name in start}
    right = reference_run(what, start, 3, (False,) * len(extent))
    assert all(np.array_equal(got[name], right[name]) for name in start)


def test_a_field_and_what_becomes_of_it_are_one_parameter() -> None:
    what = program(2)
    stage = replace(what.stages[0], overwrites={"u": "old"})
    for config in (CellConfig(), RowsConfig()):
        kernel = generate(what, stage, config)
        roles = {one.name: one.role for one in kernel.parameters if one.role != "scalar"}
        assert roles == {"u": "in", "u_new": "inout"}
        assert "__global const float *const old = u_new;" in kernel.source
        assert "restrict old" not in kernel.source.partition("__kernel")[2]
        plain = generate(what, what.stages[0], config)
        assert {one.role for one in plain.parameters} == {"in", "out", "scalar"}


def test_fields_may_be_called_as_variables_of_kernels() -> None:
    fields = Field("next", "float32"), Field("k", "float32")
    value = Read("next", (1,)) - Read("k", (0,))
    stage = Stage("leap", {"next": value}, ((0, 1),), overwrites={"next": "k"})
    for config in (CellConfig(), RowsConfig()):
        kernel = generate(Program("leap", fields, (stage,)), stage, config)
        assert "*const f_k = f_next_new;" in kernel.source
        assert [one.name for one in kernel.parameters if one.role == "inout"] == ["next_new"]


def test_strategies_that_compute_cells_twice_refuse_it() -> None:
    what = program(2)
    stage = replace(what.stages[0], overwrites={"u": "old"})
    for name, strategy in STRATEGIES.items():
        if not strategy.in_place:
            with pytest.raises(ValueError, match="cells twice|one field|several|weighted|one item"):
                config_of(name, what, stage)
    assert isinstance(choose(what, stage, "gpu"), CellConfig)


@pytest.mark.parametrize("extent", [1000, 1023, 1024, 1025, 1031, 1032, 1039, 2048])
def test_segments_of_a_row_are_disjoint_and_none_is_shorter_than_a_vector(extent: int) -> None:
    segment, lanes = 1024, 16
    body = generate(program(1), replace(program(1).stages[0], overwrites={"u": "old"}),
                    RowsConfig(lanes, 1, band=1, segment=segment)).source  # fmt: skip
    assert f"if (start_0 && start_0 + {lanes} > extent_0)" in body
    assert f"start_0 + {segment + lanes} > extent_0 ? extent_0 : start_0 + {segment};" in body
    count = [0] * extent
    for start in range(0, extent, segment):
        if start and start + lanes > extent:
            continue
        last = extent if start + segment + lanes > extent else start + segment
        assert last - start >= lanes
        for cell in range(start, last):
            count[cell] += 1
    assert prod(count) == 1
