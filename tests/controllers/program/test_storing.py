# SPDX-License-Identifier: MIT
"""Stored values: which become temporary fields, and what schedules and plans make of these."""
from __future__ import annotations

import numpy as np
import pytest
from random_boundaries import same
from sample import cases
from stored_programs import stored_program

from controllers.plan import Location, Plan
from controllers.program.boundary import Boundary
from controllers.program.coordinates import Coordinates
from controllers.program.element import Element, Outcome
from controllers.program.expression import (
    Application,
    Coordinate,
    Expression,
    Read,
    Scalar,
)
from controllers.program.functions import STORED
from controllers.program.interpreter import run_schedule
from controllers.program.neighbour import shifted
from controllers.program.program import Field, Program
from controllers.program.reference import reference_run
from controllers.program.scalars import Parameter
from controllers.program.schedule import Repeat, lowered, sweeps
from controllers.program.stage import Stage
from controllers.program.storing import Storing, with_temporaries
from controllers.program.surroundings import Positions, Surroundings
from hitmap import Layout, Shape

U, NEXT = Read("u", (0,)), Read("u", (1,))


def stored(value: Expression) -> Expression:
    return Application(STORED, value)


def difference(value: Expression) -> Expression:
    return value - shifted(value, (-1,))


def program_of(new: Expression, dtype: str = "float64", **more: Expression) -> Program:
    updates = {"u": new, **more}
    stage = Stage("flow", updates, ((-3, 3),))
    return Program("flow", tuple(Field(name, dtype) for name in updates), (stage,))


def parts(program: Program, storing: Storing = "always") -> list[tuple[str, object]]:
    made = with_temporaries(program, storing)
    return [(", ".join(stage.updates), stage.rim) for stage in made.stages]


def test_what_is_read_at_several_offsets_is_a_part_of_its_own_and_nothing_else_is() -> None:
    flux = stored(U * NEXT)
    assert parts(program_of(U + difference(flux))) == [("stored_1", ((-1, 0),)), ("u", ())]
    assert parts(program_of(U + flux)) == [("u", ())]
    assert parts(program_of(U + difference(flux)), "never") == [("u", ())]
    (stage,) = with_temporaries(program_of(U + difference(flux)), "never").stages
    assert STORED not in stage.operations


def test_values_of_one_rim_share_a_sweep_and_the_same_at_neighbours_are_one_value() -> None:
    one, other = stored(U * NEXT), stored(NEXT - U)
    # the second one is the first, one cell further
    again = stored(NEXT * Read("u", (2,)))
    program = program_of(U + difference(one) + again, v=difference(other) + one)
    made = with_temporaries(program, "always")
    assert [[*stage.updates] for stage in made.stages] == [["stored_2"], ["stored_1"], ["u", "v"]]
    assert [stage.rim for stage in made.stages] == [((-1, 0),), ((-1, 1),), ()]
    program = program_of(U + difference(one), v=difference(other))
    assert parts(program) == [("stored_1, stored_2", ((-1, 0),)), ("u, v", ())]


def test_values_that_hold_others_come_after_them_and_their_rims_add_up() -> None:
    inner = stored(U * U)
    outer = stored(shifted(inner, (1,)) - shifted(inner, (-1,)))
    assert parts(program_of(difference(outer))) == [
        ("stored_2", ((-2, 1),)), ("stored_1", ((-1, 0),)), ("u", ()),
    ]  # fmt: skip


def test_stages_use_the_temporary_fields_of_those_before_again() -> None:
    first, second = (
        Stage(name, {"u": difference(stored(value))}, ((-1, 1),))
        for name, value in (("push", U * NEXT), ("pull", U - NEXT))
    )
    program = Program("both", (Field("u", "float32"),), (first, second, first))
    made = with_temporaries(program, "always")
    assert [field.name for field in made.temporaries] == ["stored_1"]
    assert made.temporaries[0].dtype == "float32"
    assert made.stages[0] is made.stages[4]     # one kernel
    plan = Plan(made, Layout.bands(Shape.of_extent((8,)), 2), (True,), [Location(0), Location(1)])
    assert plan.liveness.n_buffers["stored_1"] == 1
    assert {m.lifetime for m in plan.memories if "stored" in str(m.key)} == {"step"}


def test_what_saves_much_and_moves_little_is_stored() -> None:
    value: Expression = U
    for _ in range(60):
        value = value * NEXT + U
    assert len(parts(program_of(difference(stored(value))), "auto")) == 2
    assert len(parts(program_of(difference(stored(U * NEXT))), "auto")) == 1
    choices = with_temporaries(program_of(difference(stored(value)))).choices
    assert choices == (
        "flow: a stored value is kept in stored_1: that saves 120 operations, and 24 bytes more to "
        "move, per cell",
    )
    few = program_of(difference(stored(U * NEXT * 3 + U * 7)))
    assert [len(with_temporaries(few, "auto", worth).stages) for worth in (0.1, 4)] == [2, 1]
    choices = with_temporaries(program_of(U + stored(value))).choices
    assert choices == (
        "flow: a stored value is computed where it is read, at one offset alone",
    )


def test_what_cells_compute_together_they_share() -> None:
    """Along the last axis and the last but two: a value at two offsets is 3 for 2 cells."""
    value: Expression = Read("u", (0, 0, 0))
    for number in range(2, 12):
        value = value * number + value
    found = []
    for axis in range(3):
        above = tuple(-(n == axis) for n in range(3))
        update = stored(value) - shifted(stored(value), above)
        stage = Stage("flow", {"u": update}, ((-1, 0),) * 3)
        program = Program("flow", (Field("u", "float32"),), (stage,))
        for together in (1, 2):
            (choice,) = with_temporaries(program, "auto", 1.0, together).choices
            found.append(int(choice.split(" operations")[0].split()[-1]))
    assert found == [20, 10, 20, 20, 20, 10]


