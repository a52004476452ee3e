# SPDX-License-Identifier: MIT
from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest

from controllers.language.weights import Stencil
from controllers.program.expression import Expression, Read
from controllers.program.program import Field, Program, Stage
from controllers.program.reference import reference_run, values_of

ASYMMETRIC = Stencil.of("s", [(-1, 2), (0, 1)], [[1, 0], [0.3, -2], [0, 7], [1, 1e-3]], 3)


@pytest.mark.parametrize("periodic", list(itertools.product((False, True), repeat=2)))
def test_a_step_equals_a_loop_over_cells(periodic: tuple[bool, bool]) -> None:
    array = np.random.default_rng(1).standard_normal((6, 5)).astype(np.float32)
    expected = array.copy()
    f = np.float32
    wrapped = np.pad(array, ((1, 2), (0, 1)), mode="wrap")  # cell (i, j) stands at (i + 1, j)
    for i, j in np.ndindex(6, 5):
        if (1 <= i < 4 or periodic[0]) and (j < 4 or periodic[1]):
            (a, _), (b, b1), (_, c1), (d, d1) = wrapped[i : i + 4, j : j + 2]
            total = a + f(0.3) * b + f(-2) * b1 + f(7) * c1 + d + f(1e-3) * d1
            expected[i, j] = total / f(3)
    result = reference_run(ASYMMETRIC.program("float32"), array, 1, periodic)
    assert result.dtype == np.float32
    assert result.tobytes() == expected.tobytes()


def test_steps_follow_one_another_and_the_input_stays() -> None:
    array = np.random.default_rng(2).standard_normal((7, 9))
    before = array.copy()
    program = ASYMMETRIC.program("float64")
    once = reference_run(program, array, 1, (True, False))
    assert np.array_equal(
        reference_run(program, array, 3, (True, False)),
        reference_run(program, once, 2, (True, False)),
    )
    assert np.array_equal(array, before)
    assert np.array_equal(reference_run(program, array, 0, (True, False)), array)


def test_the_arithmetic_is_rounded_to_float32_after_every_operation() -> None:
    program = Stencil.of("s", [(0, 2)], [1, 1, 1], 1).program("float32")
    array = np.array([1.0, 2.0**-24, 2.0**-24], np.float32)
    assert (
        reference_run(program, array, 1, (False,))[0] == 1
    )  # in float64, or right to left, it would be more


def test_a_reach_beyond_the_domain_wraps_more_than_once() -> None:
    program = Stencil.of("s", [(-7, 0)], [1, 0, 0, 0, 0, 0, 0, 0], 1).program("float64")
    array = np.array([1.0, 2.0, 3.0])
    assert reference_run(program, array, 1, (True,)).tolist() == [3, 1, 2]
    assert reference_run(program, array, 1, (False,)).tolist() == [1, 2, 3]


def test_overflow_and_division_by_zero_make_no_warnings() -> None:
    u = Read("u", (0,))
    stage = Stage("s", {"u": (u * 1e38) / (u - u)}, ((0, 0),))
    program = Program("s", (Field("u", "float32"),), (stage,))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = reference_run(program, np.array([1e30, 0.0], np.float32), 1, (False,))
    assert np.isinf(result[0]) and np.isnan(result[1])


def test_values_ask_for_each_read() -> None:
    stage = ASYMMETRIC.program("float64").stages[0]

    def read(node: Read) -> np.ndarray:
        return np.full((2, 2), float(node.offset[0]))

    result = values_of(stage.expression, read, "float64")
    assert np.allclose(result, (-1 + 7 + 2 + 2e-3) / 3)


def test_a_wrong_dtype_and_a_negative_count_are_refused() -> None:
    program = ASYMMETRIC.program("float32")
    with pytest.raises(ValueError, match="float64.*convert"):
        reference_run(program, np.zeros((5, 5)), 1, (False, False))
    with pytest.raises(ValueError, match="-1"):
        reference_run(program, np.zeros((5, 5), np.float32), -1, (False, False))


def run(
    stages: tuple[Stage, ...],
    start: dict[str, list[int]],
    n_steps: int = 1,
    periodic: tuple[bool, ...] = (False,),
    **renames: str,
) -> dict[str, list[int]]:
    """What the fields `start`, of int32, are after some steps."""
    fields = tuple(Field(name, "int32") for name in start)
    program = Program("p", fields, stages, renames=renames)
    arrays = {name: np.int32(values) for name, values in start.items()}
    result = reference_run(program, arrays, n_steps, periodic)
    assert all(arrays[name].tolist() == start[name] for name in start)
    return {name: array.tolist() for name, array in result.items()}


