# SPDX-License-Identifier: MIT
"""Steps are divided around repeats, and before what uses the folds of the stages before it."""
from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from fold_programs import late_reads
from random_boundaries import same
from sample import sample

from controllers.program.expression import Application, Read, Scalar
from controllers.program.field import Field
from controllers.program.fold import Fold
from controllers.program.functions import STORED
from controllers.program.neighbour import shifted
from controllers.program.program import Program
from controllers.program.reference import reference_steps
from controllers.program.repeat import Repeat
from controllers.program.scalars import Folded, Parameter
from controllers.program.segments import formers, has_parts, segments, with_formers
from controllers.program.stage import Stage
from controllers.program.storing import with_temporaries

HERE = ((0, 0),)
FIELDS = tuple(Field(name, "float32") for name in ("u", "old", "v"))
U, OLD, V = (Read(field.name, (0,)) for field in FIELDS)
LOOK = Stage("look", {}, HERE, {"most": Fold("max", U)}, like="u")
MOVE = Stage("move", {"u": U - Scalar("part") * OLD}, HERE)
PUSH = Stage("push", {"u": U + 1}, HERE, {"most": Fold("max", U)})
TURN = Stage("turn", {"v": V + Scalar("most")}, HERE)
ALONE = Stage("alone", {"v": V + 1}, HERE)
SCALARS = {"most": Folded(), "part": Scalar("most") / 2, "rate": Parameter(0.5)}


def program(*stages: Stage, **more: object) -> Program:
    return Program("p", FIELDS, stages, scalars=SCALARS, **more)    # type: ignore[arg-type]


def divided(one: Program) -> list[list[str]]:
    return [[stage.name for stage in part.stages] for part, _ in segments(one, at_folds=True)]


def test_a_segment_ends_where_what_it_folds_is_used() -> None:
    assert divided(program(ALONE, LOOK, MOVE, TURN)) == [["alone", "look"], ["move", "turn"]]
    again = replace(LOOK, name="again", folds={"least": Fold("min", V)})
    one = replace(program(LOOK, MOVE), stages=(LOOK, replace(ALONE, name="free"), MOVE, again))
    one = replace(one, scalars={**SCALARS, "least": Folded()})
    assert divided(one) == [["look", "free"], ["move", "again"]]
    assert divided(program(LOOK, ALONE)) == [["look", "alone"]]


def test_folds_and_what_is_made_of_them_are_parameters_of_the_segments_after() -> None:
    (first, _), (second, _) = segments(program(LOOK, MOVE), at_folds=True)
    assert first.folds and "part" not in first.rules and "rate" in first.rules
    assert {*second.rules.parameters} == {"most", "part", "rate"} and not second.folds


def test_the_segment_that_first_writes_what_is_renamed_renames() -> None:
    renames = {"old": "u"}
    usual = program(LOOK, MOVE, ALONE, renames=renames)
    assert [part.renames for part, _ in segments(usual, at_folds=True)] == [{}, renames]
    early = program(PUSH, TURN, renames=renames)
    assert [part.renames for part, _ in segments(early, at_folds=True)] == [renames, {}]
    assert with_formers(early) is early


def test_fields_are_renamed_each_where_it_is_first_written() -> None:
    fields = (*FIELDS, Field("before", "float32"), Field("a", "float32"), Field("b", "float32"))
    renames = {"old": "u", "before": "v", "a": "b", "b": "a"}
    one = replace(program(PUSH, TURN, ALONE), fields=fields, renames=renames)
    first, second = (part.renames for part, _ in segments(one, at_folds=True))
    assert first == {"old": "u"} and second == {"before": "v", "a": "b", "b": "a"}


def test_what_a_renamed_field_was_is_read_under_another_name_once_it_is_renamed() -> None:
    late = replace(TURN, updates={"v": OLD + Scalar("most")}, like="")
    chain = replace(
        program(PUSH, late), fields=(*FIELDS, Field("older", "float32")),
        renames={"old": "u", "older": "old"},
    )  # fmt: skip
    assert with_formers(chain) is chain
    (first, _), (second, _) = segments(chain, at_folds=True)
    assert first.renames == chain.renames
    assert second.stages[0].fields_read == ("older",) and "old" not in second.dtypes


