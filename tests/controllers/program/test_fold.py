# SPDX-License-Identifier: MIT
"""Folds in programs: what is refused, which scalars are known when, buffers as without them."""
from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from controllers import Field, Parameter, Program, Read, Scalar, Stage
from controllers.program.boundary import Boundary
from controllers.program.fold import Fold
from controllers.program.liveness import Liveness
from controllers.program.schedule import lowered, sweeps
from controllers.program.steps import why_single
from hitmap import Shape

HERE = ((0, 0),)
U = Read("u", (0,))
MOVE = Stage("move", {"u": U + Scalar("dt") * Read("u", (1,))}, ((0, 1),))
LOOK = Stage("look", {}, HERE, {"fastest": Fold("max", np.abs(U))})
DT = {"dt": 0.5 / Scalar("fastest")}


def program(*stages: Stage, **more: Any) -> Program:
    return Program("p", (Field("u", "float64"), Field("v", "float32")), stages, **more)


def test_a_fold_is_a_scalar_of_later_stages_and_dt_may_be_made_of_it():
    one = program(LOOK, MOVE, scalars=DT)
    assert [*one.folds] == ["fastest"] and one.folds["fastest"][0] is one.stages[0]
    assert one.rules.time_is_folded and one.rules.needs(["dt"]) == {"fastest"}
    assert one.changing == ("dt",) and one.results == ("fastest",)
    known = one.rules.at({}, 0.0)
    assert known == {"t": 0.0}
    assert one.rules.after(known, {"fastest": 4.0})["dt"] == 0.125
    assert why_single(one, Shape((0,), (9,))) == "its time step is made of what it folds, fastest"
    assert pickle.loads(pickle.dumps(one.rules.folds)) == ("fastest",)
    assert repr(one) == (
        "<Program p: u float64, v float32; look folds fastest, move sets u; 1 axes, math strict>"
    )


def test_stages_of_folds_alone_change_no_buffers():
    domains = dict.fromkeys("uv", Shape((0,), (9,)))
    parameters = {"dt": Parameter(1.0)}
    plain = [*sweeps(lowered(program(MOVE, scalars=parameters), domains["u"], (False,)))]
    both = [*sweeps(lowered(program(LOOK, MOVE, scalars=parameters), domains["u"], (False,)))]
    alone, folding = Liveness(domains, plain), Liveness(domains, both)
    assert (alone.n_buffers, alone.period) == (folding.n_buffers, folding.period)
    assert both[0].updates == () and [*both[0].folds] == ["fastest"]
    assert both[0].cells == domains["u"] and both[0].stage.home == "u"
    assert program(LOOK, MOVE, scalars=DT).updated(domains["u"], (False,)) == Shape((0,), (8,))
    assert program(LOOK).updated(domains["u"], (False,)) == domains["u"]


def test_what_is_folded_belongs_to_a_stage():
    fold = Fold("sum", U - Read("v", (1,)), U > 0)
    stage = Stage("s", {"u": U}, ((0, 1),), {"left": fold})
    assert stage.fields_read == ("u", "v") and stage.operations == {"-": 1, ">": 1}
    again = Stage("s", {"u": U}, ((0, 1),), {"left": Fold("sum", U - Read("v", (1,)), U > 0)})
    assert stage == again and hash(stage) == hash(again)
    assert stage != Stage("s", {"u": U}, ((0, 1),), {"left": Fold("min", *fold.expressions)})
    assert stage.with_expressions(stage.expressions) == stage
    assert stage.summary == "s sets u and folds left"


@pytest.mark.parametrize(
    "make, says",
    [
        (lambda: Fold("mean", U), "one of sum, .* got 'mean'"),
        (lambda: Fold("sum", U > 0), "folds a number, got .*where"),
        (lambda: Fold("any", U), "folds a condition, got .*compare"),
        (lambda: Stage("s", {}, HERE), "give at least one, or a fold"),
        (lambda: Stage("s", {}, HERE, {"n": Fold("sum", Scalar("a"))}), "of no field, n.*like"),
        (lambda: Stage("s", {}, HERE, {"n": Fold("sum", Read("u", (2,)))}), "outside its declared"),
        (lambda: Stage("s", {}, HERE, {"n!": LOOK.folds["fastest"]}), "fold"),
        (lambda: Stage("s", {"u": U}, HERE, like="u"), "leave like='u' out"),
        (lambda: LOOK.writes, "updates no field, it folds fastest"),
        (lambda: program(LOOK, LOOK), "fold 'fastest', and stage 'look' has a fold of that name"),
        (lambda: program(LOOK, scalars={"fastest": Parameter()}), "a scalar has that name"),
        (lambda: program(Stage("s", {}, HERE, {"u": Fold("sum", U)})), "a field has that name"),
        (lambda: program(Stage("s", {}, HERE, {"v": Fold("sum", U)})), "a scalar 'v'"),
        (lambda: program(Stage("s", {}, HERE, {"dt": Fold("sum", U)})), "cannot be called 'dt'"),
        (lambda: program(Stage("s", {}, HERE, {"n": Fold("sum", 1 + Read("w", (0,)))})), "'w'"),
        (lambda: program(Stage("s", {}, HERE, {"n": Fold("max", np.exp(U))})), "math='fast'"),
        (lambda: program(MOVE, LOOK, scalars=DT), "'dt', .* 'fastest' of stage 'look', .*before"),
        (lambda: program(LOOK, MOVE, scalars=DT).rules.given({"fastest": 1.0}), "leave it out"),
        (lambda: program(LOOK, MOVE, scalars=DT, results=("dx",)), "'dx' is made of no fold"),
        (
            lambda: program(LOOK, MOVE, scalars=DT).with_boundaries(
                {"u": Boundary.of(("keep", ("fixed", Scalar("fastest"))), 1)}
            ),
            "boundary",
        ),
    ],
)  # fmt: skip
def test_what_has_no_meaning_is_refused(make: Any, says: str):
    with pytest.raises((ValueError, TypeError), match=says):
        make()
