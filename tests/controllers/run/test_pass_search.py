# SPDX-License-Identifier: MIT
"""Steps of passes are found while a field passes through: the same bits; what was found is kept."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from controllers import Computation, Stencil, reference_run
from controllers.plan import ChunkPlan
from controllers.tuning.passes import PassChooser

CROSS = Stencil.of("cross", [(-1, 1)] * 2, [0, 1, 0, 1, 4, 1, 0, 1, 0], 8).program("float32")
START = np.random.default_rng(0).random((120, 40), dtype=np.float32)
OPTIONS: dict[str, Any] = {
    "devices": "cpu", "zero_copy": False, "halo_width": "auto", "memory_cap": 24_000,
    "steps_per_launch": 1,
}


def test_passes_of_several_lengths_have_the_bits_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trials cost nothing here, so that all of those that the search asks for are run."""
    monkeypatch.setattr(PassChooser, "_pays", lambda self, span: True)
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


def test_what_was_found_is_taken_by_later_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTROLLERS_TUNING", str(tmp_path))
    with Computation(CROSS, START, **OPTIONS) as run:
        spans, kept = run._assembly.relay.widths, run._assembly.kept
        assert kept is not None and kept.load() is None
        kept.store(spans[0])
    with Computation(CROSS, START, **OPTIONS) as run:
        assert run._assembly.relay.widths == [spans[0]] == [run.halo_width]
    with Computation(CROSS, START, **{**OPTIONS, "memory_cap": 30_000}) as run:
        assert run._assembly.kept is not None and run._assembly.kept.load() is None
