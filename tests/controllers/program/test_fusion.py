# SPDX-License-Identifier: MIT
"""Fusion: which stages in a row become one, why others do not, and that all means the same."""
from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from fusable_programs import fusable_program
from random_boundaries import same
from random_options import N_CASES
from sample import sample

from controllers.program.boundary import Boundary
from controllers.program.coordinates import Coordinates
from controllers.program.element import Element, Outcome
from controllers.program.expression import Constant, Coordinate, Expression, Read, Scalar, where
from controllers.program.fold import Fold
from controllers.program.fusion import MOST_FLOPS, fused
from controllers.program.program import Field, Program
from controllers.program.reference import reference_run
from controllers.program.repeat import Repeat
from controllers.program.scalars import Parameter
from controllers.program.stage import Stage

A, B, U, V = (Read(name, (0,)) for name in "abuv")
BEFORE, NEXT = Read("u", (-1,)), Read("u", (1,))
STAR = ((-1, 1),)


def program_of(*stages: dict[str, Expression], dtype: str = "float64", **more: str) -> Program:
    """Stages 0, 1, ... by their updates, of fields of one dtype but for `more`."""
    made = tuple(Stage(f"s{n}", updates, STAR) for n, updates in enumerate(stages))
    names = dict.fromkeys(name for one in made for name in (*one.updates, *one.fields_read))
    fields = tuple(Field(name, more.get(name, dtype)) for name in names)
    scalars, grid = {"rate": Parameter(0.1)}, Coordinates(("x",), (0.0,), (0.1,))
    return Program("p", fields, made, scalars=scalars, grid=grid)


def names(program: Program) -> list[str]:
    return [stage.name for stage in fused(program).stages]


def reason(program: Program) -> str:
    """Why two stages are not fused."""
    made = fused(program)
    assert made.stages == program.stages
    (choice,) = made.choices
    start = "s1: not in one sweep with s0, since "
    assert choice.startswith(start), choice
    return choice.removeprefix(start)


def test_what_the_stage_before_writes_is_substituted_and_all_fields_are_written() -> None:
    program = program_of({"v": V + BEFORE - NEXT}, {"u": U + 2 * V})
    made = fused(program)
    (stage,) = made.stages
    new = V + BEFORE - NEXT
    assert stage == Stage("s0_s1", {"v": new, "u": U + 2 * new}, STAR)
    assert made.choices == (
        "s0_s1: one sweep for s0, s1, which moves 32 instead of 48 bytes per cell",
    )
    assert fused(program, "never") is program


def test_of_two_writings_of_a_field_the_last_one_counts() -> None:
    (stage,) = fused(program_of({"u": U + NEXT}, {"u": U * U})).stages
    assert stage.updates["u"] is (U + NEXT) * (U + NEXT)


def test_values_are_converted_as_if_they_had_been_stored() -> None:
    made = fused(program_of({"a": U * NEXT}, {"b": U + A}, a="float32"))
    (stage,) = made.stages
    kept = (U * NEXT).astype("float32")
    assert stage.updates == {"a": kept, "b": U + kept}
    narrow = Read("n", (0,))
    made = fused(program_of({"n": narrow * 200}, {"m": narrow + Read("m", (0,))},
                            dtype="int64", n="uint8"))  # fmt: skip
    arrays = {"n": np.arange(9, dtype="uint8"), "m": np.arange(9)}
    assert len(made.stages) == 1
    right = [0, *(n + 200 * n % 256 + 200 * 200 * n % 256 for n in range(1, 8)), 8]
    assert reference_run(made, arrays, 2)["m"].tolist() == right


def test_chains_become_one_and_equal_ones_one_kernel_as_long_as_they_are_small() -> None:
    assert names(program_of({"u": U * U}, {"u": U + 1}, {"v": U + V})) == ["s0_s1_s2"]
    value: Expression = U
    for _ in range(120):
        value = value * U + 1
    stage = Stage("grow", {"u": value}, STAR)
    made = fused(Program("p", (Field("u", "float32"),), (stage,) * 5))
    first, second, last = made.stages
    assert first == second      # one kernel
    assert (first.name, last.name) == ("grow_2", "grow")
    assert made.choices == (
        "grow_2: one sweep for grow 2 times, which moves 8 instead of 16 bytes per cell",
        f"grow_2: not in one sweep with grow_2, since 720 operations per cell are more than "
        f"{MOST_FLOPS}",
        f"grow: not in one sweep with grow_2, since 720 operations per cell are more than "
        f"{MOST_FLOPS}",
    )


def test_what_is_read_at_another_cell_after_it_was_written_needs_a_sweep_of_its_own() -> None:
    assert reason(program_of({"u": 2 * U}, {"v": V + NEXT})) == "it reads u at (1,)"
    # what the first one reads so is the version before, whoever writes it
    assert names(program_of({"v": V + NEXT}, {"u": U + V})) == ["s0_s1"]


