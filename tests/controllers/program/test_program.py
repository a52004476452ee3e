# SPDX-License-Identifier: MIT
from __future__ import annotations

import pytest

from controllers.program.expression import Constant, Expression, Read
from controllers.program.program import Field, Program, Stage
from hitmap.shape import Shape


def program(expression: Expression, *shape: tuple[int, int], dtype: str = "float32") -> Program:
    stage = Stage("step", {"u": expression}, shape)
    return Program("step", (Field("u", dtype),), (stage,))


def u(*offset: int) -> Read:
    return Read("u", offset)


def test_offsets_and_reach_come_from_the_reads_and_not_from_the_declared_shape() -> None:
    forward = program(u(1, 0) + u(2, -1) + u(0, 0) + u(1, 0), (-3, 3), (-3, 3))
    assert forward.offsets("u") == ((1, 0), (2, -1), (0, 0))
    assert forward.reach == ((0, 2), (1, 0))
    assert program(u(-1, -4), (-1, 0), (-4, 0)).reach == ((1, 0), (4, 0))


def test_cost_of_a_cell_counts_operations_and_each_field_once() -> None:
    mean = (u(0) + u(1)) / 2
    assert program(mean, (0, 1)).flops_per_cell == 2
    assert program(mean, (0, 1)).bytes_per_cell == 8
    assert program(mean, (0, 1), dtype="float64").bytes_per_cell == 16
    fields = (Field("u", "float32"), Field("v", "float32"))
    two = Program("two", fields, (Stage("add", {"v": u(0) + Read("v", (0,))}, ((0, 0),)),))
    assert two.bytes_per_cell == 12
    fill = program(Constant(1.0), (0, 0))
    assert (fill.bytes_per_cell, fill.flops_per_cell, fill.reach) == (4, 0, ((0, 0),))


U, V, W = (Field(name, "float32") for name in "uvw")


def test_a_stage_updates_several_fields_at_once() -> None:
    flow = Stage("flow", {"v": Read("w", (1,)) + u(0), "u": 2 * u(-1)}, ((-1, 1),))
    assert flow.fields_read == ("w", "u")
    assert flow.reads == (Read("w", (1,)), u(0), u(-1))
    after = Stage("after", {"w": Read("v", (2,))}, ((0, 2),))
    both = Program("both", (U, V, W), (flow, after))
    assert both.written == ("v", "u", "w")
    assert (both.offsets("u"), both.offsets("v"), both.offsets("w")) == (
        ((0,), (-1,)), ((2,),), ((1,),)
    )  # fmt: skip
    assert both.reach == ((1, 2),)
    assert both.flops_per_cell == 2
    assert both.bytes_per_cell == 6 * 4
    assert both.updated(Shape.of_extent((9,)), (False,)) == Shape((0,), (8,))
    assert (after.writes, after.expression) == ("w", Read("v", (2,)))
    with pytest.raises(ValueError, match="'flow'.*v, u.*one stage per field"):
        _ = flow.writes


def test_a_stage_is_equal_to_one_of_the_same_expression_objects_in_the_same_order() -> None:
    one, two = 2 * u(0), 3 * u(0)
    stage = Stage("s", {"u": one, "v": two}, ((0, 0),))
    again = Stage("s", {"u": one, "v": two}, ((0, 0),))
    assert stage == again and hash(stage) == hash(again)
    others = ({"v": two, "u": one}, {"u": one}, {"u": two, "v": one}, {"u": u(0) * 2, "v": two})
    assert all(Stage("s", other, ((0, 0),)) != stage for other in others)
    assert Program("p", (U, V), (stage,)) == Program("p", (U, V), (again,))


def test_a_field_is_renamed_where_each_version_has_one_name_at_most() -> None:
    wave = Stage("wave", {"u": 2 * u(0) - Read("v", (0,))}, ((0, 0),))

    def renamed(**renames: str) -> Program:
        return Program("p", (U, V, W), (wave,), renames=renames)

    assert renamed(v="u").renames == {"v": "u"}
    assert renamed(v="w", w="v") != renamed(v="u")
    assert hash(renamed(v="u", w="v")) == hash(renamed(v="u", w="v"))
    with pytest.raises(ValueError, match="'q'.*u, v, w"):
        renamed(v="q")
    with pytest.raises(ValueError, match="'v' to 'u'.*two versions.*rename none to it"):
        renamed(u="v")
    with pytest.raises(ValueError, match="'w' to 'v'.*names v, w.*copy"):
        renamed(v="w")
    with pytest.raises(ValueError, match="'u' to 'v'.*names v, w.*copy"):
        renamed(v="u", w="u")


