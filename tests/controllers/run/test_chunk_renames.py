# SPDX-License-Identifier: MIT
"""Renamed fields that are read after a fold, once a pass has made what they become; stored values.
"""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sample import sample

import controllers as ct
from controllers import (
    Computation,
    Field,
    Program,
    Read,
    Scalar,
    Stage,
    reference_run,
)
from controllers.language.traced import program_of
from controllers.plan import PartedChunks
from controllers.program.boundary import Boundary
from controllers.program.fold import Fold
from controllers.program.storing import with_temporaries

INTERNAL: dict[str, Any] = {"devices": "cpu", "zero_copy": False}
NAMES = ("u", "old", "older", "v", "w", "before")
STAR = ((-2, 2), (-2, 2))
RULES = ["mirror", "keep", "fixed:2", "periodic"]
# what the stages after the fold read of u, and of what u was in the steps before
LATE = {
    "old": Read("old", (0, -1)),
    "older": Read("older", (1, 0)) + Read("older", (0, -2)),
    "both": Read("older", (1, 0)) - 0.3 * Read("old", (-1, 0)),
}


def chain(rule: str, late: str) -> Program:
    """u gets a new value, then v and w with what is folded; w is renamed, too, in the end."""
    boundary, here = Boundary.of(rule, 2), (0, 0)
    u, old, v, w = (Read(name, here) for name in ("u", "old", "v", "w"))
    around = sum(Read("u", step) for step in ((-1, 0), (1, 0), (0, -1), (0, 1))) - 4 * u
    new = 1.9 * u - 0.95 * old + 0.2 * around - 0.01 * Read("older", (2, 0))
    turned = 0.5 * v + (LATE[late] + u) / (1 + Scalar("top"))
    last = 0.5 * w + 0.3 * Read("before", (-1, 0)) + LATE[late] / (2 + Scalar("most"))
    return Program(
        "chain", tuple(Field(name, "float64", boundary) for name in NAMES),
        (
            Stage("push", {"u": new}, STAR, {"top": Fold("max", abs(new))}),
            Stage("turn", {"v": turned}, STAR, {"most": Fold("max", abs(v))}),
            Stage("last", {"w": last}, STAR),
        ),
        renames={"old": "u", "older": "old", "before": "w"},
    )  # fmt: skip


def start(*extent: int) -> dict[str, Any]:
    rng = np.random.default_rng(7)
    return {name: rng.random(extent) for name in NAMES}


