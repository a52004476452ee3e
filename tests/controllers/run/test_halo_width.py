# SPDX-License-Identifier: MIT
"""Halos of several launches as users ask for them: the same bits, what is refused, reports."""
from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from mpi_jobs import helpers_path, run_ranks
from sample import sample

import controllers as ct
from controllers import Computation, Kernel, Stencil, reference_run
from controllers.device.event import Profile
from controllers.program.reference import reference_steps
from controllers.tuning.site import Site
from hitmap import SerialCommunicator

CROSS = Stencil.of("cross", [(-1, 1)] * 2, [0, 1, 0, 1, 4, 1, 0, 1, 0], 8).program("float32")
START = np.random.default_rng(0).random((37, 29), dtype=np.float32)


def expected(n_steps: int, periodic: bool = False) -> Any:
    return reference_run(CROSS, {"u": START}, n_steps, (periodic,) * 2)["u"]


@pytest.mark.parametrize(("device", "n_places", "boundary"), sample([
    ("reference", 5, "fixed"), ("reference", 5, "periodic"), ("cpu", 3, "fixed"),
    ("cpu", 3, "periodic"),
], 4))  # fmt: skip
def test_widths_change_under_way(device: str, n_places: int, boundary: Any) -> None:
    with Computation(
        CROSS, START, boundary=boundary, devices=device, places_per_controller=n_places,
        halo_width=6, steps_per_launch=1,
    ) as run:  # fmt: skip
        done = 0
        for width in (6, 1, 4, 5, 1, 3):
            run.use_halo_width(width)
            run.run(5)
            done += 5
            assert run.halo_width == width
            assert np.array_equal(run.gather(), expected(done, boundary == "periodic"))


def test_what_is_set_between_is_exchanged_at_once() -> None:
    with Computation(CROSS, START, devices="reference", places_per_controller=4,
                     halo_width=4) as run:  # fmt: skip
        run.run(2)      # amid a round
        run.u.set(2 * run.gather())
        run.run(3)
        again = reference_run(CROSS, {"u": np.float32(2) * expected(2)}, 3, (False,) * 2)["u"]
        assert np.array_equal(run.gather(), again)


def test_tiles_stay_where_they_are_as_the_width_changes() -> None:
    with Computation(CROSS, START, devices="reference", halo_width=4) as run:
        tiles = {id(tile) for tile in run._engine.tiles.values()}
        run.use_halo_width(2)
        assert {id(tile) for tile in run._engine.tiles.values()} == tiles


def test_launches_of_several_steps_make_up_a_width() -> None:
    with Computation(CROSS, START, devices="reference", places_per_controller=2, halo_width=6,
                     steps_per_launch=3) as run:  # fmt: skip
        run.run(8)
        assert np.array_equal(run.gather(), expected(8))
        assert (run.plan.steps_per_launch, run.plan.halo_width) == (3, 6)


def test_a_shorter_launch_amid_a_round_goes_on_along_rings() -> None:
    with Computation(CROSS, START, boundary="periodic", devices="reference",
                     places_per_controller=2, halo_width=6, steps_per_launch=3) as run:  # fmt: skip
        for n_steps in (1, 3, 2, 4):
            run.run(n_steps)
        assert np.array_equal(run.gather(), expected(10, periodic=True))


def test_report_and_explanation_say_the_width() -> None:
    with Computation(CROSS, START, devices="reference", places_per_controller=2,
                     halo_width=3) as run:  # fmt: skip
        run.run(4)
        assert run.report().halo_width == 3
        assert ", an exchange every 3 steps" in run.report().table()
        assert "messages of field u per round of 3 steps" in run.explain()


@pytest.mark.parametrize("mode", sample(["auto", "auto:hill_climb", "auto:exhaustive"], 3))
def test_a_width_is_found_while_steps_run(mode: str) -> None:
    with Computation(CROSS, START, devices="reference", places_per_controller=2, halo_width=mode,
                     steps_per_launch=1) as run:  # fmt: skip
        assert run._assembly.relay.widths == [1, 2]     # of 18 rows, a quarter is halo
        run.run(300)
        done = 300
        while not run._chooser.over and done < 6000:
            run.run(300)
            done += 300
        assert run._chooser.over and run.halo_width in (1, 2)
        assert run.halo_width in run.report().widths
    with Computation(CROSS, START, devices="reference", places_per_controller=2, halo_width=mode,
                     steps_per_launch=1) as run:  # fmt: skip
        run.run(90)
        assert np.array_equal(run.gather(), expected(90))


