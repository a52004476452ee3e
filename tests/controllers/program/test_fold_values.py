# SPDX-License-Identifier: MIT
"""Folds in the reference against plain NumPy and math.fsum, and what scalars and time make of them.
"""
from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from sample import cases

from controllers import Coordinates, Field, Index, Parameter, Program, Read, Scalar, Stage
from controllers.program.boundary import Boundary
from controllers.program.expression import Application, Constant, Coordinate
from controllers.program.fold import Fold
from controllers.program.functions import STORED
from controllers.program.reference import reference_run, reference_steps
from controllers.program.repeat import Repeat
from controllers.program.storing import with_temporaries

HERE = ((0, 0), (0, 0))
U = Read("u", (0, 0))
RIGHT = Read("u", (0, 1))


def after(stage: Stage, u: Any, n_steps: int = 1, **more: Any) -> dict[str, Any]:
    program = Program("p", (Field("u", u.dtype.name),), (stage,), **more)
    (*_, last) = reference_steps(program, {"u": u}, n_steps=n_steps)
    return last.results


def some(dtype: str, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    if dtype.startswith("float"):
        values = rng.normal(size=(7, 9)) * 10.0 ** rng.integers(-30, 30, (7, 9))
        special = [np.nan, np.inf, -np.inf, 0.0, -0.0]
        if seed % 3:
            values.flat[rng.integers(0, 63, 4)] = rng.choice(special[seed % 2 :], 4)
        return values.astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, (7, 9), dtype, endpoint=True)


@pytest.mark.parametrize("seed", cases(6, 60))
@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8", "int32", "int64"])
def test_folds_are_those_of_numpy(dtype: str, seed: int):
    u = some(dtype, seed)
    mask = U > 1 if seed % 2 else None
    kinds = ("sum", "min", "max", "argmin", "argmax")
    folds = {kind: Fold(kind, U, mask) for kind in kinds}  # type: ignore[arg-type]
    folds |= {"some": Fold("any", U > 3, mask), "each": Fold("all", U > 3, mask)}
    chosen = u > 1 if seed % 2 else np.ones_like(u, bool)
    if not chosen.any():
        return
    values, numbers = u[chosen], np.arange(u.size).reshape(u.shape)[chosen]
    found = after(Stage("s", {"u": U}, HERE, {f"f_{k}": f for k, f in folds.items()}), u)
    with np.errstate(all="ignore"):
        special = values[~np.isfinite(values)]
        exact = math.fsum if u.dtype.kind == "f" else sum
        total = float(special.sum() if special.size else exact(values.tolist()))
        assert np.array_equal(found["f_sum"], total, equal_nan=True)
        assert np.array_equal(found["f_min"], values.min(), equal_nan=True)
        assert np.array_equal(found["f_max"], values.max(), equal_nan=True)
    assert found["f_min"].dtype == found["f_max"].dtype == u.dtype
    assert found["f_argmin"] == numbers[values.argmin()]
    assert found["f_argmax"] == numbers[values.argmax()]
    assert found["f_some"] is bool((values > 3).any())
    assert found["f_each"] is bool((values > 3).all())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_zero_below_is_less_than_zero(dtype: str):
    stage = Stage("s", {}, HERE, {"low": Fold("min", U), "top": Fold("max", U),
                                  "at": Fold("argmin", U), "total": Fold("sum", U)})  # fmt: skip
    for row, signs in (([0, -0.0], (True, False)), ([-0.0, -0.0], (True, True))):
        found = after(stage, np.array([row], dtype))
        assert (np.signbit(found["low"]), np.signbit(found["top"])) == signs
        assert found["at"] == 0 and found["low"].dtype == found["top"].dtype == dtype
        assert found["total"] == 0 and not np.signbit(found["total"])


