# SPDX-License-Identifier: MIT
"""Runs that go on from their checkpoints, on other places and ranks, with the same bits."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kept_programs import PROGRAMS, alike, cells_of, ran, wave
from mpi_jobs import helpers_path, run_ranks
from sample import sample
from timed_devices import timed_devices, without_timed_devices

import controllers as ct
from hitmap import SerialCommunicator

SOME = ct.every(steps=4)
NAMES = [
    *[name for name in PROGRAMS if name != "repeating"],
    pytest.param("repeating", marks=pytest.mark.whole),     # takes longer
]
MOMENTS = """import sys
import controllers as ct
from pathlib import Path
from kept_programs import PROGRAMS
from hitmap.comm import default_communicator
comm, kept, end = default_communicator(), Path(sys.argv[1]), int(sys.argv[2])
with PROGRAMS["wave"](devices="reference", comm=comm, places_per_controller=2) as run:
    seen = []
    for now in run.steps(10**6, every=7, checkpoint=(kept, ct.every(seconds=0.02))):
        seen.append(now.step)
        newest = [path for path in kept.glob("run-1/0*") if path.name[:6] >= f"{end:06d}"]
        if comm.bcast(len(newest)):
            break
    assert all(step % 7 == 0 for step in seen) and len(seen) > 1
    assert [b - a for a, b in zip(seen, seen[1:])] == [7] * (len(seen) - 1)