def check(
    program: Program, fields: dict[str, Any], n_steps: int, **options: Any
) -> tuple[str, int, PartedChunks]:
    """Fields have the reference's bits; what a run explains, the bytes of a device, and the plan.
    """
    right = reference_run(program, fields, n_steps)
    with Computation(program, fields["u"].shape, **fields, **{**INTERNAL, **options}) as run:
        text = run.explain()
        for count in (n_steps // 2, n_steps - n_steps // 2):
            run.run(count)
        for name in NAMES:
            assert np.array_equal(run[name].gather(), right[name]), name
        assert isinstance(run.plan, PartedChunks)
        return text, run.report().devices[0].peak_bytes, run.plan


@pytest.mark.parametrize("late", [*LATE])
@pytest.mark.parametrize("rule", sample(RULES, 4))
@pytest.mark.parametrize("options", sample([
    {"chunks": 4}, {"chunks": 5, "slots": 1}, {"chunks": 3, "devices": "cpu/1,1"},
    {"chunks": 2, "devices": "cpu/1,1", "partition": "cyclic", "block": (5, 24)},
], 2))  # fmt: skip
def test_stages_after_a_fold_read_what_fields_were(
    late: str, rule: str, options: dict[str, Any]
) -> None:
    check(chain(rule, late), start(40, 24), 5, **options)


@pytest.mark.parametrize(("late", "n_images"), [("old", 6), ("older", 7), ("both", 7)])
def test_what_nobody_has_any_more_has_an_image_of_its_own(late: str, n_images: int) -> None:
    text, _, plan = check(chain("keep", late), start(40, 24), 3, chunks=4)
    assert len(plan.kept_fields) == n_images
    assert f"images: {n_images * 7.5:g} KiB in memory" in text.replace(".0 KiB", " KiB")
    first, second, _ = (part.plan for part in plan.parts)
    assert first.program.renames["older"] == "old" and first.program.renames["old"] == "u"
    assert "before" not in first.program.renames
    assert ("former_1" in second.program.dtypes) == (late != "old")
    if late != "old":
        assert "field former_1: split, up and down" in text
        assert "field former_1: what older was as a step began, for parts that read" in text
        assert "0 B up and 7.5 KiB down" in text    # nobody knows it as the step begins


@pytest.mark.parametrize("late", sample(["old", "both"], 1))
def test_within_a_cap_of_half(late: str) -> None:
    cap = 4_000_000
    fields = start(400, 240)
    assert sum(one.nbytes for one in fields.values()) > cap
    text, peak, _ = check(chain("mirror", late), fields, 2, memory_cap=cap)
    assert peak <= cap and "part 3 of 3 of a step: last" in text


def test_fields_that_are_seen_set_and_kept_between_steps(tmp_path: Any) -> None:
    program, fields = chain("fixed:2", "both"), start(40, 24)
    options: dict[str, Any] = {**INTERNAL, "chunks": 4}
    with Computation(program, (40, 24), **fields, **options) as run:
        run.run(3, checkpoint=(tmp_path / "kept", ct.every(steps=3)), restart="no")
        run["old"].scatter(fields["older"])
        run.run(2)
        found = {name: run[name].gather() for name in NAMES}
    middle = reference_run(program, fields, 3)
    right = reference_run(program, {**middle, "old": fields["older"]}, 2)
    assert all(np.array_equal(found[name], right[name]) for name in NAMES)
    with Computation(program, (40, 24), **fields, **{**options, "chunks": 3}) as run:
        run.run(5, checkpoint=(tmp_path / "kept", ct.every(steps=3)), restart="require")
        found = {name: run[name].gather() for name in NAMES}
    right = reference_run(program, middle, 2)
    assert all(np.array_equal(found[name], right[name]) for name in NAMES)


@ct.step
def first_wave(u: Any, old: Any, v: Any, before: Any) -> Any:
    around = u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u
    return dict(u=1.9 * u - 0.95 * old + 0.2 * around, old=u)


@ct.step
def second_wave(u: Any, old: Any, v: Any, before: Any) -> Any:
    around = v[-1, 0] + v[1, 0] + v[0, -1] + v[0, 1] - 4 * v
    new = 1.9 * v - 0.95 * before + 0.2 * around
    return dict(v=new + before[1, 0] / (1 + ct.max(abs(u))), before=v)


@pytest.mark.parametrize("boundary", sample([ct.mirror(), ct.keep(), "periodic"], 1))
def test_two_waves_of_which_one_is_renamed_in_a_later_part(boundary: Any) -> None:
    found = []
    fields = {name: start(40, 24)[name] for name in ("u", "old", "v", "before")}
    for options in ({"devices": "reference"}, {**INTERNAL, "chunks": 4}):
        with ct.Computation(
            [first_wave, second_wave], ct.Grid(y=40, x=24), boundary=boundary, **fields, **options
        ) as run:  # fmt: skip
            run.run(5)
            found.append([run[name].gather() for name in fields])
    assert [one.program.renames for one in run.plan.passes] == [{"old": "u"}, {"before": "v"}]
    assert all(map(np.array_equal, *found))


@ct.step
def relaxed(u: Any, v: Any) -> Any:
    """What is stored for a stage does not use the fold that the stage does."""
    most, flux = ct.max(abs(u)), ct.stored(u[1, 0] * u + u[0, 1])
    return dict(u=u + 0.1 * (flux - flux[-1, 0] + v) / (1 + most))


@pytest.mark.parametrize("boundary", sample([ct.mirror(), ct.keep(), ct.fixed(2), "periodic"], 2))
@pytest.mark.parametrize("divided", [True, False])
def test_stored_values_of_stages_that_use_folds(boundary: Any, divided: bool) -> None:
    given = program_of(
        relaxed, ct.Grid(y=40, x=24), dtype="float64", boundary=boundary
    ).program  # fmt: skip
    fields = {name: start(40, 24)[name] for name in ("u", "v")}
    right = reference_run(given, fields, 4)
    program = with_temporaries(given, "always") if divided else given
    assert bool(program.temporaries) == divided
    with Computation(program, (40, 24), **fields, **INTERNAL, chunks=4, stored="always") as run:
        assert len(run.plan.parts) == 2
        run.run(4)
        assert np.array_equal(run.u.gather(), right["u"])
