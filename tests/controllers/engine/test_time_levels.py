# SPDX-License-Identifier: MIT
"""Launches of several steps of programs that rename, on places, in rounds and in chunks."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sample import sample
from time_levels import check_run, wave

import controllers as ct
from controllers import Computation
from controllers.kgt.strategies.streaming import StreamingConfig
from controllers.plan import ChunkPlan, PacedPlan, RoundPlan, SkewedPlan
from controllers.plan.rounds.paces import shortened_pace
from controllers.program.boundary import mirror
from controllers.run.dry_run import dry_run

RULES: list[Any] = [
    "keep", "periodic", "mirror", "fixed:0.5", [(mirror(-1), "keep"), "periodic"],
    ["periodic", ("keep", "fixed:2")],
]  # fmt: skip
WAYS: list[dict[str, Any]] = [
    {"steps_per_launch": 4},
    {"steps_per_launch": 3, "places_per_controller": 3},
    {"steps_per_launch": 2, "places_per_controller": 2, "halo_width": 6},
    {"steps_per_launch": (2, 3), "places_per_controller": 2, "halo_width": 6},
    {"steps_per_launch": (3, 1), "places_per_controller": 2},
]


@pytest.fixture
def streamed(monkeypatch: pytest.MonkeyPatch) -> None:
    """CPUs compute several steps as GPUs do."""
    monkeypatch.setattr(StreamingConfig, "kind", "cpu")


@pytest.mark.parametrize(("rules", "way"), sample([(r, w) for r in RULES for w in WAYS], 3))
def test_both_fields_have_the_bits_of_single_steps(rules: Any, way: dict[str, Any]) -> None:
    """The states differ on the boundary, too, where the one before becomes the other one."""
    plan = check_run(wave(rules=rules), (37, 29), (1, 4, 9), devices="reference", **way)
    assert not plan.program.renames and plan.liveness.n_buffers == {"u": 2, "before": 2}


@pytest.mark.usefixtures("streamed")
@pytest.mark.parametrize(("rules", "way"), sample([
    (r, w) for r in RULES for w in (
        {"steps_per_launch": 3, "zero_copy": True},
        {"places_per_controller": 2, "halo_width": 12, "steps_per_launch": 4},
        {"chunks": 5, "steps_per_launch": 3}, {"chunks": 4, "halo_width": 4, "steps_per_launch": 2},
    )
], 11))  # fmt: skip
def test_kernels_that_stream_have_these_bits(rules: Any, way: dict[str, Any]) -> None:
    options = {"devices": "cpu:0", "zero_copy": False, **way}
    plan = check_run(wave(rules=rules), (197, 109), (7, 6), **options)
    assert plan.steps_per_launch == way["steps_per_launch"]


@pytest.mark.whole
@pytest.mark.usefixtures("streamed")
def test_wide_cells_and_volumes_stream() -> None:
    for program, shape in ((wave("float64"), (150, 110)), (wave(n_axes=3), (20, 30, 40))):
        check_run(program, shape, (5, 4), devices="cpu:0", zero_copy=False, steps_per_launch=2)


def test_both_fields_are_turned_where_a_run_ends_with_a_launch_of_no_step() -> None:
    plan = check_run(wave(), (60, 30), (1, 9, 8, 1), devices="reference", halo_width=8,
                     steps_per_launch=(4, 2), places_per_controller=2)  # fmt: skip
    assert isinstance(plan, PacedPlan)
    assert shortened_pace(plan.paces[0], 1, plan.liveness.period) == (1, 0)


def test_each_kind_of_plan_takes_such_launches() -> None:
    def kind(**way: Any) -> type:
        return type(check_run(wave(), (60, 30), (5,), devices="reference", **way))

    assert kind(steps_per_launch=2, halo_width=6, places_per_controller=2) is RoundPlan
    assert kind(steps_per_launch=(2, 3), places_per_controller=2) is PacedPlan
    options = {"devices": "cpu:0", "zero_copy": False, "steps_per_launch": 1}
    assert issubclass(type(check_run(wave(), (60, 30), (5,), chunks=3, **options)), ChunkPlan)


@pytest.mark.usefixtures("streamed")
def test_passes_are_of_launches_that_are_fast_and_leave_a_field_of_the_edge_behind() -> None:
    plan = check_run(wave(), (400, 64), (9, 8), devices="cpu:0", zero_copy=False, chunks=5,
                     halo_width=8)  # fmt: skip
    assert isinstance(plan, SkewedPlan) and plan.steps_per_launch > 1
    assert plan.liveness.goes_whole("before") and not plan.liveness.goes_whole("u")


def test_several_steps_are_a_gpus_default_and_what_people_see_of_it() -> None:
    planned = dry_run(wave(), (4096, 4096), 1, devices="gpu")
    assert planned.plan.steps_per_launch > 2
    assert "strategy 'streaming'" in planned.configurations[0].origin
    with Computation(wave(), (40, 30), devices="reference", steps_per_launch=3) as run:
        told = run.explain()
    assert "before gets what u was as the last step of a launch began" in told
    assert "136 cells that no stage computes are copied along" in told
    assert "a launch computes one step" not in told
    with Computation(wave(), (40, 30), devices="reference") as run:
        assert "before is renamed from u, without a copy" in run.explain()


@ct.step
def leap(u: Any, old: Any) -> Any:
    around = u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u
    return dict(u=2 * u - old + 0.25 * around, old=u, top=ct.max(abs(u)))


def test_what_is_folded_is_that_of_the_last_step() -> None:
    start = {name: np.random.default_rng(n).random((30, 20)) for n, name in enumerate(("u", "old"))}
    found = []
    for steps in (1, 4):
        with Computation(leap, ct.Grid(y=30, x=20), **start, boundary=ct.fixed(0),
                         devices="reference", steps_per_launch=steps) as run:  # fmt: skip
            run.run(10)
            found.append((run.results["top"], run.u.gather(), run.old.gather()))
            assert run.plan.steps_per_launch == steps
    assert found[0][0] == found[1][0] and np.array_equal(found[0][1], found[1][1])
    assert np.array_equal(found[0][2], found[1][2])


def test_a_users_kernel_of_several_steps_writes_no_second_field() -> None:
    text = "NEW(u) = 2 * HERE(u) - HERE(before) + 0.25f * (NEAR(u, -1, 0) + NEAR(u, 1, 0)" \
        " + NEAR(u, 0, -1) + NEAR(u, 0, 1) - 4 * HERE(u));"  # fmt: skip
    one = ct.Kernel.of("wave", text)
    several = one.with_variant(text, steps_per_launch=2)
    refused = "renames 'u' to 'before' after each; .*steps_per_launch=1"
    with pytest.raises(ValueError, match=refused):
        Computation(wave(), (40, 30), devices="cpu:0", kernel=several, steps_per_launch=2)