def two_steps(u: Any, v: Any) -> Any:
    return {"u": v, "v": u + v[1]}


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"halo_width": 0}, "halos are 1 to 1024 steps wide, got halo_width=0"),
        ({"halo_width": "wide"}, "one of auto, auto:dichotomic.*got 'wide'"),
        ({"halo_width": 6, "steps_per_launch": 4}, "a multiple of steps_per_launch"),
    ],
)
def test_what_does_not_go_together_is_refused(keywords: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Computation(CROSS, START, devices="reference", **keywords)


def relax(u: Any, f: Any) -> Any:
    new = (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] + f) * 0.25
    return {"u": new, "moved": ct.max(abs(new - u))}


def smooth(u: Any) -> Any:
    return {"u": (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1]) * 0.25}


def largest(u: Any) -> Any:
    return {"moved": ct.max(u[1, 0] - u)}


def heat(u: Any, f: Any) -> Any:
    return {"f": f * 0.5 + u[0, 1] * 0.01}


@pytest.mark.parametrize(
    ("boundary", "device"),
    sample([("mirror", "reference"), ("periodic", "reference"), ("mirror", "cpu"),
            ("periodic", "cpu")], 4),
)  # fmt: skip
def test_turns_of_a_repeat_are_exchanged_together(boundary: str, device: str) -> None:
    solve = ct.repeat(ct.step(relax), until=lambda now: now.moved < 0.05, check_every=3, at_most=20)
    with Computation(
        [solve, ct.step(heat)], ct.Grid(y=17, x=23), boundary=boundary, devices=device,
        places_per_controller=3, halo_width=5, u=0, f=lambda y, x: np.sin(y) * np.cos(x),
    ) as run:  # fmt: skip
        fields = {name: np.asarray(run[name]) for name in run.fields}
        right = [*reference_steps(run.program, fields, n_steps=6)]
        for width, now in zip((5, 1, 3, 3, 2, 5), right):
            run.use_halo_width(width)
            run.run(1)
            assert run.halo_width == width
            assert {**run.results} == now.results
            assert all(np.array_equal(np.asarray(run[f]), now.fields[f]) for f in run.fields)


@pytest.mark.whole
@pytest.mark.parametrize(
    "until", [lambda now: now.count >= 2, lambda now: False], ids=["soon over", "long"]
)
def test_what_repeats_is_tuned_by_its_widest_launches(until: Any) -> None:
    """Of which there may be one in a step, if the repeat is over before its halo is used up."""
    steps = [ct.step(smooth), ct.step(largest)]
    solve = ct.repeat(steps, until=until, check_every=2, at_most=12)
    noted: list[tuple[int, int]] = []       # launches, and the rows of them

    def note(site: Site, profiles: Sequence[Profile]) -> None:
        noted.append((len(profiles), site.launches.placed[0].extent[0]))
        known(site, profiles)

    known = Site.note
    with patch.object(Site, "note", note), Computation(
        [solve], ct.Grid(y=40, x=32), devices="cpu", boundary="periodic", halo_width=5, tune=30.0,
        places_per_controller=2, u=lambda y, x: np.sin(y) * np.cos(x),
    ) as run:  # fmt: skip
        fields = {name: np.asarray(run[name]) for name in run.fields}
        (*_, right) = reference_steps(run.program, fields, n_steps=12)
        run.run(12)
        tuned = run.report().tuning
        assert run.repeats == right.counts
        assert np.array_equal(np.asarray(run.u), right.fields["u"])
    assert tuned is not None and tuned.tried > 0 and tuned.first_s > 0 and noted
    assert all(n > 0 for n, _ in noted) and max(rows for _, rows in noted) > 40 / 2 + 4 + 4


def test_what_is_sent_of_fields_that_are_renamed_is_told() -> None:
    step = ct.step(two_steps)
    with Computation(step, ct.Grid(x=20), boundary="periodic", devices="reference", halo_width=2,
                     places_per_controller=2, u=0, v=1) as run:  # fmt: skip
        told = run.explain()
    assert "messages of field u per round of 2 steps: 2 cells in 2 messages" in told
    assert "each step gives it another name, read by two_steps" in told
    assert "messages of field v per round of 2 steps: 4 cells in 2 messages" in told


