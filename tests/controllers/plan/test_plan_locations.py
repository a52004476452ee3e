# SPDX-License-Identifier: MIT
"""Plans of stages that update fields at unlike locations: sweeps, messages, and what is said."""
from __future__ import annotations

import runpy
from collections import Counter
from typing import Any

import pytest

import controllers as ct
from controllers.cli.companions import folder
from controllers.plan import Plan
from controllers.run.dry_run import dry_run


def example(name: str) -> dict[str, Any]:
    return runpy.run_path(str(folder("examples") / f"{name}.py"))


def swept(plan: Plan) -> list[str]:
    """The sweeps of a step, without those of a few cells that complete others."""
    return [sweep.name for sweep in plan.sweeps if not sweep.completes]


def test_on_a_torus_a_step_is_two_sweeps_and_two_messages_to_each_neighbour() -> None:
    swim = example("swim")
    fields = ("u", "v", "p", "cu", "cv", "z", "h", "u_old", "v_old", "p_old")
    places = dict(u="x", u_old="x", cu="x", v="y", v_old="y", cv="y", z=("y", "x"))
    grid = ct.Grid(y=64, x=64, boundary="periodic")
    made = dry_run([swim["fluxes"], swim["leap"]], grid, 4, location=places, dims=(4, 1),
                   devices="reference", **dict.fromkeys(fields, 0))  # fmt: skip
    plan, text = made.plan, str(made)
    assert swept(plan) == ["fluxes", "leap"] and len(plan.sweeps) == 2
    ends = Counter(
        (one.source, one.target, one.transfers[0].message.shift)
        for one in plan.bundles if one.source != one.target
    )  # fmt: skip
    assert max(ends.values()) == 2      # one after each sweep
    assert "fluxes: one sweep for cu and cv and z and h, which lie at unlike points: it" in text
    assert "leap: one sweep for u, u_old and v, v_old and p, p_old, which lie at unlike" in text


def test_between_ends_thin_sweeps_complete_those_of_all_fields(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    computation = example("seismic")["computation"]
    monkeypatch.setattr("controllers.plan.outline.launch_nbytes", lambda locations: 0)
    with computation(20, 30, devices="reference") as run:
        assert swept(run.plan) == ["push", "strain"] and len(run.plan.sweeps) == 7


def test_few_cells_are_swept_location_by_location() -> None:
    @ct.step
    def push(p: Any, vx: Any, vy: Any) -> Any:
        return dict(vx=vx + p.at("x", 1 / 2), vy=vy + p.at("y", 1 / 2))

    few, many = (
        dry_run(push, ct.Grid(y=y, x=40), 1, boundary=ct.mirror(), location=dict(vx="x", vy="y"),
                devices="reference", p=0, vx=0, vy=0)
        for y in (40, 1000)
    )  # fmt: skip
    assert swept(few.plan) == ["push_of_vx", "push_of_vy"] and swept(many.plan) == ["push"]
    assert "push: a sweep for each of vx and vy, which lie at unlike points, since 1 launches " \
        "more take longer than 8 bytes less per cell" in str(few)
    assert "push: one sweep for vx and vy, which lie at unlike points: it moves 40" in str(many)
    assert "computes [0:1000, 0:40], and by launches more vx in [0:1000, 40:41], vy in " \
        "[1000:1001, 0:40]" in str(many)
