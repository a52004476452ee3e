# SPDX-License-Identifier: MIT
"""Steps of passes are found while a field passes through: the same bits; what was found is kept."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sample import sample

from controllers import Computation, Stencil, reference_run
from controllers.plan import ChunkPlan
from controllers.tuning.kept_size import KeptSize
from controllers.tuning.sizes import Size, SizeChooser

CROSS = Stencil.of("cross", [(-1, 1)] * 2, [0, 1, 0, 1, 4, 1, 0, 1, 0], 8).program("float32")
START = np.random.default_rng(0).random((120, 40), dtype=np.float32)
OPTIONS: dict[str, Any] = {
    "devices": "cpu", "zero_copy": False, "halo_width": "auto", "memory_cap": 24_000,
    "steps_per_launch": 1,
}


def kept_of(run: Computation) -> KeptSize:
    chunking = run._assembly.chunking
    assert chunking is not None
    return chunking.kept


@pytest.mark.whole
def test_passes_of_several_lengths_have_the_bits_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trials cost nothing here, so that all of those that the search asks for are run."""
    monkeypatch.setattr(SizeChooser, "_pays", lambda self, size: True)
    with Computation(CROSS, START, **OPTIONS) as run:
        assert isinstance(run.plan, ChunkPlan)
        first, spans = run.halo_width, run._assembly.relay.widths
        assert first in spans and len(spans) > 1
        assert all(b == 2 * a for a, b in zip(spans, spans[1:]))
        n_steps = 40 * max(spans)
        run.run(n_steps)
        report = run.report()
        assert run.halo_width in report.widths and len(report.widths) > 1
        assert (report.halo_width, report.steps) == (run.halo_width, n_steps)
        right = reference_run(CROSS, {"u": START}, n_steps, (False, False))["u"]
        assert np.array_equal(run.gather(), right)
        (device,) = report.devices
        assert device.peak_bytes <= 24_000


@pytest.mark.whole
def test_what_was_found_is_taken_by_later_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTROLLERS_TUNING", str(tmp_path))
    with Computation(CROSS, START, **OPTIONS) as run:
        spans, kept = run._assembly.relay.widths, kept_of(run)
        assert kept.load() is None and isinstance(run.plan, ChunkPlan)
        kept.store(Size(spans[0], 5, 4))
    with Computation(CROSS, START, **OPTIONS) as run:
        assert run._assembly.relay.widths == [spans[0]] == [run.halo_width]
        assert isinstance(run.plan, ChunkPlan)
        assert run.plan.n_slots == 4 and len(run.plan.places) >= 5
    for others in ({"memory_cap": 30_000}, {"chunks": "auto"}):
        with Computation(CROSS, START, **{**OPTIONS, **others}) as run:
            assert kept_of(run).load() is None


SEARCHED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({"boundary": "periodic"}, {}),
    ({"devices": "cpu/1,1", "weights": [3, 1]}, {"memory_cap": 12_000}),
    ({"slots": 4}, {"halo_width": 6}),
]


@pytest.mark.whole
@pytest.mark.parametrize(("options", "more"), sample(SEARCHED[::-1], 4))
def test_chunks_are_cut_otherwise_while_they_pass_through(
    options: dict[str, Any], more: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What somebody has said stays; images stay where they are, and slots are within the cap."""
    monkeypatch.setenv("CONTROLLERS_TUNING", str(tmp_path))
    monkeypatch.setattr(SizeChooser, "_pays", lambda self, size: True)
    asked = {**OPTIONS, "halo_width": None, "chunks": "auto", **options, **more}
    is_ring = "boundary" in options
    with Computation(CROSS, START, **asked) as run:
        chooser = run._chooser
        assert isinstance(chooser, SizeChooser) and not chooser.over
        n_steps = 0
        while not chooser.over:
            count = 3 * chooser.size.span + 1
            run.run(count)
            n_steps += count
            images = {id(run._engine.tiles[key].host.base) for key in run._engine.tiles
                      if key.place >= 0 and run._engine.tiles[key].host is not None}
            assert len(images) == (2 if "devices" in options else 1)
        right = reference_run(CROSS, {"u": START}, n_steps, (is_ring,) * 2)["u"]
        assert np.array_equal(run.gather(), right)
        report = run.report()
        assert all(one.peak_bytes <= asked["memory_cap"] for one in report.devices)
        assert report.pipeline is not None and len(report.pipeline.tried) > 1
        tried = [*zip(*report.pipeline.tried)]
        assert len({*tried[1]}) > 1
        assert "slots" not in options or {*tried[2]} == {4}
        assert "halo_width" not in more or {*tried[0]} == {6}
        found = chooser.size
        run.run(1)
        assert isinstance(run.plan, ChunkPlan) and run.plan.span == found.span
    with Computation(CROSS, START, **asked) as run:
        assert isinstance(run.plan, ChunkPlan) and run.plan.span == found.span
        n_places = len(run.plan.locations) // found.chunks
        assert len(run.plan.places) == n_places * found.chunks


@pytest.mark.whole
def test_a_run_that_is_short_is_not_cut_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long it takes on this machine to build kernels, which would make it a longer run."""
    ran = SizeChooser.ran
    monkeypatch.setattr(SizeChooser, "ran", lambda self, n_steps, seconds: ran(self, n_steps, 0.0))
    with Computation(CROSS, START, **{**OPTIONS, "chunks": "auto"}) as run:
        plan = run.plan
        run.run(5 * run.halo_width)
        assert run.plan is plan and isinstance(plan, ChunkPlan)


@pytest.mark.whole
def test_images_in_files_stay_as_they_were_cut(tmp_path: Path) -> None:
    options = {**OPTIONS, "chunks": "auto", "host_memory_cap": 1, "scratch": tmp_path}
    with Computation(CROSS, START, **options) as run:
        assert run._size is None and len(run._assembly.relay.widths) > 1
        run.run(60)
        right = reference_run(CROSS, {"u": START}, 60, (False, False))["u"]
        assert np.array_equal(run.gather(), right)
