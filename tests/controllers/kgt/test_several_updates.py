# SPDX-License-Identifier: MIT
"""A stage of several updates is one kernel: what they share is read and computed once."""
from __future__ import annotations

import re

import pytest

from controllers.kgt import STRATEGIES, Config, Launch, choose, generate
from controllers.kgt.choice import config_of
from controllers.kgt.strategies.cell import CellConfig
from controllers.kgt.strategies.marching import MarchingConfig
from controllers.kgt.strategies.rows import RowsConfig
from controllers.program.expression import Application, Expression, Read
from controllers.program.functions import WIDENED
from controllers.program.program import Field, Program, Stage
from hitmap.strided import Strided

BOX = ((-1, 1), (-1, 1))
SEVERAL = "cell", "rows", "marching"


def at(field: str, *offset: int) -> Expression:
    return Read(field, offset)


def curvature(field: str) -> Expression:
    around = at(field, -1, 0) + at(field, 1, 0) + at(field, 0, -1) + at(field, 0, 1)
    return around - 4 * at(field, 0, 0)


def gray_scott() -> Program:
    u, v = at("u", 0, 0), at("v", 0, 0)
    reaction = u * v * v
    react = Stage(
        "react",
        {
            "u": u + (0.16 * curvature("u") - reaction + 0.035 * (1 - u)),
            "v": v + (0.08 * curvature("v") + reaction - 0.095 * v),
        },
        BOX,
    )
    return Program("gray_scott", (Field("u", "float32"), Field("v", "float32")), (react,))


PROGRAM = gray_scott()
(STAGE,) = PROGRAM.stages


def body(config: Config) -> str:
    return generate(PROGRAM, STAGE, config).source


def test_what_updates_share_is_computed_once_into_a_temporary() -> None:
    text = body(CellConfig())
    assert text.count("u[c_u] * v[c_v] * v[c_v]") == 1
    assert "const float t0 = u[c_u] * v[c_v] * v[c_v];" in text
    assert len(re.findall(r"\bt0\b", text)) == 3
    assert "u_new[c_u] =" in text and "v_new[c_v] =" in text
    for strategy in ("rows", "marching"):
        text = body(config_of(strategy, PROGRAM, STAGE))
        assert len(re.findall(r"const float\d+ t0 = .*;", text)) == 1, strategy
        assert len(re.findall(r"\bt0\b", text)) == 3, strategy


def test_each_field_has_its_own_buffers_and_pitches() -> None:
    for strategy in SEVERAL:
        kernel = generate(PROGRAM, STAGE, config_of(strategy, PROGRAM, STAGE))
        assert [one.name for one in kernel.parameters] == [
            "u", "v", "u_new", "v_new", "u_first", "u_pitch_0", "v_first", "v_pitch_0",
            "extent_0", "extent_1",
        ]  # fmt: skip
        assert "Updates u and v at once; reads over the offsets -1..1 x -1..1." in kernel.source
        assert "16 bytes, each field read once or written once" in kernel.source


def test_more_than_two_fields_that_lie_alike_have_one_index() -> None:
    where = Strided(4112, (528, 1), (512, 512))
    two = choose(PROGRAM, STAGE, "gpu", Launch({"u": where, "v": where}))
    assert isinstance(two, MarchingConfig) and not two.one_index
    grow = Stage("grow", {"u": at("u", 0, 1) * at("w", 0, 0) + at("v", 1, 0)}, BOX)
    program = Program("grow", tuple(Field(name, "float32") for name in "uwv"), (grow,))
    alike = choose(program, grow, "gpu", Launch(dict.fromkeys("uwv", where)))
    assert isinstance(alike, MarchingConfig) and alike.one_index
    apart = {"u": where, "w": where, "v": Strided(4112, (536, 1), (512, 512))}
    config = choose(program, grow, "gpu", Launch(apart))
    assert isinstance(config, MarchingConfig) and not config.one_index
    assert config.suits(apart.values()) and not alike.suits(apart.values())
    kernel = generate(program, grow, alike)
    assert [one.name for one in kernel.parameters] == [
        "u", "w", "v", "u_new", "u_first", "u_pitch_0", "extent_0", "extent_1",
    ]  # fmt: skip
    for other in "wv":
        assert f"const long {other}_first = u_first, {other}_pitch_0 = u_pitch_0;" in kernel.source
        assert kernel.source.count(f"c_{other} = c_u;") == 2    # before the steps, and in each


def test_all_is_computed_before_the_first_is_stored() -> None:
    turn = Stage("turn", {"u": at("v", 0, 0), "v": 1 - at("u", 0, 0)}, ((0, 0), (0, 0)))
    program = Program("turn", PROGRAM.fields, (turn,))
    *_, new_u, new_v, _ = generate(program, turn).source.splitlines()
    assert new_u.strip() == "u_new[c_u] = v[c_v];"
    assert new_v.strip() == "v_new[c_v] = 1.0f - u[c_u];"
    rows = generate(program, turn, RowsConfig(lanes=4, rows=1)).source
    assert "const kgt_values item_value = {item_value_u, item_value_v};" in rows