def test_a_fold_covers_what_its_stage_computes_and_sees_the_values_before_it():
    u = np.arange(12.0).reshape(3, 4)
    folds = {"total": Fold("sum", RIGHT - U), "largest": Fold("argmax", U)}
    stage = Stage("s", {"u": U * 100}, ((0, 0), (0, 1)), folds)
    assert after(stage, u) == {"total": 9.0, "largest": 10}
    alone = Stage("s", {}, ((0, 0), (0, 1)), folds)
    assert after(alone, u) == {"total": 9.0, "largest": 10}
    (now,) = reference_steps(
        Program("p", (Field("u", "float64"),), (stage,)), {"u": u}, (False, True), n_steps=1
    )
    assert now.results == {"total": 0.0, "largest": 11}


def test_values_of_no_field_are_folded_where_another_lies():
    u = np.zeros((3, 4), np.float32)
    grid = Coordinates(("y", "x"), (0.0, 0.0), (1.0, 0.5))
    folds = {"n": Fold("sum", Constant(1), Index(1) > 1), "far": Fold("max", Coordinate(1))}
    assert after(Stage("s", {}, HERE, folds, like="u"), u, grid=grid) == {"n": 6.0, "far": 1.75}


def test_points_are_numbered_among_those_of_their_field():
    field = Field("u", "float64", Boundary.of(("keep", "keep"), 2), (False, True))
    stage = Stage("s", {}, HERE, {"at": Fold("argmax", U)})
    u = np.zeros((3, 5))
    u[2, 4] = 1
    (now,) = reference_steps(Program("p", (field,), (stage,)), {"u": u}, n_steps=1)
    assert now.results == {"at": 14}


def test_no_cells_have_no_extreme():
    with pytest.raises(ValueError, match="'top' is the max of no cells.*condition"):
        after(Stage("s", {}, HERE, {"top": Fold("max", U, U > 9)}), np.zeros((2, 2)))
    folds = {"n": Fold("sum", U, U > 9), "any": Fold("any", U > 1, U > 9)}
    assert after(Stage("s", {}, HERE, folds), np.zeros((2, 2))) == {"n": 0.0, "any": False}


def look_and_go() -> Program:
    """dt is half of what is left of the largest value."""
    look = Stage("look", {}, HERE, {"top": Fold("max", U), "low": Fold("min", U)})
    go = Stage("go", {"u": U - Scalar("dt") * Scalar("top")}, HERE)
    rules = {"dt": Scalar("share") / Scalar("top"), "share": Parameter(0.5),
             "width": Scalar("top") - Scalar("low")}  # fmt: skip
    return Program(
        "p", (Field("u", "float64"),), (look, go), scalars=rules, results=("width", "low")
    )


def test_later_stages_and_dt_take_folds_and_time_is_a_running_sum():
    u, time = np.array([[3.0, 7.0]]), 0.0
    for number, now in enumerate(reference_steps(look_and_go(), {"u": u}, n_steps=3), 1):
        width, dt = float(np.ptp(u)), 0.5 / u.max()
        low, u, time = u.min(), u - dt * u.max(), time + dt
        assert np.array_equal(now.fields["u"], u) and (now.step, now.time) == (number, time)
        assert now.results == {"width": width, "low": low}
    whole = reference_run(look_and_go(), np.array([[3.0, 7.0]]), 3)
    assert np.array_equal(whole, u)
    given = reference_run(look_and_go(), np.array([[3.0, 7.0]]), 1, scalars={"share": 1.0})
    assert given.tolist() == [[2.0, 6.0]]


def test_the_last_step_is_shortened_where_dt_is_computed_in_it():
    u = {"u": np.array([[1.0, 1.0]])}
    times = [(now.time, now.fields["u"][0, 0]) for now in reference_steps(
        look_and_go(), u, until=0.75)]  # fmt: skip
    assert times == [(0.5, 0.5), (0.75, 0.5 - 0.25 * 0.5)]
    go = Stage("go", {"u": U + Scalar("dt")}, HERE)
    steady = Program("p", (Field("u", "float64"),), (go,))
    assert [now.time for now in reference_steps(steady, u, dt=0.5, until=0.75)] == [0.5, 1.0]


