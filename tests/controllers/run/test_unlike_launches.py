# SPDX-License-Identifier: MIT
"""Steps per launch of each place, as users say them and as devices suggest them."""
from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from sample import sample

import controllers as ct
from controllers import Computation, Kernel, Stencil, reference_run
from controllers.executor.opencl import OpenCLExecutor
from controllers.executor.reference import ReferenceExecutor
from controllers.placement.temporal import plan_with_steps
from controllers.plan import PacedPlan
from controllers.program.reference import reference_steps
from controllers.report.report import Report
from controllers.run.dry_run import dry_run
from hitmap import SerialCommunicator

CROSS = Stencil.of("cross", [(-1, 1)] * 2, [0, 1, 0, 1, 4, 1, 0, 1, 0], 8).program("float32")
START = np.random.default_rng(0).random((49, 29), dtype=np.float32)


def expected(n_steps: int, periodic: bool = False) -> Any:
    return reference_run(CROSS, {"u": START}, n_steps, (periodic,) * 2)["u"]


@pytest.mark.parametrize(("device", "boundary"), sample([
    ("reference", "periodic"), ("reference", "fixed"), ("cpu", "periodic"), ("cpu", "fixed"),
], 4))  # fmt: skip
def test_places_divide_the_width_each_in_its_own_way(device: str, boundary: Any) -> None:
    with Computation(
        CROSS, START, boundary=boundary, devices=device, places_per_controller=2,
        steps_per_launch=(6, 4),
    ) as run:  # fmt: skip
        assert isinstance(run.plan, PacedPlan)
        assert (run.halo_width, run.plan.paces) == (12, ((6, 6), (4, 4, 4)))
        done = 0
        for width, counts in ((12, (24, 5, 1)), (7, (1, 16)), (4, (9,)), (12, (13, 0, 2))):
            run.use_halo_width(width)
            for count in counts:
                run.run(count)
                done += count
                assert np.array_equal(run.gather(), expected(done, boundary == "periodic")), done


def test_what_people_see_of_it() -> None:
    with Computation(CROSS, START, devices="reference", places_per_controller=3, halo_width=8,
                     steps_per_launch=[4, 3, 8]) as run:  # fmt: skip
        run.run(20)
        report, told = run.report(), run.explain()
        assert "round of 8 steps 0; number 1 is the same with time levels 0 and 1 exchanged at " \
            "places 1, 2" in told  # fmt: skip
        assert "place 1, launches of 3, 3, 2 steps" in told
    assert report.lengths == (4, 3, 8) and report.as_dict()["lengths"] == [4, 3, 8]
    assert ", 4 and 3 and 8 steps per launch" in report.table()
    assert Report(1.0, 1, 1, ()).lengths == ()


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"steps_per_launch": (2, 3)}, "one number for each of the 1 places, got 2"),
        ({"steps_per_launch": ()}, "one number, or one for each place, got ()"),
        ({"steps_per_launch": (2, 0)}, "at least 1 step, got 0"),
        ({"steps_per_launch": (2, 3), "devices": "auto"}, "which chooses the places"),
        ({"steps_per_launch": (255, 254)}, "end together after 64770.*say a halo_width"),
        ({"steps_per_launch": (2, 3), "check": True}, "checked mode looks at every step"),
        ({"steps_per_launch": (2, 3), "kernel": "generic"}, "generated for the program"),
    ],
)
def test_what_is_refused(keywords: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("()", r"\(\)")):
        Computation(CROSS, START, **{"devices": "reference", **keywords})


def test_own_kernels_have_one_number_for_all_places() -> None:
    own = Kernel.of("own", "VALUE(u, 0, 0) = 1;")
    with pytest.raises(ValueError, match="for generated kernels, got \\(2, 3\\) with kernel 'own'"):
        plan_with_steps(lambda n_steps: pytest.fail("nothing is planned"), own, (2, 3))


def relax(u: Any, f: Any) -> Any:
    new = (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] + f) * 0.25
    return {"u": new, "moved": ct.max(abs(new - u)), "total": ct.sum(new)}


