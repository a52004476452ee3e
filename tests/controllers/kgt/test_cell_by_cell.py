# SPDX-License-Identifier: MIT
"""What does not come in vectors is computed cell by cell between loads and stores that do."""
from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from kernel_ways import extreme

from controllers import Computation, kgt
from controllers.kgt import Config, Launch, choose, generate
from controllers.kgt.choice import config_of
from controllers.kgt.strategies.cell import CellConfig
from controllers.kgt.strategies.marching import MarchingConfig
from controllers.kgt.strategies.rows import RowsConfig
from controllers.kgt.text.emitter import assignments
from controllers.program.coordinates import Coordinates
from controllers.program.expression import Coordinate, Expression, Index, Read, Scalar, where
from controllers.program.neighbour import shifted
from controllers.program.program import Field, Program, Stage
from controllers.program.reference import reference_run

Array = npt.NDArray[Any]
AXES = ("z", "y", "x")


def mixed(n_axes: int) -> Program:
    """Fields of three dtypes, of which two are updated; places, coordinates and a scalar."""
    here, last = (0,) * n_axes, n_axes - 1
    before, after = (*here[1:], -1), (1, *here[1:])
    u, v, mask = Read("u", here), Read("v", here), Read("mask", before)
    red: Expression = sum((Index(axis) for axis in range(1, n_axes)), start=Index(0)) % 2
    steep = abs(Read("u", after) - u) > 0.25
    pushed = np.maximum(u, Read("u", before)) + Scalar("dt") * Coordinate(last, False, 1)
    stage = Stage(
        "both",
        {
            "u": where((red == 0) & (mask > 100), np.sqrt(abs(pushed)), u * Coordinate(0)),
            "v": where(steep | (Index(last, -1) < 3), v + 1, v - 2),
        },
        ((-1, 1),) * n_axes,
    )
    fields = Field("u", "float32"), Field("v", "float64"), Field("mask", "uint8")
    axes = AXES[-n_axes:]
    return Program(
        "mixed", fields, (stage,),
        grid=Coordinates(axes, (-1.0,) * n_axes, (0.5,) * n_axes),
    )  # fmt: skip


def chosen(config: Config, monkeypatch: pytest.MonkeyPatch) -> list[Config]:
    """What launches are computed by: `config`, with as many lanes as suit them."""
    used: list[Config] = []

    def choose(program: Program, stage: Stage, kind: str, launch: Launch | None = None) -> Config:
        found = config if launch is None else config.within(launch.extent)
        if launch is not None and not found.suits(launch.fields.values()):
            assert isinstance(config, MarchingConfig)
            found = replace(found, lanes=1)
        used.append(found)
        return found

    monkeypatch.setattr("controllers.kgt.choose", choose)
    monkeypatch.setattr("controllers.run.assembly.in_place", lambda kernel, kinds: config.in_place)
    return used


CONFIGS: dict[int, list[Config]] = {
    1: [RowsConfig(8, 1, band=1), MarchingConfig(4, 1, 0, (64, 1, 1))],
    2: [RowsConfig(8, 2, streaming=True), MarchingConfig(4, 2, 0, (32, 2, 1))],
    3: [
        RowsConfig(4, 2, 3, depth=9), MarchingConfig(4, 3, 1, (32, 2, 1)),
        MarchingConfig(2, 2, looped=True), MarchingConfig(4, 2, 0, (32, 2, 1), rows=2),
    ],
}  # fmt: skip


def check(program: Program, fields: dict[str, Array]) -> None:
    """Three steps on a CPU have the bits of the reference."""
    extent, expected = fields["u"].shape, reference_run(program, fields, 3, dt=0.125)
    with Computation(program, extent, devices="cpu", dt=0.125) as run:
        for name, values in fields.items():
            run[name].scatter(values)
        run.run(3)
        for name in ("u", "v"):
            assert np.array_equal(run[name].gather(), expected[name]), name


