# SPDX-License-Identifier: MIT
"""Programs that pass through in chunks: renamed fields, rules of the time, steps of parts."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sample import sample

import controllers as ct
from controllers.plan import ChunkPlan, SkewedPlan
from controllers.tuning.sizes import SizeChooser

EXAMPLES = Path(__file__).parents[3] / "examples"
GRID = ct.Grid(y=40, x=24)
INTERNAL: dict[str, Any] = {"devices": "cpu", "zero_copy": False}
START = {
    name: np.random.default_rng(number).random((40, 24), dtype=np.float32)
    for number, name in enumerate(("u", "old", "older"))
}


@ct.step
def wave(u: Any, old: Any, older: Any) -> Any:
    around = u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u
    return dict(u=1.9 * u - 0.8 * old + 0.25 * around - 0.05 * older[2, 0], old=u, older=old)


def ran(step: Any, n_steps: int, *, start: Any = START, **options: Any) -> dict[str, Any]:
    with ct.Computation(step, GRID, dtype="float32", dt=0.1, **start, **options) as run:
        for count in (n_steps // 2, n_steps - n_steps // 2):
            run.run(count)
        return {name: np.asarray(run[name].gather()) for name in start}


def alike(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return all(np.array_equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("boundary", [ct.fixed(0), ct.mirror(), "periodic", ct.keep()])
@pytest.mark.parametrize("width", sample([1, 2, 3, 4, 5], 2))
def test_fields_that_are_renamed_whatever_the_steps_of_a_pass(boundary: Any, width: int) -> None:
    right = ran(wave, 11, boundary=boundary, devices="reference")
    assert alike(right, ran(wave, 11, boundary=boundary, chunks=5, halo_width=width, **INTERNAL))


def test_a_cap_below_what_is_needed_and_what_a_pass_of_renames_brings() -> None:
    options = dict(boundary=ct.mirror(), memory_cap=30_000, halo_width=3, **INTERNAL)
    with ct.Computation(wave, GRID, dtype="float32", dt=0.1, **START, **options) as run:
        assert isinstance(run.plan, SkewedPlan)
        text = run.explain()
        run.run(20)
        assert run.report().devices[0].peak_bytes <= options["memory_cap"]
        found = {name: run[name].gather() for name in START}
    assert alike(ran(wave, 20, boundary=ct.mirror(), devices="reference"), found)
    for name in START:
        assert f"field {name}: split, up and down, each row once, 1 image on the host" in text


def test_a_checkpoint_between_passes_of_an_odd_number_of_steps(tmp_path: Path) -> None:
    def kept(n_steps: int, restart: str, **options: Any) -> dict[str, Any]:
        with ct.Computation(
            wave, GRID, dtype="float32", dt=0.1, boundary=ct.fixed(0), **START, **options
        ) as run:  # fmt: skip
            run.run(n_steps, checkpoint=(tmp_path / "kept", ct.every(steps=5)), restart=restart)
            return {name: run[name].gather() for name in START}

    kept(8, "no", chunks=4, halo_width=3, **INTERNAL)
    found = kept(21, "require", chunks=3, halo_width=4, **INTERNAL)
    assert alike(ran(wave, 21, boundary=ct.fixed(0), devices="reference"), found)


@ct.step
def spread(u: Any, v: Any, *, t: ct.Time) -> Any:
    return dict(u=u + 0.1 * (u[-1, 0] + u[1, 0] - 2 * u))


@ct.step
def gather(u: Any, v: Any, *, t: ct.Time) -> Any:
    return dict(v=0.5 * v + u[-2, 0] - u[3, 0])


@pytest.mark.parametrize("width", sample([1, 2, 4], 1))
@pytest.mark.parametrize("steps", [[spread, gather], wave])
def test_cells_outside_that_two_steps_read_and_that_are_others_in_each(
    steps: Any, width: int
) -> None:
    """Chunks cannot be skewed: the rows that are left would be read with those of a later step."""
    timed = ct.fixed(lambda y, x, t: y + x * t)
    names = ("u", "v") if isinstance(steps, list) else ("u", "old", "older")
    start = dict(zip(names, START.values()))
    boundary = {name: ct.fixed(0) if name == "v" else timed for name in names}
    options = dict(start=start, boundary=boundary)
    right = ran(steps, 9, devices="reference", **options)
    assert alike(right, ran(steps, 9, chunks=6, halo_width=width, **INTERNAL, **options))
    with ct.Computation(
        steps, GRID, dtype="float32", dt=0.1, boundary=boundary, chunks=6, **INTERNAL, **start
    ) as run:  # fmt: skip
        assert isinstance(run.plan, ChunkPlan) and not isinstance(run.plan, SkewedPlan)
        assert "cells outside of field 'u', which two steps read, are others in" in run.explain()


@ct.step
def flow(u: Any, v: Any, *, cfl: float = 0.4) -> Any:
    dt = cfl / ct.max(abs(u) + abs(v))
    turned = u - dt * (u * (u - u[-1, 0]) + v * (u - u[0, -1]))
    return dict(u=turned, v=v - dt * (u * (v - v[-1, 0]) + v * (v - v[0, -1])), dt=dt)


def flowing(**options: Any) -> Any:
    start = {"u": START["u"], "v": START["old"]}
    with ct.Computation(
        flow, GRID, dtype="float32", boundary="periodic", **start, **options
    ) as run:  # fmt: skip
        run.run(5)
        before = run.time
        run.run(until=2.5, cfl=0.3)
        return before, run.time, run.step, {name: run[name].gather() for name in start}


def test_a_time_step_of_what_all_chunks_fold() -> None:
    right, found = flowing(devices="reference"), flowing(chunks=4, **INTERNAL)
    assert right[:3] == found[:3] and right[1] == 2.5 and alike(right[3], found[3])


def jacobi(*counts: int, **ends: Any) -> Any:
    """Turns of which each reads what the one before has made, then what depends on all."""

    @ct.step
    def turned(p: Any, f: Any) -> Any:
        around = p[-1, 0] + p[1, 0] + p[0, -1] + p[0, 1]
        left = ct.sum((around - 4 * p - f) ** 2)
        return dict(p=(around - f) / 4, left=left)

    @ct.step
    def driven(p: Any, f: Any) -> Any:
        return dict(f=0.5 * f + 0.01 * p[1, 0])

    return [ct.repeat(turned, *counts, **ends), driven]


@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("width", sample([1, 3, None, 7], 2))
def test_turns_of_a_repeat_are_steps_of_a_pass(width: int | None, every: int) -> None:
    found, until = [], lambda now: now.left < 40
    for options in ({"devices": "reference"}, {"chunks": 5, "halo_width": width, **INTERNAL}):
        start = {"p": START["u"], "f": START["old"]}
        with ct.Computation(
            jacobi(until=until, at_most=7, check_every=every), GRID, dtype="float32",
            boundary=ct.fixed(0), **start, **options,
        ) as run:  # fmt: skip
            results = run.run(4)
            found.append((results["left"], run.repeats, *(run[n].gather() for n in start)))
            if len(found) == 2:
                text = run.explain()
                assert "part 1 of 2 of a step: turned, up to 7 times" in text
                assert width is None or f"pass of {min(width, every)} step" in text
    for one, other in zip(*found):
        assert np.array_equal(one, other) if isinstance(one, np.ndarray) else one == other


def test_a_step_that_is_done_so_many_times_in_a_row_is_as_many_stages() -> None:
    found = []
    for options in ({"devices": "reference"}, {"chunks": 4, "halo_width": 2, **INTERNAL}):
        start = {"p": START["u"], "f": START["old"]}
        with ct.Computation(
            jacobi(5), GRID, dtype="float32", boundary=ct.fixed(0), **start,
            **options,
        ) as run:  # fmt: skip
            run.run(5)
            found.append(run.f.gather())
    assert np.array_equal(*found)


def conjugate_gradients(boundary: Any, times: int = 1, **options: Any) -> tuple[Any, ...]:
    """Of a system of one unknown per cell; each turn has two sums that it goes on with."""

    @ct.step
    def begin(x: Any, r: Any, p: Any, q: Any, f: Any) -> Any:
        left = f - (4.5 * x - x[-1, 0] - x[1, 0] - x[0, -1] - x[0, 1])
        return dict(r=left, p=left)

    @ct.step
    def applied(x: Any, r: Any, p: Any, q: Any, f: Any) -> Any:
        q = 4.5 * p - p[-1, 0] - p[1, 0] - p[0, -1] - p[0, 1]
        return dict(q=q, before=ct.sum(r * r), along=ct.sum(p * q))

    @ct.step
    def moved(x: Any, r: Any, p: Any, q: Any, f: Any, *, before: Any, along: Any) -> Any:
        a = before / along
        return dict(x=x + a * p, r=r - a * q, after=ct.sum((r - a * q) ** 2))

    @ct.step
    def turned(x: Any, r: Any, p: Any, q: Any, f: Any, *, before: Any, after: Any) -> Any:
        return dict(p=r + after / before * p)

    @ct.step
    def driven(x: Any, r: Any, p: Any, q: Any, f: Any) -> Any:
        return dict(f=0.5 * f + 0.01 * x[1, 0])

    turn = ct.repeat(
        [applied, moved, turned], until=lambda now: now.after < 1e-6, at_most=12, check_every=2
    )
    start = {"f": np.tile(START["u"], (times, times)), **dict.fromkeys("xrpq", 0)}
    grid = ct.Grid(y=times * 40, x=times * 24)
    with ct.Computation(
        [begin, turn, driven], grid, dtype="float64", boundary=boundary, **start, **options
    ) as run:  # fmt: skip
        text, results = run.explain(), run.run(3)
        assert run.report().devices[0].peak_bytes <= options.get("memory_cap", 1 << 30)
        found = {name: run[name].gather() for name in start}
        return text, (run.repeats, results["after"]), found


@pytest.mark.parametrize("boundary", sample([ct.fixed(0), "periodic", ct.mirror()], 2))
def test_turns_that_use_what_they_fold_have_parts(boundary: Any) -> None:
    right = conjugate_gradients(boundary, devices="reference")
    found = conjugate_gradients(boundary, chunks=4, **INTERNAL)
    assert right[1] == found[1] and alike(right[2], found[2])
    (repeat, count), = right[1][0].items()
    assert 2 <= count <= 12 and f"part 2 of 3 of a step: {repeat}" in found[0], found[0]
    assert "  part 3 of 3 of a turn: turned\n" in found[0]


@pytest.mark.whole
def test_turns_that_have_parts_within_a_cap() -> None:
    right = conjugate_gradients(ct.fixed(0), 15, devices="reference")
    found = conjugate_gradients(ct.fixed(0), 15, memory_cap=5_000_000, **INTERNAL)
    assert right[1] == found[1] and alike(right[2], found[2])


def test_what_parts_bring_is_told_of_each_and_a_pipeline_of_all(tmp_path: Path) -> None:
    start = {"u": START["u"], "v": START["old"]}
    with ct.Computation(
        flow, GRID, dtype="float32", boundary="periodic", chunks=4, trace=True, **start, **INTERNAL
    ) as run:  # fmt: skip
        text = run.explain()
        run.run(6)
        pipeline = run.report().pipeline
    assert "part 1 of 2 of a step: flow_folds\n" in text and "part 2 of 2 of a step: flow\n" in text
    assert "field u: split, only read, up alone, each row once" in text
    assert "over the link per pass: 7.5 KiB up and 0 B down, 0 B more" in text
    assert text.count("images: ") == 1 and text.count("plan of ") == 2
    assert pipeline is not None and (pipeline.passes, pipeline.steps, pipeline.chunks) == (4, 1, 4)
    assert pipeline.ideal_s > 0 and pipeline.kernels_s > 0 < pipeline.down_s


def test_a_checkpoint_of_a_step_that_has_parts(tmp_path: Path) -> None:
    def kept(n_steps: int, restart: str, **options: Any) -> Any:
        start = {"u": START["u"], "v": START["old"]}
        with ct.Computation(
            flow, GRID, dtype="float32", boundary="periodic", **start, **options
        ) as run:  # fmt: skip
            run.run(n_steps, checkpoint=(tmp_path / "kept", ct.every(steps=3)), restart=restart)
            return run.time, {name: run[name].gather() for name in start}

    kept(5, "no", chunks=4, **INTERNAL)
    time, found = kept(9, "require", chunks=3, **INTERNAL)
    whole_time, whole = kept(9, "no", devices="reference")
    assert time == whole_time and alike(whole, found)


def test_a_cap_of_half_for_what_uses_its_folds() -> None:
    start = np.random.default_rng(0).random((800, 200), dtype=np.float32)

    @ct.step
    def scaled(u: Any) -> Any:
        return dict(u=u / (1 + ct.max(u)) + 0.1 * u[-1, 0])

    found, cap = [], start.nbytes
    for options in ({"devices": "reference"}, {"memory_cap": cap, **INTERNAL}):
        with ct.Computation(scaled, start.shape, u=start, boundary=ct.mirror(), **options) as run:
            run.run(3)
            found.append(run.u.gather())
            peak = run.report().devices[0].peak_bytes
    assert np.array_equal(*found) and peak <= cap


@ct.step
def eased(p: Any, f: Any) -> Any:
    top = ct.max(abs(p))
    return dict(p=p / (1 + top) + 0.1 * p[-1, 0] + 0.01 * f, top=top)


def sized(step: Any, **options: Any) -> Any:
    """Of a field that takes its time."""
    start = {"p": np.tile(START["u"], (20, 8)), "f": np.tile(START["old"], (20, 8))}
    return ct.Computation(
        step, ct.Grid(y=800, x=192), dtype="float32", boundary=ct.mirror(), **start, **options
    )  # fmt: skip


@pytest.mark.whole
@pytest.mark.parametrize(("step", "turns"), [
    (eased, 1), (jacobi(until=lambda now: now.left < 1, at_most=6, check_every=3), 3),
    ([ct.repeat(eased, until=lambda now: now.top < 0.1, at_most=4)], 1),
])  # fmt: skip
@pytest.mark.parametrize("devices", [{}, {"devices": "cpu/1,1", "weights": [3, 1]}])
def test_chunks_and_slots_are_found_where_steps_have_parts(
    step: Any, turns: int, devices: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Turns of a pass stay as they are."""
    monkeypatch.setenv("CONTROLLERS_TUNING", str(tmp_path))
    monkeypatch.setattr(SizeChooser, "_pays", lambda self, size: True)
    options = {**INTERNAL, "chunks": "auto", "memory_cap": 1_400_000, **devices}
    with sized(step, **options) as run:
        chooser, n_steps, n_turns = run._chooser, 0, run.halo_width
        assert isinstance(chooser, SizeChooser) and 1 <= n_turns <= turns
        while not chooser.over:
            run.run(3)
            n_steps += 3
            assert run.halo_width == n_turns
        report, found = run.report(), [run[name].gather() for name in "pf"]
        assert report.pipeline is not None and len(report.pipeline.tried) > 1
        assert {span for span, *_ in report.pipeline.tried} == {1}
        assert all(one.peak_bytes <= options["memory_cap"] for one in report.devices)
    with sized(step, devices="reference") as run:
        run.run(n_steps)
        assert all(np.array_equal(run[n].gather(), one) for n, one in zip("pf", found))
    with sized(step, **options) as run:     # what was found is kept
        assert run._chooser is not None and run._chooser.over
        n_places = len(devices.get("weights", "1"))
        assert len(run.plan.locations) == n_places * chooser.size.chunks