def test_stages_that_compute_unlike_cells_stay_apart() -> None:
    first, second = program_of({"v": NEXT + U}, {"u": U + V}).stages
    assert first.offsets == STAR        # keep: the outermost cells are not computed
    alone = replace(second, offsets=((0, 0),))
    program = Program("p", (Field("u", "float64"), Field("v", "float64")), (first, alone))
    assert reason(program) == "they compute unlike cells"
    walls = {"u": Boundary.of("mirror", 1), "v": Boundary.of("mirror", 1)}
    assert len(fused(program.with_boundaries(walls)).stages) == 1
    fields = Field("u", "float64", walls["u"]), Field("v", "float64", walls["v"], half=(True,))
    half = replace(program, fields=fields)
    assert len(fused(half).stages) == 1     # v is new where u reads it, in more points than that
    arrays = {"u": np.arange(9) / 3, "v": np.arange(10) / 7}
    right, found = (reference_run(one, arrays, 3) for one in (half, fused(half)))
    assert all(map(same, right.values(), found.values()))
    more = program_of({"u": 2 * U}, {"v": V + U})   # its last point is a cell beyond those of u
    assert reason(replace(more, fields=fields)) == "they compute unlike cells"


def test_opencl_c_takes_what_is_in_memory() -> None:
    element = Element("e", "NEW(b) = a();", "", 0, "", (("a", "a"), ("b", "b")),
                      (("a", (0,)),), ("b",))  # fmt: skip
    set_b = Outcome(element, "b")
    text = reason(program_of({"a": U + A}, {"b": set_b + U}))
    assert text == "e in OpenCL C takes what is in memory"
    assert names(program_of({"b": set_b + U}, {"u": B + U})) == ["s0_s1"]


def test_scalars_and_coordinates_are_rounded_as_in_stages_alone() -> None:
    x = Coordinate(0)
    first, second = {"u": U * (x * x)}, {"v": V + U}
    assert names(program_of(first, second, dtype="float32")) == ["s0_s1"]
    text = reason(program_of(first, second, dtype="float32", v="float64"))
    assert text == "they round scalars or coordinates to unlike dtypes"


def test_what_is_the_same_in_all_cells_stays_a_value_of_a_field() -> None:
    a = {"a": Constant(0.1)}
    assert reason(program_of(a, {"u": U + A}, dtype="float32")) == (
        "numbers alone would need another dtype"
    )
    assert names(program_of(a, {"u": U + A})) == ["s0_s1"]
    program = program_of({"a": Scalar("rate")}, {"u": U + A * A})
    assert reason(program) == "the host computes what is the same in all cells"


def test_stages_of_which_nothing_is_shared_stay_apart() -> None:
    assert reason(program_of({"u": 2 * U}, {"v": 2 * V})) == "that moves as many bytes"
    assert names(program_of({"a": 2 * U}, {"b": 3 * U})) == ["s0_s1"]


def test_folds_go_with_their_stage_and_see_what_is_written_before_it() -> None:
    fields = Field("u", "float64"), Field("v", "float64")
    move = Stage("s0", {"u": U * V}, STAR, {"least": Fold("min", U)})
    look = Stage("s1", {}, STAR, {"size": Fold("sum", U * U, U > V)})
    (stage,) = fused(Program("p", fields, (move, look))).stages
    new = U * V
    assert stage == replace(
        move, name="s0_s1", folds={**move.folds, "size": Fold("sum", new * new, new > V)}
    )
    after = Stage("s1", {"v": V + U * Scalar("twice")}, STAR)
    program = Program("p", fields, (move, after), scalars={"twice": 2 * Scalar("least")})
    assert reason(program) == "it uses twice, which is made of what that one folds"
    other = replace(look, name="s2", folds={"most": Fold("max", U)})
    (stage,) = fused(Program("p", fields, (look, other))).stages
    assert [*stage.folds] == ["size", "most"] and not stage.updates and stage.home == "u"


def test_what_is_repeated_is_not_mixed_with_what_is_not() -> None:
    program = program_of({"u": 2 * U}, {"v": U + V}, {"v": V * V}, {"u": U + V}, {"u": U * U})
    program = replace(program, repeats=(Repeat("r", 1, 3, 5),))
    made = fused(program)
    assert [stage.name for stage in made.stages] == ["s0", "s1_s2", "s3_s4"]
    assert made.repeats == (Repeat("r", 1, 2, 5),)
    assert "s3_s4: not in one sweep with s1_s2, since one of them is repeated" in made.choices
    start = {"u": np.linspace(0, 1, 9), "v": np.linspace(1, 0, 9)}
    right, got = (reference_run(one, start, 2) for one in (program, made))
    assert all(same(got[name], right[name]) for name in right)


def test_masks_and_renames_mean_the_same() -> None:
    program = program_of({"a": where(U > 0.5, U * NEXT, A)}, {"u": where(A > 0.2, A, U)})
    old = Field("old", "float64")
    program = replace(program, fields=(*program.fields, old), renames={"old": "u"})
    made = fused(program)
    assert len(made.stages) == 1 and made.renames == program.renames
    rng = np.random.default_rng(1)
    start = {name: rng.random(12) for name in ("a", "u", "old")}
    right, got = (reference_run(one, start, 5) for one in (program, made))
    assert all(same(got[name], right[name]) for name in right)


@pytest.mark.parametrize("number", sample(range(2 * N_CASES), 10))
def test_random_programs_mean_the_same(number: int) -> None:
    case = fusable_program(number)
    made = fused(case.program)
    got = replace(case, program=made).expected
    for name, right in case.expected.items():
        assert same(got[name], right), f"{name}\n{made.choices}"