def test_vectors_of_the_first_field_are_aligned_and_the_others_may_lie_anywhere() -> None:
    for streaming in (True, False):
        text = body(RowsConfig(lanes=8, rows=2, streaming=streaming))
        stores = re.findall(r"(KGT_STORE\w*)\(item_values\[item\]\.(\w), (\w)_new", text)
        assert stores == [("KGT_STORE", "u", "u"), ("KGT_STORE_ANYWHERE", "v", "v")]
        assert ("% sizeof(kgt_cells)" in text) == streaming
        assert "*(__global kgt_unaligned *)(at) = (value)" in text


def test_integers_are_computed_in_the_type_that_all_updates_need() -> None:
    u = Application(WIDENED, at("u", 0, 0))
    wide = Stage("wide", {"u": u + 1, "v": u * 2**40}, ((0, 0), (0, 0)))
    program = Program("wide", (Field("u", "int16"), Field("v", "int16")), (wide,))
    text = generate(program, wide).source
    assert "u_new[c_u] = (short)(t0 + 1L);" in text


def test_each_quotient_by_a_constant_has_a_reciprocal_of_its_own() -> None:
    thirds = {"u": curvature("u") / 3, "v": curvature("u") / 5}
    stage = Stage("thirds", thirds, BOX)
    program = Program("thirds", PROGRAM.fields, (stage,))
    config = MarchingConfig(lanes=1, reciprocals=True)
    text = generate(program, stage, config).source
    for field, divisor in (("u", "3.0f"), ("v", "5.0f")):
        assert f"void kgt_divide_{field}(float *cells)" in text
        assert f"kgt_divide_{field}((float *)&item_value_{field});" in text
        assert f"cells[i] / {divisor} :" in text


@pytest.mark.parametrize(
    "strategy", sorted({*STRATEGIES} - {*SEVERAL, "groups", "items", "items_on_cpu"})
)
def test_the_other_strategies_refuse_and_say_why(strategy: str) -> None:
    with pytest.raises(ValueError, match=rf"'react' updates u, v.*'{strategy}' store one field"):
        config_of(strategy, PROGRAM, STAGE)


def test_the_choice_is_as_for_one_field() -> None:
    def chosen(kind: str, columns: int, pitches: tuple[int, int], n_steps: int = 1) -> Config:
        where = {f: Strided(n + 1, (n, 1), (400, columns)) for f, n in zip("uv", pitches)}
        return choose(PROGRAM, STAGE, kind, Launch(where, n_steps=n_steps))

    assert isinstance(chosen("cpu", 4001, (4003, 4011)), RowsConfig)
    aligned, unaligned = (chosen("gpu", 4001, (4008, n)) for n in (4016, 4011))
    assert isinstance(aligned, MarchingConfig) and aligned.lanes == 4
    assert isinstance(unaligned, MarchingConfig) and unaligned.lanes == 1
    assert chosen("cpu", 5, (8, 8)) == chosen("gpu", 5, (8, 8)) == CellConfig()
    assert choose(PROGRAM, STAGE, "accelerator") == CellConfig()
    with pytest.raises(ValueError, match="no kernel computes 4 steps"):
        chosen("cpu", 4001, (4008, 4008), n_steps=4)


def test_few_cells_of_each_field_ask_for_few_steps_and_far_planes_for_a_loop() -> None:
    config = config_of("marching", PROGRAM, STAGE)
    assert isinstance(config, MarchingConfig) and (config.steps, config.group[:2]) == (2, (64, 4))
    for reach in (1, 2, 4):
        planes = (at("u", n, 0, 0) for n in range(-reach, reach + 1))
        far = {"u": sum(planes, start=at("v", 0, 0, 0))}
        stage = Stage("far", far, ((-reach, reach), (0, 0), (0, 0)))
        program = Program("far", PROGRAM.fields, (stage,))
        config = config_of("marching", program, stage)
        assert isinstance(config, MarchingConfig) and config.looped == (reach > 1)
        assert ("#pragma unroll 1\n" in generate(program, stage, config).source) == (reach > 1)


def test_volumes_of_many_fields_are_computed_plane_by_plane() -> None:
    for n_fields, blocks in ((3, (3, 4)), (12, (1, 0))):
        names = [f"c{number}" for number in range(n_fields)]
        read = [at(name, 0, 0, 0) for name in names] + [at("u", n, 0, 0) for n in (-1, 0, 1)]
        stage = Stage("many", {"u": sum(read[1:], start=read[0])}, ((-1, 1), (0, 0), (0, 0)))
        program = Program("many", tuple(Field(name, "float32") for name in ("u", *names)), (stage,))
        config = config_of("rows", program, stage)
        assert isinstance(config, RowsConfig) and (config.planes, config.ahead) == blocks