@pytest.mark.parametrize(
    ("device", "boundary"), sample(product(["reference", "cpu"], ["mirror", "keep", "periodic"]), 4)
)
def test_the_last_step_of_a_run_folds(device: str, boundary: str) -> None:
    with Computation(
        ct.step(relax), ct.Grid(y=31, x=23), boundary=boundary, devices=device,
        places_per_controller=3, steps_per_launch=(4, 3, 2), halo_width=6, u=0,
        f=lambda y, x: np.sin(y) * np.cos(x),
    ) as run:  # fmt: skip
        fields = {name: np.asarray(run[name]) for name in run.fields}
        right = [*reference_steps(run.program, fields, n_steps=40)]
        for count in (6, 1, 7, 12, 2):
            found = run.run(count)
            assert {**found} == right[run.step - 1].results, run.step
            assert np.array_equal(np.asarray(run.u), right[run.step - 1].fields["u"])
        seen = [(now.step, float(now.moved)) for now in run.steps(9, every=4)]
        assert seen == [(n, right[n - 1].results["moved"]) for n in (32, 36, 37)]


def unlike(monkeypatch: pytest.MonkeyPatch, lengths: dict[int, int]) -> None:
    """Let large places be fastest with so many steps at once, and small ones with so many."""

    def usual(self: Any, program: Any, sweep: Any, placed: Any) -> int:
        return lengths[placed[1]["u"].box.extent[0] > 100]

    for kind in (OpenCLExecutor, ReferenceExecutor):
        monkeypatch.setattr(kind, "usual_steps", usual)


@pytest.mark.whole
@pytest.mark.parametrize(("width", "paces"), [
    (None, ((6,), (3, 3))), (12, ((6, 6), (4, 4, 4))), (2, None), ("auto", ((6,), (3, 3))),
])  # fmt: skip
def test_each_device_has_the_launches_that_are_fastest_there(
    width: Any, paces: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    unlike(monkeypatch, {False: 4, True: 6})
    start = np.random.default_rng(1).random((288, 31), dtype=np.float32)
    with Computation(
        CROSS, start, devices="cpu/1,1", weights=[3, 1], halo_width=width, balance="off",
    ) as run:  # fmt: skip
        assert (run.plan.paces if isinstance(run.plan, PacedPlan) else None) == paces
        if paces is None:
            assert run.plan.steps_per_launch == 2
        run.run(40)
        assert np.array_equal(
            run.gather(), reference_run(CROSS, {"u": start}, 40, (False, False))["u"]
        )


@pytest.mark.whole
def test_kernels_are_tuned_for_the_launches_of_each_place() -> None:
    start = np.random.default_rng(1).random((96, 70), dtype=np.float32)
    with Computation(
        CROSS, start, devices="cpu/1,1", comm=SerialCommunicator(), steps_per_launch=(3, 2),
        tune=3600.0, balance="off",
    ) as run:  # fmt: skip
        sites = run._tuner._sites
        counts = [site.launches.sweep.count for site in sites]
        assert counts == [3, 2]
        assert len({site.launches.executor for site in sites}) == 2
        for site in sites:
            numbers = site.launches.numbers
            launched = [o for o in run.plan.operations if o.number in numbers]
            places = {o.place for o in launched}
            assert len(places) == 1 and len(launched) == len(numbers)
        run.run(1200)
        assert all(site.n_tried for site in sites)
        right = reference_run(CROSS, {"u": start}, 1200, (False, False))["u"]
        assert np.array_equal(run.gather(), right)


def test_a_dry_run_plans_unlike_launches() -> None:
    plan = dry_run(CROSS, (400, 300), 2, devices=["gpu", "cpu"], steps_per_launch=(12, 8)).plan
    assert isinstance(plan, PacedPlan) and plan.halo_width == math.lcm(12, 8)
    assert plan.paces == ((12, 12), (8, 8, 8))
    again = dry_run(CROSS, (400, 300), 2, devices=["gpu", "cpu"]).plan
    lengths = again.lengths or (again.steps_per_launch,) * 2
    assert max(lengths) == again.halo_width
