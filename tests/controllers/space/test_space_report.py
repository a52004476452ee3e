# SPDX-License-Identifier: MIT
"""What a workspace reports, and what it remembers of its devices for later ones."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from body_steps import bodies, moved, nearest

import controllers as ct
from controllers.space import meter, rates
from hitmap import SerialCommunicator

SERIAL = SerialCommunicator()


def stepped(n_steps: int, **more: Any) -> Any:
    places, speeds, masses = bodies(40)
    with ct.workspace(comm=SERIAL, **more) as on:
        x, v, mass = on.array(places), on.array(speeds), on.array(masses, split=None)
        moved(x, v, mass, n_steps)
        return on.report()


@pytest.mark.whole
@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_a_report_has_all_places_and_where_their_time_went(device: str) -> None:
    found = stepped(12, devices=device, places_per_controller=3, weights=[1, 1, 2])
    assert [one.place for one in found.places] == [0, 1, 2] and found.calls == 12
    assert [round(one.share, 3) for one in found.places] == [0.25, 0.25, 0.5]
    assert all(one.compute_s > 0 for one in found.places) and found.imbalance >= 1
    assert json.loads(json.dumps(found.as_dict()))["calls"] == 12
    table = str(found).splitlines()
    assert len({len(line.split()) > 6 for line in table[:4]}) == 1
    assert "12 calls of functions; the shares are given; imbalance" in table[4]


def test_calls_outside_of_the_sample_are_counted_as_those_in_it(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    weights: list[float] = []
    timed = meter.Meter._timed

    def noted(self: Any, run: Any, numbers: Any, weight: float) -> Any:
        weights.append(weight)
        return timed(self, run, numbers, weight)

    monkeypatch.setattr(meter.Meter, "_timed", noted)
    monkeypatch.setattr(meter, "MOST_UNREAD", 5)
    n_calls = meter.FIRST + 3 * meter.DISTANCE
    points = np.ones((6, 2), np.float32)
    with ct.workspace(comm=SERIAL, devices="cpu") as on:
        p = on.array(points)
        for _ in range(n_calls):
            nearest(p, points)
        assert on.report().calls == n_calls
    assert weights == [1.0] * meter.FIRST + [float(meter.DISTANCE)] * 3


def test_rates_of_all_devices_are_remembered_together(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CONTROLLERS_ESTIMATES", str(tmp_path))
    monkeypatch.setattr(rates, "LEAST_S", 0.0)
    both = {"devices": ["cpu", "reference"]}
    with ct.workspace(comm=SERIAL, weights="auto", **both) as on:
        before = on.report()
    assert before.source == "by the class of the devices"
    assert before.places[1].share < before.places[0].share
    stepped(3, weights=[1, 1], **both)
    with ct.workspace(comm=SERIAL, weights="auto", **both) as on:
        assert on.report().source == "those of an earlier run"
    with ct.workspace(comm=SERIAL, devices=["reference", "cpu"], weights="auto") as on:
        assert on.report().source == "by the class of the devices"      # others, as far as we know
