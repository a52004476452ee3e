# SPDX-License-Identifier: MIT
"""Running until something holds, looking on the way, recording, stopping at values that blow up."""
from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi_jobs import helpers_path, run_ranks
from sample import sample

import controllers as ct
from controllers.program.reference import reference_steps
from controllers.run.kept import Kept
from controllers.run.results import Results
from hitmap import SerialCommunicator

RANKS = """import numpy as np
from hitmap.comm import default_communicator
from test_stepping import running
with running(comm=default_communicator()) as run:
    line = run.record("u", y=33.0)
    run.run(until=lambda now: now.top > 3, check_every=4, at_most=40)
    steps = run.comm.allgather((run.step, run.top, run.time))
    whole, cells = line.get(), run.u.get()
    assert steps[0] == steps[1], steps
    if whole is not None:
        assert np.array_equal(whole[-1], cells[6])
    try:
        run.run(until=lambda now: now.low, at_most=2)
    except (AttributeError, RuntimeError) as error:
        assert "no result 'low'" in str(error), error
    run.u[7, 8] = np.inf
    try:
        run.run(3)
        run.run(20, stop_if=True)
    except FloatingPointError as error:
        found = run.comm.allgather(str(error))
    assert found[0] == found[1] and "u has become" in found[0] and "in step" in found[0], found
"""
GRID = ct.Grid(y=14, x=19, spacing=5.0, boundary=ct.fixed(0))


@ct.step
def wave(u, old):
    around = u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u
    return dict(u=2 * u - old + 0.2 * around, old=u, top=ct.max(np.abs(u)), energy=ct.mean(u * u))


def hill(y: Any, x: Any) -> Any:
    return np.exp(-((y - 35) ** 2 + (x - 50) ** 2) / 200)


def running(**options: Any) -> ct.Computation:
    return ct.Computation(
        wave, GRID, u=hill, old=0,
        **{"devices": "reference", "comm": SerialCommunicator(), "dt": 0.5,
           "places_per_controller": 3, **options},
    )  # fmt: skip


def reference(run: ct.Computation, n_steps: int) -> list[Any]:
    fields = {name: np.asarray(run[name]) for name in run.fields}
    return [*reference_steps(run.program, fields, dt=0.5, n_steps=n_steps)]


def test_a_run_ends_where_its_condition_holds_first() -> None:
    with running() as run:
        with pytest.raises(RuntimeError, match="no step was run since"):
            run.top  # noqa: B018
        right = reference(run, 40)
        first = next(n for n in range(4, 41, 4) if right[n - 1].results["top"] > 3)
        asked: list[int] = []

        def high(now: Results) -> bool:
            asked.append(now.step)
            return now.top > 3 and now.time == now.step / 2

        found = run.run(until=high, check_every=4, at_most=40)
        assert asked == [*range(4, first + 1, 4)] and run.step == first
        assert {**found} == right[first - 1].results == {**run.results}
        assert np.array_equal(run.u.get(), right[first - 1].fields["u"])
        assert run.run(until=lambda now: False, check_every=4, at_most=6).step == first + 6
        assert run.run(until=100.0, at_most=2).step == first + 8
        assert run.run(until=run.time + 1.3).step == first + 11
        run.run(progress=lambda done, total: None, n_steps=1)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({}, "n_steps, or until="), ({"n_steps": 3, "until": 1.0}, "got both"),
        ({"until": lambda now: True}, "give at_most="), ({"until": np.inf}, "finite time"),
        ({"until": 1.0, "check_every": 3}, "a time needs none"),
        ({"n_steps": 3, "stop_if": "v"}, "no such field of floats; there are u, old"),
        ({"until": lambda now: now.low, "at_most": 2}, "no result 'low'; there are top, energy"),
    ],
)  # fmt: skip
def test_what_says_no_end_is_refused(arguments: dict[str, Any], message: str) -> None:
    with running() as run, pytest.raises((ValueError, AttributeError), match=message):
        run.run(**arguments)


def test_a_time_needs_steps_that_take_some() -> None:
    with running(dt=None) as run, pytest.raises(ValueError, match="steps take none .*give dt="):
        run.run(until=1.0)


def test_steps_are_yielded_with_fields_and_results() -> None:
    with running() as run:
        right = reference(run, 12)
        told: list[tuple[int, int]] = []
        seen = [
            (now.step, now.time, now.top, now.energy, float(now.u[7, 9]))
            for now in run.steps(12, every=5, progress=lambda *far: told.append(far))
        ]
        assert seen == [
            (n, n / 2, right[n - 1].results["top"], right[n - 1].results["energy"],
             right[n - 1].fields["u"][7, 9])
            for n in (5, 10, 12)
        ]  # fmt: skip
        assert told[-1] == (12, 12) and [done for done, _ in told] == sorted(d for d, _ in told)