def test_numbers_have_no_dtype_to_be_stored_in() -> None:
    # a coordinate takes the dtype of what it meets
    coordinates = Coordinates(("x",), (0.0,), (1.0,))
    stage = Stage("flow", {"u": U * difference(stored(Coordinate(0) * 2))}, ((-1, 1),))
    program = Program("flow", (Field("u", "float32"),), (stage,), grid=coordinates)
    assert parts(program) == [("u", ())]


def test_what_would_be_rounded_otherwise_alone_is_computed_again() -> None:
    x = Coordinate(0)
    value = stored(U * (x * x))
    stage = Stage("flow", {"u": difference(value), "v": Read("v", (0,)) + U}, ((-1, 1),))
    fields = Field("u", "float32"), Field("v", "float64")
    program = Program(
        "flow", fields, (stage,), grid=Coordinates(("x",), (0.0,), (0.1,))
    )
    made = with_temporaries(program, "always")
    assert [[*stage.updates] for stage in made.stages] == [["u", "v"]]
    assert not made.temporaries and "would round" in made.choices[0]


@pytest.mark.parametrize("number", cases(6, 60))
def test_random_programs_mean_the_same(number: int) -> None:
    case = stored_program(number)
    if case.program.renames:    # schedules know none
        return
    made = with_temporaries(case.program, "always")
    domain = Shape.of_extent(case.extent)
    step = lowered(made, domain, case.periodic)
    around = Surroundings(Positions(domain, case.periodic), {})
    boundaries = case.program.boundaries
    got = run_schedule(
        Repeat(step, case.n_steps), case.arrays, case.periodic, boundaries, around
    )
    for field, expected in case.expected.items():
        assert same(got[field], expected), field
    assert [*got] == [*case.expected]


def test_beyond_the_domain_it_is_the_expression_of_what_lies_there() -> None:
    # of i * u with u = 1 in the domain and 3 beyond: -3 and 12 at -1 and 4
    value, grid = stored(U * Coordinate(0, half=True)), Coordinates(("x",), (0.0,), (1.0,))
    new = shifted(value, (-1,)) + shifted(value, (1,))
    field = Field("u", "float64", Boundary.of("fixed:3", 1))
    program = Program("flow", (field,), (Stage("flow", {"u": new}, ((-1, 1),)),), grid=grid)
    start = np.ones(4)
    right = [-3 + 1, 0 + 2, 1 + 3, 2 + 12]
    assert reference_run(program, start, 1).tolist() == right
    made = with_temporaries(program, "always")
    domain = Shape.of_extent((4,))
    step = lowered(made, domain, (False,))
    assert [str(sweep.cells) for sweep in sweeps(step)] == ["[-1:5]", "[0:4]"]
    around = Surroundings(Positions(domain, (False,), grid), {})
    got = run_schedule(step, {"u": start}, (False,), program.boundaries, around)
    assert got["u"].tolist() == right


PLAN = """\
plan of flow: 12 cells, 2 places
  place 0: rank 0, controller 0, host memory, owns [0:6]
  place 1: rank 1, controller 0, host memory, owns [6:12]
step 0; all others are the same
  place 0
      0 launch   flow_stored_1: stored_1.0@0 [-1:6] from u.0@0 [-1:7]    after 4'
      2 launch   flow: u.0@0 [0:6] from u.0@0 [0:6], stored_1.0@0 [-1:6] after 7'
      4 receive  u.0@0 [6:7] from place 1                                after 0
      7 send     u.0@0 [5:6] to place 1                                  after 2
      8 fill     u.0@0 [0:1] -> u.0@0 [-1:0]
  place 1
      1 launch   flow_stored_1: stored_1.0@1 [5:12] from u.0@1 [5:13]    after 5'
      3 launch   flow: u.0@1 [6:12] from u.0@1 [6:12], stored_1.0@1 [5:12] after 6'
      5 receive  u.0@1 [5:6] from place 0                                after 1
      6 send     u.0@1 [6:7] to place 0                                  after 3
      9 fill     u.0@1 [11:12] -> u.0@1 [12:13]"""


def test_a_place_computes_what_it_reads_of_stored_values_and_receives_their_inputs_alone() -> None:
    program = program_of(U + difference(stored(U * NEXT)))
    stage = Stage("flow", program.stages[0].updates, ((-1, 1),))
    program = Program("flow", (Field("u", "float64", Boundary.of("mirror", 1)),), (stage,))
    made = with_temporaries(program, "always")
    layout = Layout.bands(Shape.of_extent((12,)), 2)
    plan = Plan(made, layout, (False,), [Location(0), Location(1)])
    assert str(plan) == PLAN
    assert {version.field for version in plan.exchanges} == {"u"}


def test_scalars_of_stored_values_change_without_another_program() -> None:
    value = stored(U * (1 + Scalar("rate")))
    stage = Stage("flow", {"u": difference(value)}, ((-1, 1),))
    program = Program(
        "flow", (Field("u", "float32"),), (stage,), scalars={"rate": Parameter(0.5)}
    )
    made = with_temporaries(program, "always")
    assert [*made.scalars] == [*program.scalars]
    assert [*made.stages[0].given] == [*program.stages[0].given]


def test_what_a_function_in_opencl_c_gives_is_computed_where_it_is_set() -> None:
    fields, reads = (("u", "u"),), (("u", (1,)),)
    element = Element("move", "NEW(u) = u(1);", "", 0, "a text", fields, reads, ("u",))
    program = program_of(stored(Outcome(element, "u") * 2) + 1)
    assert parts(program) == [("u", ())]