def test_what_nobody_has_any_more_gets_a_name_for_the_segments_that_read_it() -> None:
    late = replace(TURN, updates={"v": OLD + Scalar("most")})
    late = replace(late, folds={"least": Fold("min", OLD)})
    one = replace(program(PUSH, late), scalars={**SCALARS, "least": Folded()}, results=None)
    one = with_formers(replace(one, renames={"old": "u"}))
    (former,) = formers(one)
    assert former == replace(one.field("old"), name="former_1") and one.field("old") in one.fields
    assert one.renames == {"old": "u", "former_1": "old"} and with_formers(one) is one
    (first, _), (second, _) = segments(one, at_folds=True)
    assert first.renames == one.renames and former in first.fields and not first.temporaries
    assert second.stages[0].fields_read == ("former_1",) and former in second.fields
    assert "old" not in second.dtypes and not second.renames
    fields = (*FIELDS, Field("former_1", "float32"))
    taken = replace(one, fields=fields, temporaries=(), renames={"old": "u"})
    assert [field.name for field in formers(with_formers(taken))] == ["former_2"]


@pytest.mark.parametrize("number", sample(range(60), 20))
def test_segments_in_a_row_are_the_step(number: int) -> None:
    case = late_reads(number)
    divided, now = with_formers(case.program), {**case.arrays}
    for field in formers(divided):      # whatever they hold as a step begins
        now[field.name] = np.ones_like(now[divided.renames[field.name]])
    for _ in range(case.n_steps):
        known: dict[str, float] = {}
        for part, _ in segments(divided, at_folds=True):
            own = {field.name: now[field.name] for field in part.fields}
            rules = divided.rules.after(divided.rules.at({}, 0), known)
            given = {name: rules[name] for name in part.rules.parameters if name in rules}
            looked = replace(part, results=tuple(part.folds))
            (after,) = reference_steps(looked, own, case.periodic, given, n_steps=1)
            now |= after.fields
            known |= {name: float(after.results[name]) for name in part.folds}
    for name, right in case.expected.items():
        assert same(now[name], right), name
    assert all(float(case.results[name]) == known[name] for name in known)


def test_what_is_stored_for_a_stage_is_computed_with_it() -> None:
    flux = Application(STORED, U * Read("u", (1,)))
    near = Scalar("most") * (flux - shifted(flux, (-1,)))
    flow = Stage("flow", {"u": U + near}, ((-1, 1),))
    look = replace(LOOK, offsets=((-1, 1),))
    one = with_temporaries(program(look, flow), "always")
    assert [stage.name for stage in one.stages] == ["look", "flow_stored_1", "flow"]
    assert divided(one) == [["look"], ["flow_stored_1", "flow"]]
    first, second = (part.temporaries for part, _ in segments(one, at_folds=True))
    assert not first and [field.name for field in second] == ["stored_1"]


@pytest.mark.parametrize("until", [None, lambda now: False])
def test_a_repeat_is_a_segment_with_parts_where_turns_use_what_they_fold(until: object) -> None:
    repeat = Repeat("r", 1, 2, 9, until, 4)     # type: ignore[arg-type]
    assert repeat.in_a_row == (9 if until is None else 4)
    one = program(LOOK, TURN, ALONE, repeats=(repeat,))
    assert divided(one) == [["look"], ["turn"], ["alone"]] and not has_parts(one, repeat)
    own = program(ALONE, LOOK, TURN, repeats=(Repeat("r", 1, 3, 9),))
    assert divided(own) == [["alone"], ["look", "turn"]] and has_parts(own, own.repeats[0])
    (_, (turn, _)) = segments(own, at_folds=True)
    assert divided(turn) == [["look"], ["turn"]]