def at(field: str, offset: int = 0) -> Read:
    return Read(field, (offset,))


HERE, NEXT, BOTH = ((0, 0),), ((0, 1),), ((-1, 1),)


def test_updates_of_one_stage_are_simultaneous() -> None:
    both: dict[str, Expression] = {"u": at("u") + at("v", 1), "v": at("u", 1) - at("v")}
    start = {"u": [1, 2, 3], "v": [10, 20, 30]}
    assert run((Stage("s", both, NEXT),), start) == {"u": [21, 32, 3], "v": [-8, -17, 30]}
    twice = run((Stage("s", both, NEXT),), start, 2, (True,))
    assert twice == run((Stage("s", both, NEXT),), run((Stage("s", both, NEXT),), start,
                        periodic=(True,)), periodic=(True,))  # fmt: skip
    exchange: dict[str, Expression] = {"u": at("v"), "v": at("u")}
    assert run((Stage("s", exchange, HERE),), start) == {"u": [10, 20, 30], "v": [1, 2, 3]}


def test_a_stage_sees_what_the_ones_before_it_wrote() -> None:
    reads_old = Stage("early", {"v": at("u", 1)}, NEXT)
    writes = Stage("write", {"u": 10 * at("u")}, HERE)
    reads_new = Stage("late", {"w": at("u", 1)}, NEXT)
    start = {"u": [1, 2, 3], "v": [0, 0, 0], "w": [0, 0, 0]}
    after = {"u": [10, 20, 30], "v": [2, 3, 0], "w": [20, 30, 0]}
    assert run((reads_old, writes, reads_new), start) == after


def test_a_field_is_written_twice_in_a_step_over_unlike_cells() -> None:
    wide = Stage("wide", {"u": at("u", -1) + at("u", 1)}, BOTH)
    narrow = Stage("narrow", {"u": at("u") * 2 + at("u", 1)}, NEXT)
    # 1 2 3 4 -> 1 4 6 4 -> 6 14 16 4
    assert run((wide, narrow), {"u": [1, 2, 3, 4]}) == {"u": [6, 14, 16, 4]}


def test_a_field_that_is_only_read_stays_and_is_seen_at_neighbours() -> None:
    stage = Stage("s", {"u": at("u") * at("fixed", -1) + at("fixed", 1)}, BOTH)
    start = {"u": [1, 1, 1], "fixed": [2, 3, 5]}
    assert run((stage,), start, 2) == {"u": [1, 19, 1], "fixed": [2, 3, 5]}
    assert run((stage,), start, 1, (True,)) == {"u": [8, 7, 5], "fixed": [2, 3, 5]}


def test_renamed_fields_take_whole_versions_of_the_step_s_begin() -> None:
    wave = Stage("wave", {"u": at("u", 1) + at("old")}, NEXT)
    start = {"u": [1, 2, 3], "old": [10, 20, 30]}
    once = {"u": [12, 23, 3], "old": [1, 2, 3]}
    assert run((wave,), start, 1, old="u") == once
    assert run((wave,), start, 2, old="u") == {"u": [24, 5, 3], "old": [12, 23, 3]}
    add = Stage("add", {"w": at("w") + at("u")}, HERE)
    swapped = run((add,), {**start, "w": [0, 0, 0]}, 3, u="old", old="u")
    assert swapped == {"u": [10, 20, 30], "old": [1, 2, 3], "w": [12, 24, 36]}
    ring = run((add,), {"u": [1], "v": [2], "x": [3], "w": [0]}, 3, u="v", v="x", x="u")
    assert ring == {"u": [1], "v": [2], "x": [3], "w": [6]}


def test_arrays_of_a_program_with_several_fields_are_named() -> None:
    stage = Stage("s", {"u": at("u") + at("v")}, HERE)
    program = Program("p", (Field("u", "int32"), Field("v", "int32")), (stage,))
    one, two = np.int32([1, 2]), np.int32([3, 4])
    assert reference_run(program, {"v": two, "u": one}, 0, (False,)).keys() == {"u", "v"}
    with pytest.raises(ValueError, match="fields u, v.*one array.*each name"):
        reference_run(program, one, 1, (False,))
    with pytest.raises(ValueError, match="fields u, v.*of u, w; give one for each"):
        reference_run(program, {"u": one, "w": two}, 1, (False,))
    with pytest.raises(ValueError, match=r"unlike shapes \(u: \(2,\), v: \(1,\)\)"):
        reference_run(program, {"u": one, "v": two[:1]}, 1, (False,))
    with pytest.raises(TypeError, match="array.*list.*asarray"):
        reference_run(program, {"u": one, "v": [3, 4]}, 1, (False,))  # type: ignore[dict-item]
