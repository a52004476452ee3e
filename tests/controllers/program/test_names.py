# SPDX-License-Identifier: MIT
"""Stages compute the same of fields of other names."""
from __future__ import annotations

from controllers.program.boundary import Boundary
from controllers.program.element import Element, Outcome
from controllers.program.expression import Read, Scalar, reads
from controllers.program.fold import Fold
from controllers.program.names import under_names
from controllers.program.stage import Part, Stage
from hitmap import Shape

U, OLD, NEXT = Read("u", (0,)), Read("old", (0,)), Read("old", (1,))
BOTH = ((0, 1),)


def test_updates_and_folds_read_and_write_other_fields() -> None:
    stage = Stage("s", {"u": U - NEXT, "v": 2 * OLD}, BOTH, {"most": Fold("max", OLD, U > OLD)})
    made = under_names(stage, {"old": "older", "v": "w"})
    assert made.fields_read == ("u", "older") and [*made.updates] == ["u", "w"]
    assert [fold.operand for fold in made.folds.values()] == [Read("older", (0,))]
    assert made.offsets == stage.offsets and made.updates["u"] is U - Read("older", (1,))
    assert under_names(stage, {"other": "w"}) is stage


def test_where_folds_alone_are_computed_is_told_by_the_other_name() -> None:
    stage = Stage("s", {}, BOTH, {"most": Fold("max", Scalar("rate") * 2)}, like="old")
    assert under_names(stage, {"old": "older"}).home == "older"


def test_functions_in_opencl_c_read_other_fields_and_mean_the_same() -> None:
    element = Element(
        "push", "u_new = f(0);", "", 1, "", (("f", "old"), ("u", "u")), (("f", (0,)),), ("u",)
    )
    value = Outcome(element, "u", (Scalar("rate"),), OLD * Scalar("rate"))
    stage = under_names(Stage("s", {"u": value}, BOTH), {"old": "older"})
    (found,) = stage.updates.values()
    assert isinstance(found, Outcome) and stage.fields_read == ("older",)
    assert found.specification is Read("older", (0,)) * Scalar("rate")
    assert found.arguments == (Scalar("rate"),) and found.element.text == element.text


def test_a_part_of_a_stage_computes_the_cells_of_the_same_under_other_names() -> None:
    whole = Stage("s", {"u": U + NEXT}, BOTH)
    part = under_names(Part("s", {"u": U + NEXT}, BOTH, whole=whole), {"old": "older"})
    assert isinstance(part, Part) and [one.field for one in reads(*part.whole.expressions)] == [
        "u", "older"
    ]  # fmt: skip
    known = {"u": Boundary.of("keep", 1), "older": Boundary.of("mirror", 1)}
    assert str(part.updated(Shape.of_extent((9,)), (False,), known)) == "[0:9]"