REFUSED: list[tuple[Any, dict[str, Any], str]] = [
    (flow, {"halo_width": 4}, "steps use what they fold, so that a pass has no 4 of them; use 1"),
    ("self", {"halo_width": 2}, "turns use what they fold, so that a pass has no 2 of them; use 1"),
]


@pytest.mark.parametrize(("step", "options", "reason"), REFUSED)
def test_what_has_no_parts_is_refused_with_the_reason(
    step: Any, options: dict[str, Any], reason: str
) -> None:
    @ct.step
    def turned(u: Any, v: Any) -> Any:
        most = ct.max(u)
        return dict(u=u / (1 + most), v=v[-1, 0], most=most)

    again = ct.repeat(turned, until=lambda now: now.most < 0, at_most=3)
    steps = [again] if step == "self" else step
    start = {"u": START["u"], "v": START["old"]}
    with pytest.raises(ValueError, match=reason):
        ct.Computation(
            steps, GRID, dtype="float32", boundary="periodic", chunks=4, **start, **options,
            **INTERNAL,
        )  # fmt: skip


@pytest.mark.whole
def test_the_example_of_a_wave_runs_in_chunks_from_the_command_line(tmp_path: Path) -> None:
    """On a device that is told to have memory of its own."""
    text = (EXAMPLES / "wave.py").read_text(encoding="utf-8")
    (tmp_path / "wave.py").write_text(text.replace("dt=dt,", "dt=dt, zero_copy=False,"))
    found = []
    for options in ((), ("--chunks", "5", "--halo-width", "7"), ("--memory-cap", "1m")):
        command = ["-m", "controllers", "run", "wave.py", "--device", "cpu", "--iterations", "50"]
        job = subprocess.run(
            [sys.executable, *command, *options], cwd=tmp_path,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert job.returncode == 0, job.stderr
        assert (" of 1 MiB in use" in job.stdout) == ("--memory-cap" in options)
        found.append(np.load(tmp_path / "wave.npy"))
    assert all(np.array_equal(found[0], one) for one in found) and found[0].any()