MEAN = "(NEAR(u, -1, 0) + NEAR(u, 0, -1) + 4 * HERE(u) + NEAR(u, 0, 1) + NEAR(u, 1, 0)) / 8"
AT_INDEX = Kernel.of("at_index", f"""
    NEW(u) = {MEAN} + 0.01f * INDEX(0) - 0.002f * INDEX(1);
    if (INDEX(0) == 0 || INDEX(1) == SIZE(1) - 1) NEW(u) = AT(u, INDEX(0), INDEX(1));
""")
RINGS = [("periodic", "periodic"), ("fixed", "periodic"), ("periodic", "fixed")]
PLACED: list[dict[str, Any]] = [
    {"places_per_controller": 3}, {"places_per_controller": 1},
    {"places_per_controller": 4, "partition": "blocks"}, {"chunks": 3, "zero_copy": False},
]  # fmt: skip


@pytest.mark.parametrize("check", sample([False, True], 2))
@pytest.mark.parametrize(("boundary", "placed"), sample([*product(RINGS, PLACED)], 12))
def test_own_kernels_see_the_indices_of_a_ring(boundary: Any, placed: Any, check: bool) -> None:
    if check and "chunks" in placed:
        return      # which are refused
    ran: dict[str, Any] = {"boundary": boundary, "kernel": AT_INDEX, "devices": "cpu:0"}
    with Computation(CROSS, START, comm=SerialCommunicator(), **ran) as run:
        run.run(9)
        right = run.gather()
    with Computation(
        CROSS, START, comm=SerialCommunicator(), halo_width=4, check=check, **ran, **placed
    ) as run:
        for width, n_steps in ((4, 3), (3, 5), (1, 1)):
            run.use_halo_width(width)
            run.run(n_steps)
        assert run.gather().tobytes() == right.tobytes()


def test_a_width_beyond_the_room_is_refused() -> None:
    with Computation(CROSS, START, devices="reference", halo_width=3) as run:
        with pytest.raises(ValueError, match="room for 3 steps .* got 4; make the computation"):
            run.use_halo_width(4)
        run.run(1)


JOB = """
import numpy as np
from slow_messages import slow_messages
from controllers import Computation, Stencil, reference_run
cross = Stencil.of("cross", [(-1, 1)] * 2, [0, 1, 0, 1, 4, 1, 0, 1, 0], 8).program("float32")
start = np.random.default_rng(0).random((64, 40), dtype=np.float32)
with slow_messages(1e-3):
    for width in WIDTHS:
        with Computation(cross, start, devices="reference", halo_width=width) as run:
            run.run(20 if width != "auto" else 400)
            if width == "auto":
                run.use_halo_width(2)
                run.scatter(start if run.comm.rank == 0 else None)
                run.run(20)
            got = run.gather()
            right = reference_run(cross, {"u": start}, 20, (False, False))["u"]
            assert got is None or np.array_equal(got, right), width
print("all right", flush=True)
"""


@pytest.mark.whole
@pytest.mark.parametrize("widths", sample([[4], [1, 4, "auto"]], 2))
def test_ranks_whose_messages_are_slow_have_the_same_bits(widths: list[Any]) -> None:
    job = run_ranks(2, JOB.replace("WIDTHS", repr(widths)), env=helpers_path())
    assert job.returncode == 0 and job.stdout.count("all right") == 2, job.stdout + job.stderr


@pytest.mark.whole
def test_all_widths_that_may_be_tried_fit_within_the_cap() -> None:
    def widths(cap: int | None) -> tuple[list[int], int]:
        with Computation(
            CROSS, (160, 33), dtype="float32", devices="cpu/1,1", zero_copy=False,
            halo_width="auto", steps_per_launch=1, memory_cap=cap,
        ) as run:  # fmt: skip
            used = max(where.ledger.on_device for where in run._engine.executors.values())
            return run._assembly.relay.widths, used

    all_widths, used = widths(None)
    assert all_widths == [1, 2, 4, 8]
    assert widths(used) == (all_widths, used)
    fewer, less = widths(used - 1)
    assert fewer == [1, 2, 4] and less < used
