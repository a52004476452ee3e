# SPDX-License-Identifier: MIT
"""Chunks and slots are found while calls pass through: the same bits; what was found is kept."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi_jobs import helpers_path, run_ranks
from sample import sample
from stream_steps import backwards, nearest

import controllers as ct
from controllers.array.stream_cut import StreamCut
from controllers.tuning.sizes import SHARE, SizeChooser

OWN: dict[str, Any] = {"devices": "cpu", "zero_copy": False, "dtype": "float32"}
VALUES = np.random.default_rng(3).normal(size=(3000, 4)).astype("float32")
CAP = 1 << 16


@pytest.fixture(autouse=True)
def kept_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Trials cost nothing here, so that all of those that the search asks for are made."""
    monkeypatch.setenv("CONTROLLERS_TUNING", str(tmp_path))
    monkeypatch.setattr(SizeChooser, "_pays", lambda self, size: True)


def chooser(on: Any, number: int = 0) -> SizeChooser:
    found: SizeChooser = [*on.streams.tuners.values()][number]._chooser
    return found


ASKED = [{"slots": 2}, {}, {"devices": "cpu/1,1", "weights": [2, 1]}]


@pytest.mark.parametrize("options", sample(ASKED, 3))
def test_calls_of_several_sizes_have_the_same_bits(options: dict[str, Any]) -> None:
    asked = {**OWN, "chunks": "auto", "memory_cap": CAP, **options}
    right = nearest(VALUES, VALUES[:20])
    with ct.workspace(**asked) as on:
        x = on.array(np.tile(VALUES, (4, 1)))
        for _ in range(60):
            label = nearest(x, VALUES[:20])
            assert np.array_equal(label[3000:6000], right)
            if chooser(on).over:
                break
        assert chooser(on).over and on.streams.is_on
        sizes = {(one.chunks, one.slots) for one in on.report().streams}
        assert len(sizes) > 1 and {(one.chunks, one.slots) for one in chooser(on).seconds} == sizes
        assert "slots" not in options or {slots for _, slots in sizes} == {2}
        assert all(one.chunks >= one.least for one in on.report().streams)
        found = chooser(on).size
        assert all(device.peak_bytes <= CAP for device in on.report().devices)
    with ct.workspace(**asked) as on:       # what was found is taken
        x = on.array(np.tile(VALUES, (4, 1)))
        nearest(x, VALUES[:20])
        (call,) = on.report().streams
        assert (call.chunks, call.slots) == (found.chunks, found.slots) and chooser(on).over


@pytest.mark.whole
def test_calls_that_take_the_slots_of_others_go_on() -> None:
    """Functions, expressions and folds by turns, each with a search of its own."""
    with ct.workspace(chunks="auto", memory_cap=CAP * 4, **OWN) as on:
        x = on.array(np.tile(VALUES, (4, 1)))
        y = np.array(x)
        for turn in range(16):
            assert np.array_equal(backwards(x), y[:, ::-1])
            x *= 1.5 if turn % 2 else 0.5
            y *= np.float32(1.5 if turn % 2 else 0.5)
            assert np.isclose(x.sum(), y.sum(dtype=np.float64))
        assert np.array_equal(x, y) and len(on.streams.tuners) == 3
        tried = [len(chooser(on, number).seconds) for number in range(3)]
        assert min(tried) > 0 and sum(tried) > 6
        assert all(device.peak_bytes <= 4 * CAP for device in on.report().devices)


def test_a_trial_waits_until_calls_have_paid_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """What fits is looked for once meanwhile, as that makes plans; what it takes is lost."""
    monkeypatch.setattr(SizeChooser, "_pays", lambda self, size: False)
    asked, has_room = [], StreamCut.has_room
    monkeypatch.setattr(
        StreamCut, "has_room", lambda self, size: asked.append(size) or has_room(self, size)
    )
    with ct.workspace(chunks="auto", memory_cap=CAP, **OWN) as on:
        x = on.array(np.tile(VALUES, (4, 1)))
        for _ in range(8):
            nearest(x, VALUES[:20])
        assert len(chooser(on).seconds) == 1 and not chooser(on).over
        assert len({*asked}) == len(asked) > 0
        allowance = chooser(on)._allowance
        assert not allowance.allows(SHARE * allowance.run_s, 0.0) and allowance._lost_s > 0


@pytest.mark.whole
def test_ranks_choose_alike(tmp_path: Path) -> None:
    job = run_ranks(2, """
import numpy as np
import controllers as ct
from controllers.tuning.sizes import SizeChooser
SizeChooser._pays = lambda self, size: True
values = np.random.default_rng(3).normal(size=(6000, 4)).astype("float32")
with ct.workspace(devices="cpu", zero_copy=False, chunks="auto", memory_cap=1 << 19) as on:
    x = on.array(np.tile(values, (8, 1)))
    total = x.sum()
    (tuner,) = on.streams.tuners.values()
    while not tuner._chooser.over:
        assert x.sum() == total
    assert len(set(on.comm.allgather(tuner.size))) == 1 and len(tuner._chooser.seconds) > 1
print("is right")
""", env={**helpers_path(), "CONTROLLERS_TUNING": str(tmp_path)})
    assert job.returncode == 0, job.stderr
    assert job.stdout.count("is right") == 2
