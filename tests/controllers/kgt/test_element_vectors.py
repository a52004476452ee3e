# SPDX-License-Identifier: MIT
"""Steps in OpenCL C in vectors have the bits of one cell at a time, whatever the text does."""
from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import controllers as ct
from controllers.kgt import Config, Launch, generate
from controllers.kgt.choice import choose
from controllers.kgt.strategies.cell import CellConfig
from controllers.kgt.strategies.marching import MarchingConfig
from controllers.kgt.strategies.rows import RowsConfig
from controllers.language.traced import program_of
from controllers.program.program import Program, Stage

GRID = ct.Grid(y=9, x=46, upper=(1, 2), boundary="periodic")
DTYPES = {"u": "float32", "v": "float64", "n": "int16"}

# Roots of both types, a choice, an end in the middle, places, and fields of three dtypes.
BRANCHES = """
    float steep(const float a, const float b) { return sqrt(fabs(a - b)); }
    ELEMENT {
        v_new = v(0, 0) + sqrt(v(0, -1) * v(0, -1));
        if (INDEX(1) % 3 == 1 || x > 1.5) { u_new = n(-1, 0); return; }
        if (u(0, 0) > 0.5f)
            u_new = steep(u(0, 1), u(0, 0)) * rate;
        else
            u_new = u(1, 0) + u(-1, 0);
        v_new -= u(0, 0);
    }
"""
# Offsets that are computed, in loops over numbers.
LOOPS = """
    float sum = 0;
    for (int i = -1; i <= 1; ++i)
        for (int j = -1; j < 2; j += 1)
            sum += u(i, j);
    u_new = sum + rate * x;
    v_new = v(0, 0) * 2;
"""
# A loop of unlike length in each cell.
ENDS = """
    double left = v(0, 0);
    while (!(left <= 0.5)) left = left / 2;
    u_new = u(0, 1) + rate;
    v_new = left + n(1, 1);
"""


def made(text: str) -> ct.Step:
    return ct.opencl_c(
        text, reads=dict(u=1, v=[(0, 0), (0, -1)], n=1), writes=("u", "v"),
        scalars=dict(rate=0.3, x=None), name="made",
    )  # fmt: skip


def starts() -> dict[str, npt.NDArray[Any]]:
    rng = np.random.default_rng(8)
    shape = GRID.shape
    return {
        "u": rng.random(shape).astype("float32"), "v": rng.random(shape),
        "n": rng.integers(-9, 9, shape, "int16"),
    }  # fmt: skip


def after(text: str, config: Config, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The fields after three steps, by a configuration, with the lanes that suit the launch."""
    used: list[Config] = []

    def choose(program: Program, stage: Stage, kind: str, launch: Launch | None = None) -> Config:
        assert type(config).computes(program, stage)
        found = config if launch is None else config.within(launch.extent)
        if launch is not None and not found.suits(launch.fields.values()):
            found = replace(found, lanes=1)     # type: ignore[call-arg]
        used.append(found)
        return found

    monkeypatch.setattr("controllers.kgt.choose", choose)
    with ct.Computation(made(text), GRID, devices="cpu:0", dtype=DTYPES, **starts()) as run:
        run.run(3)
        assert used
        return {name: np.asarray(run[name]) for name in DTYPES}


def by_hand(fields: dict[str, Any]) -> dict[str, Any]:
    """A step of BRANCHES in NumPy."""
    u, v, n = fields["u"], fields["v"], fields["n"]
    third = np.arange(46) % 3 == 1
    known = third | (GRID.coordinates("x") > 1.5)
    steep = np.sqrt(abs(np.roll(u, -1, 1) - u)) * np.float64(0.3)
    other = np.where(u > 0.5, steep, np.roll(u, -1, 0) + np.roll(u, 1, 0)).astype("float32")
    new = v + np.sqrt(np.roll(v, 1, 1) ** 2)
    return {
        "u": np.where(known, np.roll(n, 1, 0).astype("float32"), other),
        "v": np.where(known, new, new - u), "n": n,
    }  # fmt: skip


ROWS = RowsConfig(8, 1, streaming=True)
CONFIGS = [
    (BRANCHES, ROWS),
    *(
        pytest.param(*case, marks=pytest.mark.whole)
        for case in (
            (LOOPS, ROWS), (BRANCHES, MarchingConfig(4, 2, 0, (32, 2, 1))),
            (ENDS, ROWS), (ENDS, MarchingConfig(4, 3, 0, (32, 2, 1), looped=True)),
            (BRANCHES, MarchingConfig(1, 4, 0, (32, 2, 1))), (BRANCHES, RowsConfig(16, 1)),
            (ENDS, MarchingConfig(2, 1, 0, (32, 2, 1))),
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "config"), CONFIGS)
def test_vectors_have_the_bits_of_cells(
    text: str, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    if text == BRANCHES:
        right = starts()
        for _ in range(3):
            right = by_hand(right)
    else:
        right = after(text, CellConfig(), monkeypatch)
    found = after(text, config, monkeypatch)
    for name in DTYPES:
        assert np.array_equal(found[name], right[name]), name


def test_values_go_where_offsets_are_numbers() -> None:
    def stage_of(text: str) -> tuple[Program, Stage]:
        program = program_of(made(text), GRID, dtype=DTYPES).program
        return program, program.stages[0]

    program, stage = stage_of(BRANCHES)
    for kind, config in (("cpu", RowsConfig), ("gpu", MarchingConfig)):
        found = choose(program, stage, kind)
        assert isinstance(found, config)
        assert "kgt_cell_made_near_u((i0), (i1), kgt_0_u, kgt_1_u" in generate(
            program, stage, found
        ).source.replace(" \\\n   ", "")
    program, stage = stage_of(LOOPS)
    assert isinstance(choose(program, stage, "gpu"), CellConfig)    # which may read beside the box
    text = generate(program, stage, choose(program, stage, "cpu")).source
    assert '#define for _Pragma("unroll") for' in text and "#undef for" in text
    assert "_Pragma" not in generate(program, stage).source