@pytest.mark.parametrize(
    ("n_axes", "number"),
    [
        (2, 0), (2, 1),
        *(
            pytest.param(n, at, marks=pytest.mark.whole)
            for n in (1, 3) for at in range(len(CONFIGS[n]))
        ),
    ],
)  # fmt: skip
def test_mixed_dtypes_places_and_coordinates_have_the_bits_of_the_reference(
    n_axes: int, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, extent = mixed(n_axes), (7, 9, 46)[-n_axes:]
    rng = np.random.default_rng(n_axes)
    fields: dict[str, Array] = {
        "u": rng.standard_normal(extent).astype("float32"), "v": rng.standard_normal(extent),
        "mask": extreme(rng, extent, "uint8"),
    }  # fmt: skip
    used = chosen(CONFIGS[n_axes][number], monkeypatch)
    check(program, fields)
    assert used


def test_vectors_of_memory_surround_the_text_of_one_cell() -> None:
    program = mixed(2)
    (stage,) = program.stages
    cell = generate(program, stage).source
    for strategy, kind, loop in (("rows", "cpu", 4), ("marching", "gpu", 2)):
        config = config_of(strategy, program, stage)
        assert choose(program, stage, kind) == config_of(strategy, program, stage, True)
        text = generate(program, stage, config).source
        assert f"item_lane < {loop}" in text
        assert len(re.findall(r"\bsqrt\(", text)) == len(re.findall(r"\bsqrt\(", cell)) == 1
    assert "kgt_store_double(v_new + c_v, (double2)(item_value_v[0], item_value_v[1])" in text
    rows = generate(program, stage, config_of("rows", program, stage)).source
    assert "typedef struct { kgt_cells u; kgt_cells_double v; } kgt_values;" in rows
    assert "KGT_STORE_ANYWHERE_double(item_values[item].v, v_new + c_v[item] + item_x);" in rows
    assert kgt.STRATEGIES["wavefront"].computes(program, stage) is False


def test_vectors_have_at_most_sixteen_cells_however_narrow_these_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = Read("u", (0,))
    stage = Stage("s", {"u": where(here > 3, here, 0).astype("uint8")}, ((0, 0),))
    program = Program("narrow", (Field("u", "uint8"),), (stage,))
    assert choose(program, stage, "cpu") == CellConfig()    # whose vectors may be wider
    chosen(config_of("rows", program, stage), monkeypatch)
    field = np.arange(200, dtype="uint8")
    with Computation(program, field.shape, devices="cpu") as run:
        run.scatter(field)
        run.run(1)
        assert np.array_equal(run.gather(), np.where(field > 3, field, 0))


def test_what_is_chosen_is_read_before() -> None:
    """Else compilers branch around the reads, and make no vectors of it."""
    here, before = Read("u", (0,)), Read("u", (-1,))
    stage = Stage("s", {"u": where(here > 3, before + 1, where(here > 1, here, 0))}, ((-1, 0),))
    lines = assignments({"u": "u_new[c]"}, stage, {"u": "uint8"})
    arms = [line.partition("?")[2] for line in lines]
    assert sum(map(bool, arms)) == 2 and "[" not in "".join(arms)


def test_an_item_that_holds_cells_of_many_fields_computes_fewer_of_them() -> None:
    star = [tuple(n * (axis == at) for at in range(3)) for axis in range(3) for n in (-2, -1, 1, 2)]
    for n_fields, lanes in ((1, 4), (5, 2)):
        names = [f"q{number}" for number in range(n_fields)]
        roots = {f: np.sqrt(sum((Read(f, at) for at in star), Read(f, (0, 0, 0)))) for f in names}
        stage = Stage("flow", roots, ((-2, 2),) * 3)
        program = Program("flow", tuple(Field(f, "float32") for f in names), (stage,))
        config = choose(program, stage, "gpu")
        assert isinstance(config, MarchingConfig)
        assert (config.lanes, config.looped) == (lanes, lanes == 4)


def faces(n_axes: int, dtype: str) -> Program:
    """What flows through the faces along the first axis and the last one, upwind; a scalar."""
    here = (0,) * n_axes
    reads = {name: Read(name, here) for name in ("u", "v")}

    def flux(axis: int) -> Expression:
        ahead = tuple(int(n == axis) for n in range(n_axes))
        (u, v), (above, beyond) = reads.values(), (shifted(one, ahead) for one in reads.values())
        speed = np.maximum(abs(v) / u, abs(beyond) / above)
        return v + beyond - (speed + np.sqrt(abs(u * above))) * (above - u) * Scalar("dt")

    out = sum((
        flux(axis) - shifted(flux(axis), tuple(-int(n == axis) for n in range(n_axes)))
        for axis in (0, n_axes - 1)
    ), start=reads["u"])  # fmt: skip
    stage = Stage("faces", {"u": out, "v": np.sqrt(abs(out))}, ((-1, 1),) * n_axes)
    return Program("faces", (Field("u", dtype), Field("v", dtype)), (stage,))


HANDING = [
    (MarchingConfig(2, 4, 0, (32, 2, 1), looped=True, hands=True, one_index=True), "float32"),
    (MarchingConfig(1, 3, 0, (32, 2, 1), hands=True), "float64"),
    (MarchingConfig(4, 4, 1, (16, 2, 1), one_index=True, rows=2), "float32"),
    (MarchingConfig(4, 8, 0, (16, 2, 1), looped=True, hands=True), "float64"),
]


@pytest.mark.parametrize(
    ("config", "dtype"),
    [HANDING[0], *(pytest.param(*case, marks=pytest.mark.whole) for case in HANDING[1:])],
)
def test_what_is_handed_on_from_step_to_step_has_the_bits_of_the_reference(
    config: MarchingConfig, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, extent = faces(3, dtype), (11, 5, 46)
    rng = np.random.default_rng(3)
    fields: dict[str, Array] = {name: 1 + rng.random(extent).astype(dtype) for name in ("u", "v")}
    assert chosen(config, monkeypatch) == []
    check(program, fields)


def test_what_the_cell_before_shares_is_computed_once() -> None:
    program = faces(3, "float32")
    (stage,) = program.stages
    config = MarchingConfig(1, 8, 0, looped=True)
    texts = [
        generate(program, stage, replace(config, hands=hands)).source.split("#pragma unroll 1")
        for hands in (False, True)
    ]
    roots = [[len(re.findall(r"\bsqrt\(", part)) for part in text] for text in texts]
    assert roots == [[0, 5], [1, 4]]    # four faces and v; the lower one along z before all steps
    assert "item_kept_1 = item_next_1;" in texts[1][1] and "u_m1_0_0" not in texts[1][1]