def test_records_have_the_cells_after_each_of_their_steps() -> None:
    with running() as run:
        right = reference(run, 12)
        line = run.record("u", y=33.0, x=slice(10, 90, 13))
        point, top = run.record("u", every=5, y=33, x=22), run.record("top", every=4)
        block = run.record("old", every=6, y=slice(20.0, 40.0))
        run.run(7)
        run.redistribute(partition="bands", places_per_controller=2)
        run.run(5)
        columns = [np.abs(run.u.coords["x"] - at).argmin() for at in np.arange(10, 90, 13)]
        assert np.array_equal(line.get(), [now.fields["u"][6, columns] for now in right])
        assert point.get().tolist() == [right[n].fields["u"][6, 4] for n in (4, 9)]
        assert top.get().tolist() == [right[n].results["top"] for n in (3, 7, 11)]
        assert np.array_equal(block.get(), [right[n].fields["old"][4:8] for n in (5, 11)])
        assert (point.steps, point.times) == ([5, 10], [2.5, 5.0])


def test_a_record_is_an_array_with_names() -> None:
    pytest.importorskip("xarray")
    with running() as run:
        line = run.record("u", y=33.0, x=slice(10, 90, 13))
        run.run(2)
        found = line.to_xarray()
        assert found.dims == ("t", "x") and found.coords["t"].values.tolist() == [0.5, 1.0]


Gas = np.dtype([("rho", "f8"), ("m", "f4")])


@ct.step
def gas(q, n, v):
    return dict(q=1.5 * q, n=n + 1, v=v + q.rho.at("x", 1 / 2), s=ct.sum(q), high=ct.max(n))


def blowing(**options: Any) -> ct.Computation:
    start = dict(q=dict(rho=lambda x: x, m=1), n=lambda y, x: np.floor(10 * x), v=0)
    return ct.Computation(
        gas, ct.Grid(y=5, x=8, upper=(5, 4), boundary=ct.mirror()), location=dict(v="x"),
        dtype=dict(q=Gas, n="i4"), devices="reference", places_per_controller=3,
        comm=SerialCommunicator(), **start,
    )  # fmt: skip


def test_components_integers_and_half_points_are_recorded_and_watched() -> None:
    with blowing() as run:
        start = {name: np.asarray(run[name]) for name in run.fields}
        here = {"y": 1.5, "x": slice(0.9, 2.1)}
        records = [run.record(name, **here) for name in run.fields]
        end = run.record("v", x=4.0)    # on the boundary: one point more than there are cells
        sums = [run.record(name) for name in ("s_rho", "s_m", "high")]
        run.run(4, stop_if=True)
        right = [*reference_steps(run.program, start, n_steps=4)]
        columns = dict.fromkeys(run.fields, slice(2, 4)) | {"v": slice(2, 5)}
        for one in records:
            found = one.get()
            assert found.dtype == run[one.name].dtype, one.name
            wanted = [now.fields[one.name][1, columns[one.name]] for now in right]
            assert np.array_equal(found, wanted), one.name
        assert records[0].coords["x"].tolist() == [1.25, 1.75] and records[0].coords["y"] == 1.5
        assert records[-1].coords["x"].tolist() == [1.0, 1.5, 2.0]
        assert np.array_equal(end.get(), [now.fields["v"][:, 8] for now in right])
        for one in sums:
            assert one.get().tolist() == [now.results[one.name] for now in right]


@pytest.mark.parametrize("name, at", [("q_m", (3, 7)), ("v", (4, 8))])
def test_components_and_half_points_stop_a_run(name: str, at: tuple[int, int]) -> None:
    with blowing() as run:
        run[name][at] = np.nan
        says = rf"{name} has become nan at \({at[0]}, {at[1]}\) in step 1;"
        with pytest.raises(FloatingPointError, match=says):
            run.run(4, stop_if=True)
        with pytest.raises(ValueError, match="no such field of floats; there are q_rho, q_m, v"):
            run.run(4, stop_if="n")


@pytest.mark.parametrize(
    "what, where, message",
    [
        ("v", {}, "no field and no result 'v'; there are u, old, top, energy"),
        ("top", {"x": 1.0}, "is a result, a number; leave x out"),
        ("u", {"z": 1.0}, "no axis 'z'; there are y, x"),
        ("u", {"y": 99.0}, "none of the 14 cells, which lie from 2.5 to 67.5"),
        ("u", {"y": "a"}, "give a number, or a slice"),
    ],
)
def test_what_cannot_be_recorded_is_refused(
    what: str, where: dict[str, Any], message: str
) -> None:
    with running() as run, pytest.raises((ValueError, TypeError), match=message):
        run.record(what, **where)


def test_a_run_that_is_interrupted_has_results_and_goes_on() -> None:
    with running() as run:

        def stop(done: int, total: int) -> None:
            if done >= 8:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt, match="of 1000 steps"):
            run.run(progress=stop, until=lambda now: False, check_every=4, at_most=1000)
        step = run.step
        assert 8 <= step < 1000 and run.results.step == step and run.top > 0
        assert run.run(2).step == step + 2


@ct.step
def growing(u, v):
    new = u + v * v
    return dict(v=v + 0.1 * (u[0, 1] + u[1, 0]), u=new, top=ct.max(new), dt=1 / (2 + ct.max(v)))