"""


def kept_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("name", NAMES)
def test_a_run_goes_on_from_its_checkpoint_on_other_places(tmp_path: Path, name: str) -> None:
    want = ran(name, 17)
    folder = tmp_path / "a.checkpoint"
    ran(name, 10, kept=(folder, SOME), places_per_controller=3)
    assert kept_in(folder / "run-1") == ["000002-step-8", "000003-step-10"]
    found = ran(
        name, 17, kept=(folder, SOME), restart="require", places_per_controller=4,
        partition="blocks",
    )  # fmt: skip
    assert alike(found, want)
    assert kept_in(folder / "run-1") == ["000005-step-16", "000006-step-17"]


@pytest.mark.parametrize("name", NAMES)
def test_a_run_that_is_over_is_not_done_again(tmp_path: Path, name: str) -> None:
    kept = tmp_path / "a"
    want = ran(name, 9, kept=kept)
    with PROGRAMS[name](devices="reference") as run:
        found = run.run(9, checkpoint=kept, restart="require")
        assert run.report().steps == 0
        assert alike(cells_of(run), want)
        assert (found is None) == (not run.program.results)
    assert kept_in(kept / "run-1") == ["000001-step-9"]


def test_no_restart_begins_anew_and_is_the_newest(tmp_path: Path) -> None:
    kept = (tmp_path / "a", SOME)
    want = ran("wave", 6)
    ran("wave", 30, kept=kept)
    assert alike(ran("wave", 6, kept=kept, restart="no"), want)
    assert alike(ran("wave", 6, kept=kept), want)


def test_each_run_of_a_program_has_checkpoints_of_its_own(tmp_path: Path) -> None:
    def both(n_last: int, restart: str, **options: Any) -> Any:
        kept: dict[str, Any] = dict(checkpoint=(tmp_path / "a", SOME), restart=restart)
        with PROGRAMS["heun"](devices="reference", **options) as run:
            run.run(5, **kept)
            between = run.q.gather()
            run.q[3, 4] = 2.5
            run.run(n_last, speed=0.25, **kept)
            return between, cells_of(run)

    first, _ = both(6, "auto")
    again, found = both(9, "require", places_per_controller=3)
    with PROGRAMS["heun"](devices="reference") as run:
        run.run(5)
        run.q[3, 4] = 2.5
        run.run(9, speed=0.25)
        assert alike(found, cells_of(run))
        with pytest.raises(ct.CheckpointError, match="run begins was 5 and is 15"):
            run.run(1, checkpoint=(tmp_path / "b", SOME))
            run.run(1, checkpoint=(tmp_path / "a", SOME), speed=0.25, restart="require")
    assert np.array_equal(first, again)     # of the end of the first run, not of the second


def test_a_run_until_a_time_ends_there_after_a_restart(tmp_path: Path) -> None:
    def until(time: float, **options: Any) -> Any:
        with PROGRAMS["heun"](devices="reference") as run:
            run.run(until=time, **options)
            return cells_of(run)

    kept = (tmp_path / "a", ct.every(steps=3))
    want = until(1.25)
    with PROGRAMS["heun"](devices="reference") as run:
        run.run(until=1.25, at_most=7, checkpoint=kept)
        assert run.time < 1.25
    assert alike(until(1.25, checkpoint=kept, restart="require"), want)


def test_a_condition_is_asked_at_the_same_steps_as_without_a_restart(tmp_path: Path) -> None:
    def asked(at_most: int, **options: Any) -> tuple[list[int], Any]:
        steps: list[int] = []

        def holds(now: Any) -> bool:
            steps.append(now.step)
            return now.top > 0 and now.step > 17

        with PROGRAMS["wave"](devices="reference") as run:
            run.run(until=holds, check_every=6, at_most=at_most, **options)
            return steps, cells_of(run)

    want_steps, want = asked(50)
    assert want["step"] == 18
    kept = (tmp_path / "a", ct.every(steps=4))
    asked(8, checkpoint=kept)
    steps, found = asked(50, checkpoint=kept, restart="require")
    assert alike(found, want) and steps == want_steps[1:]
    over, found = asked(50, checkpoint=kept, restart="require")     # of what was found then
    assert alike(found, want) and over == want_steps[-1:]


def test_records_and_results_go_on(tmp_path: Path) -> None:
    def recorded(n_steps: int, **options: Any) -> Any:
        with PROGRAMS["wave"](devices="reference", places_per_controller=3) as run:
            line, top = run.record("u", every=3, y=33.0), run.record("top", every=2)
            run.run(n_steps, **options)
            return line.steps, line.times, line.get(), top.get(), dict(run.results)

    want = recorded(20)
    recorded(11, checkpoint=tmp_path / "a")
    found = recorded(20, checkpoint=tmp_path / "a", restart="require")
    over = recorded(20, checkpoint=tmp_path / "a", restart="require")
    assert repr(found) == repr(want) == repr(over)


def test_values_that_blow_up_are_found_and_not_kept(tmp_path: Path) -> None:
    with PROGRAMS["wave"](devices="reference") as run:
        run.run(4, checkpoint=(tmp_path / "a", SOME))
        run.u[3, 4] = np.inf
        with pytest.raises(FloatingPointError, match="step 5"):
            run.run(40, stop_if=True, checkpoint=(tmp_path / "a", SOME))
    assert kept_in(tmp_path / "a/run-2") == []


def test_steps_go_on_with_the_moments_after_a_restart(tmp_path: Path) -> None:
    def moments(n_steps: int, end: int = 99, **options: Any) -> Any:
        found = []
        with PROGRAMS["wave"](devices="reference", places_per_controller=2) as run:
            for now in run.steps(n_steps, every=5, **options):
                found.append((now.step, now.top, now.u[7, 8]))
                if now.step >= end:
                    break
            return found, cells_of(run)

    want, cells = moments(23)
    kept = dict(checkpoint=(tmp_path / "a", ct.every(steps=5)))
    moments(23, end=15, **kept)
    assert kept_in(tmp_path / "a/run-1") == ["000001-step-5", "000002-step-10"]
    found, after = moments(23, restart="require", **kept)
    assert found == want[2:] and alike(after, cells)
    assert moments(23, restart="require", **kept)[0] == []


def test_steps_go_on_from_where_no_moment_was(tmp_path: Path) -> None:
    ran("wave", 7, kept=tmp_path / "a")
    with PROGRAMS["wave"](devices="reference") as run:
        kept: dict[str, Any] = dict(checkpoint=tmp_path / "a", restart="require")
        steps = [now.step for now in run.steps(23, every=5, **kept)]
        assert steps == [10, 15, 20, 23] and alike(cells_of(run), ran("wave", 23))


@pytest.mark.parametrize("change, told", [
    (dict(dt=0.25), "dt was 0.5 and is 0.25.*restart_anyway"),
    (dict(dtype="float32"), "the dtype of u was float64 and is float32"),
    (dict(boundary="periodic"), "what is outside of u was Boundary"),
    (dict(sizes=ct.Grid(y=14, x=18, spacing=5.0, boundary=ct.fixed(0))), r"\(14, 19\) and is"),
    (dict(sizes=ct.Grid(y=14, x=19, spacing=4.0, boundary=ct.fixed(0))), "the grid was"),
    (dict(program=ct.step(lambda u, old: dict(u=u + old, old=u))), "the program was wave"),
])  # fmt: skip
def test_another_run_is_refused_and_the_difference_named(
    tmp_path: Path, change: dict[str, Any], told: str
) -> None:
    ran("wave", 5, kept=tmp_path / "a")
    given = {"program": wave, "sizes": ct.Grid(y=14, x=19, spacing=5.0, boundary=ct.fixed(0)),
             "dt": 0.5, "u": 0, "old": 0, "devices": "reference", **change}  # fmt: skip
    with ct.Computation(given.pop("program"), given.pop("sizes"), **given) as run:
        with pytest.raises(ct.CheckpointError, match=told):
            run.run(9, checkpoint=tmp_path / "a")
        assert run.step == 0
        run.run(2)      # nothing is torn


def test_other_scalars_are_taken_where_that_is_wanted(tmp_path: Path) -> None:
    with PROGRAMS["heun"](devices="reference") as run:
        run.run(6, speed=0.5)
        run.run(4, speed=0.25)
        want = cells_of(run)
    kept = dict(checkpoint=tmp_path / "b")
    with PROGRAMS["heun"](devices="reference") as run:
        run.run(6, speed=0.5, **kept)
    with PROGRAMS["heun"](devices="reference") as run, pytest.raises(
        ct.CheckpointError, match="speed was 0.5 and is 0.25"
    ):
        run.run(10, speed=0.25, **kept)
    with PROGRAMS["heun"](devices="reference") as run:
        run.run(10, speed=0.25, restart="require", restart_anyway=True, **kept)
        assert alike(cells_of(run), want)


def test_two_computations_of_a_process_do_not_take_one_for_the_other(tmp_path: Path) -> None:
    for height in (1.0, 2.0):
        with PROGRAMS["wave"](devices="reference", comm=SerialCommunicator()) as run:
            run.u[...] = height
            if height == 1:
                run.run(5, checkpoint=tmp_path / "a")
            else:
                with pytest.raises(ct.CheckpointError, match="another computation of this proc"):
                    run.run(5, checkpoint=tmp_path / "a")
                assert run.step == 0


def test_arguments_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    with PROGRAMS["wave"](devices="reference") as run:
        with pytest.raises(ValueError, match="give checkpoint="):
            run.run(2, restart="require")
        with pytest.raises(ValueError, match="auto, require, no, got 'yes'"):
            run.run(2, checkpoint=tmp_path / "a", restart="yes")
        with pytest.raises(TypeError, match="ct.every"):
            run.run(2, checkpoint=(tmp_path / "a", 600))
        with pytest.raises(ValueError, match="above 0 and finite, got 0"):
            ct.every(seconds=0)
        with pytest.raises(ValueError, match="got steps and seconds"):
            ct.every(seconds=1, steps=2)
        with pytest.raises(ct.CheckpointError, match="there is no checkpoint.*'require'"):
            run.run(2, checkpoint=tmp_path / "a", restart="require")
        assert run.step == 0


def test_a_clock_asks_for_checkpoints(tmp_path: Path) -> None:
    folder = tmp_path / "a/run-1"
    seen: set[str] = set()

    def look(done: int, total: int) -> None:
        seen.update(kept_in(folder) if folder.is_dir() else [])
        if len(seen) > 3:
            raise KeyboardInterrupt

    with PROGRAMS["wave"](devices="reference", comm=SerialCommunicator()) as run:
        with pytest.raises(KeyboardInterrupt, match="run again, goes on"):
            run.run(10**9, progress=look, checkpoint=(tmp_path / "a", ct.every(seconds=0.05)))
        n_steps, want = run.step, cells_of(run)
    newest = kept_in(folder)[-1]
    assert newest.endswith(f"-step-{n_steps}")      # written because of the KeyboardInterrupt
    assert alike(ran("wave", n_steps, kept=tmp_path / "a", restart="require"), want)


def test_fields_of_a_method_that_are_made_within_a_step_are_kept(tmp_path: Path) -> None:
    ran("heun", 3, kept=tmp_path / "a")
    manifest = next((tmp_path / "a/run-1").iterdir()) / "manifest"
    state = json.loads(manifest.read_bytes().partition(b"\n")[2])["state"]
    with PROGRAMS["heun"](devices="reference") as run:
        every = {field.name for field in run.program.fields}
        assert set(state["facts"]["the fields"].split(", ")) == every > set(run.fields)


@pytest.mark.whole
@pytest.mark.parametrize("options", sample([
    dict(places_per_controller=2), dict(devices="cpu/1,1", halo_width=2), dict(steps_per_launch=3),
    dict(chunks=3, zero_copy=False),
], 4))  # fmt: skip
def test_other_devices_and_ways_to_compute_go_on_with_the_same_bits(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    cpu = {"devices": "cpu", **options}
    for folder, first, second in (("a", cpu, {}), ("b", {"places_per_controller": 3}, cpu)):
        kept = (tmp_path / folder, ct.every(steps=5))
        ran("pattern", 13, kept=kept, **first)
        found = ran("pattern", 21, kept=kept, restart="require", **second)
        assert alike(found, ran("pattern", 21))


def test_shares_that_were_found_are_those_of_the_run_that_goes_on(tmp_path: Path) -> None:
    timed_devices({"swift": 1e-3, "slow": 3e-3})
    try:
        def rows(restart: str, *devices: str) -> Any:
            stencil = ct.Stencil.of("mean", [(-1, 1)] * 2, [0, 1, 0, 1, 2, 1, 0, 1, 0], 6)
            start = np.random.default_rng(0).random((96, 8))
            with ct.Computation(stencil, start, devices=devices, weights="auto") as run:
                run.run(40, checkpoint=tmp_path / "a", restart=restart)
                return run.layout.owned[0].extent[0], run.gather()

        found, want = rows("auto", "swift", "slow")
        assert found == pytest.approx(72, abs=2)
        again, cells = rows("require", "swift", "slow")     # no step is done
        assert again == found and np.array_equal(cells, want)
        assert rows("require", "slow", "swift")[0] == 48       # not these devices
    finally:
        without_timed_devices()


@pytest.mark.parametrize(("jobs", "names"), sample([
    ([(1, 7), (2, 20)], ["wave", "sound"]), ([(2, 7), (3, 12), (1, 15), (2, 20)], [*PROGRAMS]),
], 2), ids=["two", "four"])  # fmt: skip
def test_any_ranks_go_on_from_any_ranks(
    tmp_path: Path, jobs: list[tuple[int, int]], names: list[str]
) -> None:
    job = Path(__file__).parents[2] / "support/kept_programs.py"
    for ranks, to in jobs:
        words = [str(tmp_path / "kept"), str(to), str(tmp_path / f"{to}.npz"), "5", *names]
        outcome = run_ranks(ranks, [str(job), *words], env=helpers_path())
        assert outcome.returncode == 0, outcome.stderr
    with np.load(tmp_path / "20.npz") as found:
        for name in names:
            want = {f"{name}.{field}": cells for field, cells in ran(name, 20).items()}
            assert alike({key: found[key] for key in want}, want), name


@pytest.mark.whole
def test_moments_come_at_the_same_steps_whenever_a_clock_asks(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(MOMENTS)
    for ranks, end in ((2, 4), (3, 8)):
        outcome = run_ranks(
            ranks, [str(tmp_path / "job.py"), str(tmp_path / "a"), str(end)], env=helpers_path()
        )
        assert outcome.returncode == 0, outcome.stderr
    n_steps = int(kept_in(tmp_path / "a/run-1")[-1].rpartition("-")[2]) + 5
    assert alike(ran("wave", n_steps, kept=tmp_path / "a"), ran("wave", n_steps))
