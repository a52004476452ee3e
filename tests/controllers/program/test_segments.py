# SPDX-License-Identifier: MIT
"""Steps are divided around repeats, and before what uses the folds of the stages before it."""
from __future__ import annotations

from dataclasses import replace

import pytest

from controllers.program.expression import Read, Scalar
from controllers.program.field import Field
from controllers.program.fold import Fold
from controllers.program.program import Program
from controllers.program.repeat import Repeat
from controllers.program.scalars import Folded, Parameter
from controllers.program.segments import has_parts, segments, why_not_divided
from controllers.program.stage import Stage

HERE = ((0, 0),)
FIELDS = tuple(Field(name, "float32") for name in ("u", "old", "v"))
U, OLD, V = (Read(field.name, (0,)) for field in FIELDS)
LOOK = Stage("look", {}, HERE, {"most": Fold("max", U)}, like="u")
MOVE = Stage("move", {"u": U - Scalar("part") * OLD}, HERE)
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
    push = Stage("push", {"u": U + 1}, HERE, {"most": Fold("max", U)})
    early = program(push, TURN, renames=renames)
    assert [part.renames for part, _ in segments(early, at_folds=True)] == [renames, {}]
    assert not why_not_divided(early)
    late = program(push, replace(TURN, updates={"v": OLD + Scalar("most")}), renames=renames)
    assert why_not_divided(late) == (
        "'old', which is renamed, is read after a fold that comes later"
    )


@pytest.mark.parametrize("until", [None, lambda now: False])
def test_a_repeat_is_a_segment_with_parts_where_turns_use_what_they_fold(until: object) -> None:
    repeat = Repeat("r", 1, 2, 9, until, 4)     # type: ignore[arg-type]
    assert repeat.in_a_row == (9 if until is None else 4)
    one = program(LOOK, TURN, ALONE, repeats=(repeat,))
    assert divided(one) == [["look"], ["turn"], ["alone"]] and not has_parts(one, repeat)
    own = program(ALONE, LOOK, TURN, repeats=(Repeat("r", 1, 3, 9),))
    assert divided(own) == [["alone"], ["look", "turn"]] and has_parts(own, own.repeats[0])
    (_, (turn, _)) = segments(own, at_folds=True)
    assert divided(turn) == [["look"], ["turn"]] and not why_not_divided(own)