def test_stages_are_repeated_until_something_holds():
    seen: list[Any] = []

    def until(now: Any) -> bool:
        seen.append((now.step, now.time, now.count, now.top))
        return bool(now.top < 3)

    add = Stage("add", {"u": U + 64}, HERE)
    halve = Stage("halve", {"u": U / 2}, HERE, {"top": Fold("max", U)})
    use = Stage("use", {"u": U + Scalar("top")}, HERE)
    program = Program(
        "p", (Field("u", "float64"),), (add, halve, use), scalars={"dt": Parameter(0.5)},
        repeats=(Repeat("solve", 1, 2, 9, until, 2),),
    )  # fmt: skip
    one, two = reference_steps(program, {"u": np.zeros((1, 2))}, n_steps=2)
    assert seen[:3] == [(0, 0.0, 2, 32.0), (0, 0.0, 4, 8.0), (0, 0.0, 6, 2.0)]
    assert seen[3][:3] == (1, 0.5, 2) and one.counts == {"solve": 6}
    assert one.fields["u"].tolist() == [[3.0, 3.0]] and one.results == {"top": 2.0}
    assert two.counts == {"solve": 6}
    always = Program(
        "p", (Field("u", "float64"),), (halve,), repeats=(Repeat("solve", 0, 1, 3),),
    )  # fmt: skip
    (now,) = reference_steps(always, {"u": np.full((1, 2), 8.0)}, n_steps=1)
    assert now.fields["u"].tolist() == [[1.0, 1.0]] and now.counts == {"solve": 3}


def test_stored_values_are_folded_and_repeated_alike():
    flux = Application(STORED, RIGHT - U)
    back = Application(STORED, U - Read("u", (0, -1)))
    flow = Stage("flow", {"u": U + (flux - back) / 4}, ((0, 0), (-1, 1)),
                 {"steepest": Fold("max", abs(flux - back), flux < 9)})  # fmt: skip
    add = Stage("add", {"u": U + 1}, HERE)
    program = Program("p", (Field("u", "float64"),), (add, flow), repeats=(Repeat("r", 1, 2, 2),))
    stored = with_temporaries(program, "always")
    assert [stage.name for stage in stored.stages] == ["add", "flow_stored_1", "flow"]
    assert (stored.repeats[0].first, stored.repeats[0].end) == (1, 3)
    assert [*stored.folds] == ["steepest"] and "stored_1" in stored.stages[2].fields_read
    assert stored.folds["steepest"][1].over is not None


@pytest.mark.parametrize(
    "make, says",
    [
        (lambda: Repeat("r", 1, 1, 3), "which are none"),
        (lambda: Repeat("r", 0, 1, 0), "at_most"),
        (lambda: Repeat("r", 0, 1, 1, until=3), "until.*lambda now"),
        (lambda: repeated(Repeat("r", 0, 2, 3)), "there are 1"),
        (lambda: repeated(Repeat("r", 0, 1, 3), Repeat("s", 0, 1, 3)), "one after another"),
        (lambda: repeated(Repeat("r", 0, 1, 3), renames={"u": "u"}), "renames a field"),
        (lambda: repeated(Repeat("r", 0, 1, 3), results=("count",)), "cannot be called 'count'"),
    ],
)
def test_repeats_that_have_no_meaning_are_refused(make: Any, says: str):
    with pytest.raises((ValueError, TypeError), match=says):
        make()


def repeated(*repeats: Repeat, **more: Any) -> Program:
    stage = Stage("s", {} if more else {"u": U}, HERE, {"f": Fold("max", U)} if more else {})
    return Program("p", (Field("u", "float64"),), (stage,), repeats=repeats, **more)