@pytest.mark.parametrize(
    "every, devices", sample([*product((None, 1, 4, 70), ("reference", "cpu"))], 8)
)
def test_a_run_stops_at_the_step_where_a_value_is_not_finite(
    every: int | None, devices: str
) -> None:
    def made() -> ct.Computation:
        return ct.Computation(
            growing, ct.Grid(y=9, x=7, boundary="periodic"), u=3, v=lambda y, x: y, devices=devices,
            places_per_controller=2, comm=SerialCommunicator(), dtype="float32",
        )  # fmt: skip

    with made() as run, made() as alone:
        top = run.record("top")
        with np.errstate(all="ignore"), pytest.raises(FloatingPointError, match="step 13;"):
            run.run(100, stop_if=True, check_every=every)
        with np.errstate(all="ignore"):
            alone.run(run.step - 1)
            assert np.isfinite(alone.u.get()).all() and np.isfinite(alone.v.get()).all()
            alone.run(1)
        assert (run.step, run.time, run.top) == (alone.step, alone.time, alone.top)
        assert np.array_equal(run.u.get(), alone.u.get()) and not np.isfinite(run.u.get()).all()
        assert len(top) == run.step


def test_without_memory_for_a_copy_the_step_is_one_of_some(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    with running() as run:
        assert run.run(5, stop_if=True).step == 5
        run.u[7, 8] = np.inf
        monkeypatch.setattr(Kept, "of", lambda *_: None)
        with pytest.raises(FloatingPointError, match=r"u has .* in one of the steps 6 to 15;"):
            run.run(20, stop_if="u")
        assert np.isinf(run.u[7, 8]) or np.isnan(run.u[7, 8])


@pytest.mark.whole
def test_two_ranks_end_together_and_record_together() -> None:
    done = run_ranks(2, RANKS, env=helpers_path(Path(__file__).parent))
    assert done.returncode == 0, done.stderr


def acts(run: ct.Computation, rng: Any, kept: list[Any]) -> list[Any]:
    """What a user may do between two steps; what is seen of it."""
    kind = int(rng.integers(12))
    if kind == 0:
        run.u[3:5, 2:9] = 0.5
    elif kind == 1:
        run.u[...] = 0.9 * run.u + 0.1 * run.old
    elif kind == 2:
        kept.append(run.u * 2 + run.old)       # its values are those of now
    elif kind == 3:
        run.run(2)
    elif kind == 4:
        run.old.set(0.25)
    elif kind == 5:
        run.record("u", y=33.0, every=2)
    elif kind == 6 and kept:
        return [np.asarray(kept.pop())]
    elif kind == 7:
        return [run.u.max(), run.u[5, 7], np.asarray(run.old[2:4, 1])]
    elif kind == 8:
        return [run.u.gather()]
    elif kind == 9:
        return [now.top for now in run.steps(3, every=2)]
    elif kind == 10:
        run.redistribute(dims=(1, run.layout.n_places))
    return []


LAYOUTS = [{}, {"devices": "cpu", "places_per_controller": 1}, {"places_per_controller": 2}]


@pytest.mark.parametrize("seed", sample(range(24), 24))
def test_steps_that_stand_still_are_those_of_runs_one_after_another(seed: int) -> None:
    seen: list[list[Any]] = []
    for stands in (True, False):
        rng, kept = np.random.default_rng(seed), list[Any]()
        options = LAYOUTS[seed % 3]
        with running(**options) as run:
            found: list[Any] = []
            n_steps, every = int(rng.integers(1, 12)), int(rng.integers(1, 4))
            counts = [min(every, n_steps - done) for done in range(0, n_steps, every)]
            walk = run.steps(n_steps, every)
            for count in counts:
                now = next(walk) if stands else run.run(count)
                found += [now.step, now.time, now.top, run.energy]
                found += acts(run, rng, kept)
            found += [*map(np.asarray, kept), run.u.get(), run.old.get(), run.report().steps]
            found += [one.steps for one in run.records] + [one.get() for one in run.records]
            seen.append(found)
    assert len(seen[0]) == len(seen[1])
    for number, (one, other) in enumerate(zip(*seen)):
        assert np.array_equal(one, other), number


@pytest.mark.whole
def test_two_ranks_stand_still_together(tmp_path: Path) -> None:
    text = """import numpy as np
from hitmap.comm import default_communicator
from test_stepping import running
def went(stands):
    with running(comm=default_communicator()) as run:
        seen, walk = [], run.steps(8, 2)
        for number in range(4):
            now = next(walk) if stands else run.run(2)
            seen += [now.top, run.u[6, 3]] if number else [now.top]
            if number == 1:
                run.u[...] = 0.5 * run.u
            if number == 2:
                w = run.u + run.old
        return [*seen, np.asarray(w).sum(), run.u.max(), run.step]
assert went(True) == went(False), (went(True), went(False))
with running(comm=default_communicator()) as run:
    for now in run.steps(6):
        if now.step == 3:
            break
    assert run.step == 3 and run.u.max() > 0
print("all right")
"""
    (tmp_path / "walk.py").write_text(text)
    job = run_ranks(2, [str(tmp_path / "walk.py")], env=helpers_path(Path(__file__).parent))
    assert job.stdout.count("all right") == 2, job.stdout + job.stderr