@pytest.mark.parametrize(
    "shape, periodic, expected",
    [
        (((-1, 1), (-1, 1)), (False, False), Shape((1, 1), (5, 3))),
        (((-1, 1), (-1, 1)), (True, False), Shape((0, 1), (6, 3))),
        (((-2, 0), (0, 1)), (False, False), Shape((2, 0), (6, 3))),
        (((1, 2), (-2, -1)), (False, False), Shape((0, 2), (4, 4))),
        (((0, 0), (0, 0)), (False, False), Shape((0, 0), (6, 4))),
    ],
)
def test_updated_cells_are_those_whose_declared_shape_stays_inside(
    shape: tuple[tuple[int, int], ...], periodic: tuple[bool, ...], expected: Shape
) -> None:
    read = u(*(low for low, _ in shape))
    assert program(read, *shape).updated(Shape.of_extent((6, 4)), periodic) == expected


def test_no_cell_is_updated_where_the_domain_is_smaller_than_the_shape() -> None:
    wide = program(u(-3), (-3, 3))
    assert wide.updated(Shape.of_extent((6,)), (False,)).empty
    assert wide.updated(Shape.of_extent((2,)), (False,)).empty
    assert wide.updated(Shape.of_extent((2,)), (True,)) == Shape((0,), (2,))


def test_updated_wants_one_boundary_per_axis() -> None:
    with pytest.raises(ValueError, match="one per axis"):
        program(u(0), (0, 0)).updated(Shape.of_extent((6,)), (False, False))


def test_a_read_outside_the_declared_shape_is_refused() -> None:
    with pytest.raises(ValueError, match=r"\(0, 2\).*declare"):
        program(u(0, 2), (-1, 1), (-1, 1))
    with pytest.raises(ValueError, match="declare"):
        program(u(0), (-1, 1), (-1, 1))


def test_a_constant_beyond_the_dtype_is_refused() -> None:
    program(u(0) * 1e39, (0, 0), dtype="float64")
    with pytest.raises(ValueError, match="1e\\+39.*float32.*wider"):
        program(u(0) * 1e39, (0, 0))


def test_bad_programs_are_refused_at_the_door() -> None:
    ok = Stage("step", {"u": u(0)}, ((0, 0),))
    with pytest.raises(ValueError, match="float16"):
        Field("u", "float16")
    with pytest.raises(ValueError, match="float4"):
        Field("float4", "float32")
    with pytest.raises(ValueError, match="at least one"):
        Program("p", (), (ok,))
    with pytest.raises(ValueError, match="'u'"):
        Program("p", (Field("v", "float32"),), (ok,))
    with pytest.raises(ValueError, match="one name"):
        Program("p", (Field("u", "float32"),) * 2, (ok,))
    with pytest.raises(TypeError, match="mapping of fields.*list"):
        Stage("s", [("u", u(0))], ((0, 0),))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="updates no field"):
        Stage("s", {}, ((0, 0),))
    with pytest.raises(ValueError, match="'v'"):
        Program("p", (U,), (Stage("s", {"u": u(0), "v": u(0)}, ((0, 0),)),))
    with pytest.raises(ValueError, match="1e\\+39"):
        Program("p", (U, V), (Stage("s", {"u": u(0), "v": 1e39 * u(0)}, ((0, 0),)),))
    with pytest.raises(ValueError, match="numbers of axes"):
        Program("p", (Field("u", "float32"),), (ok, Stage("b", {"u": u(0, 0)}, ((0, 0), (0, 0)))))
    with pytest.raises(ValueError, match="swap"):
        Stage("s", {"u": u(0)}, ((1, -1),))
    with pytest.raises(ValueError, match="1 to 4 axes"):
        Stage("s", {"u": u(0, 0, 0, 0, 0)}, ((0, 0),) * 5)
    with pytest.raises(ValueError, match="2147483647"):
        Stage("s", {"u": u(2**31)}, ((0, 2**31),))
    with pytest.raises(KeyError, match="'w'"):
        Program("p", (Field("u", "float32"),), (ok,)).field("w")
