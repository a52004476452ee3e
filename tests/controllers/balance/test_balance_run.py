# SPDX-License-Identifier: MIT
"""Shares are found while steps run, by times that the devices of the test report."""
from __future__ import annotations

import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sample import sample
from timed_devices import TimedExecutor, timed_devices, without_timed_devices

from controllers import Computation, Stencil, reference_run
from hitmap import SerialCommunicator

MEAN = Stencil.of("mean", [(-1, 1)] * 2, [0, 1, 0, 1, 2, 1, 0, 1, 0], 6).program("float32")
EXTENT = (96, 8)
FIELD = np.random.default_rng(0).random(EXTENT, np.float32)


@pytest.fixture(autouse=True)
def devices() -> Iterator[None]:
    timed_devices({"swift": 1e-3, "slow": 3e-3, "other": 1e-3})
    yield
    without_timed_devices()


def computation(*devices: str, **keywords: Any) -> Computation:
    return Computation(MEAN, FIELD, devices=devices, comm=SerialCommunicator(), **keywords)


def right(run: Computation) -> bool:
    found = run.gather()
    return np.array_equal(found, reference_run(MEAN, FIELD, run.step, (False, False)))


@pytest.mark.parametrize(("partition", "n_each"), sample(
    [("blocks", 2), (None, 1), (None, 2), ("blocks", 1)], 4
))  # fmt: skip
def test_a_slow_device_gets_its_share_by_one_move(partition: str | None, n_each: int) -> None:
    with computation("swift", "slow", weights="auto", partition=partition,
                     places_per_controller=n_each) as run:  # fmt: skip
        assert run.layout.owned[0].n_cells == EXTENT[0] * EXTENT[1] // 2 // n_each
        run.run(40)
        found = run.report()
        assert right(run)
    assert found.balance is not None and found.balance.moves == 1
    assert [place.share for place in found.places[:: n_each]] == pytest.approx(
        [0.75 / n_each, 0.25 / n_each], abs=0.02
    )
    assert found.balance.gain == pytest.approx(2, abs=0.15)
    assert "balance: 1 move in" in found.table()
    assert found.as_dict()["balance"]["mode"] == "start"  # type: ignore[index]


def test_unlike_devices_are_balanced_unless_somebody_says_how_to_cut() -> None:
    with computation("swift", "slow") as run:
        run.run(8)
        assert run.layout.owned[0].extent[0] == pytest.approx(72, abs=2) and right(run)

@pytest.mark.whole
def test_devices_that_are_alike_or_cuts_that_are_said_are_left_alone() -> None:
    for said in ({"weights": [1, 1]}, {"partition": "bands"}, {"balance": "off"}, {"dims": (2, 1)}):
        with computation("swift", "slow", **said) as run:  # type: ignore[arg-type]
            run.run(60)
            assert run.layout.owned[0].extent[0] == 48
            assert run.report().balance is None
    with computation("swift", "swift") as run:
        assert run.report().balance is None


def test_devices_that_are_equally_fast_are_left_alone() -> None:
    with computation("swift", "other") as run:
        run.run(60)
        report = run.report().balance
        gone = weakref.ref(run)
    del run     # no cycle holds what is on the devices
    assert gone() is None
    assert report is not None and report.moves == 0 and "less than 2%" in report.why


@pytest.mark.parametrize(("mode", "rows"), sample([("dynamic", 32), ("start", 48)], 2))
def test_a_device_that_becomes_slower_is_followed_where_that_is_wanted(
    mode: str, rows: int
) -> None:
    with computation("swift", "other", balance=mode) as run:
        run.run(25)
        TimedExecutor.seconds_per_cell = {**TimedExecutor.seconds_per_cell, "swift": 2e-3}
        run.run(180)
        assert run.layout.owned[0].extent[0] == pytest.approx(rows, abs=2)      # of 96
        assert right(run)


def test_shares_follow_devices_after_the_halo_width_is_found() -> None:
    with computation("swift", "other", balance="dynamic", halo_width="auto") as run:
        run.run(25)
        n_steps = 25
        while run._finding is not None and n_steps < 20_000:
            assert run.layout.owned[0].extent[0] == 48
            run.run(100)
            n_steps += 100
        width = run._chooser.width      # which the next steps have
        assert width in run.report().widths
        TimedExecutor.seconds_per_cell = {**TimedExecutor.seconds_per_cell, "swift": 2e-3}
        some_windows = 250 * width      # which count launches
        run.run(some_windows)
        assert run.layout.owned[0].extent[0] == pytest.approx(32, abs=6)    # of 96, and halos
        assert run.halo_width == width and run._chooser.over
        n_moves = run.report().balance.moves    # type: ignore[union-attr]
        run.run(some_windows)
        assert run.report().balance.moves == n_moves <= 3       # type: ignore[union-attr]
        assert right(run)


def test_a_glance_is_enough_where_devices_are_very_unlike() -> None:
    for speeds, rows in (((1e-3, 3e-3), 72), ((1e-3, 1.5e-3), 48), ((1e-6, 3e-6), 48)):
        timed_devices(dict(zip(("swift", "slow"), speeds)))
        with computation("swift", "slow", weights="auto") as run:
            run.run(7)
            assert run.layout.owned[0].extent[0] == pytest.approx(rows, abs=2)


@pytest.mark.parametrize(("slow", "step"), [(1.3e-5, 20), (1.05e-5, 300)])
def test_devices_that_are_hardly_unlike_are_looked_at_for_longer(slow: float, step: int) -> None:
    """By windows of 20, 40, 80 and 160 steps: then 2 % are known to be gained in a thousand."""
    timed_devices({"swift": 1e-5, "slow": slow})
    with computation("swift", "slow", weights=[1, 1], balance="start") as run:
        assert run._balancer is not None
        run._balancer._costs = {False: 0.0, True: 0.0}
        run.run(1000)
        balance = run.report().balance
        assert balance is not None and [one.step for one in balance.history] == [0, step]


def test_short_runs_are_one_window_together() -> None:
    with computation("swift", "slow", weights="auto") as run:
        for _ in range(30):
            run.run(1)
        assert run.layout.owned[0].extent[0] == pytest.approx(72, abs=2)
        assert right(run)


def test_a_later_run_begins_with_what_an_earlier_one_has_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTROLLERS_ESTIMATES", str(tmp_path))
    for moves, source in ((1, "by the class of the devices"), (0, "those of an earlier run")):
        with computation("swift", "slow") as run:
            assert f"balance: start; the first shares are {source}" in run.explain()
            run.run(60)
            assert run.report().balance.moves == moves      # type: ignore[union-attr]
            assert run.layout.owned[0].extent[0] == pytest.approx(72, abs=2)
    for path in tmp_path.iterdir():
        path.write_bytes(path.read_bytes()[:-3])        # damaged: as if there was none
    with computation("swift", "slow") as run:
        assert "by the class of the devices" in run.explain()


def test_runs_that_are_too_short_for_a_move_tell_later_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTROLLERS_ESTIMATES", str(tmp_path))
    for rows in (48, 72):
        with computation("swift", "slow") as run:
            assert run._balancer is not None
            run._balancer._costs = {False: 1e9, True: 1e9}
            run.run(60)
            assert run.layout.owned[0].extent[0] == pytest.approx(rows, abs=2)


@pytest.mark.parametrize(("costs", "rows"), [
    ({False: 1e9, True: 0.0}, 51), ({False: 0.0, True: 1e9}, 48),
])  # fmt: skip
def test_what_a_move_within_the_room_of_tiles_takes_counts_for_that(
    costs: dict[bool, float], rows: int
) -> None:
    timed_devices({"swift": 1e-3, "slow": 51e-3 / 45})      # 3 rows of 48 are the room
    with computation("swift", "slow", weights=[1, 1], balance="start") as run:
        assert run._balancer is not None
        run._balancer._costs = costs
        run.run(60)
        assert run.layout.owned[0].extent[0] == rows and right(run)
        assert (run.plan.tiles_of is not None) == (rows == 51)


def test_runs_that_end_after_a_move_tell_later_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTROLLERS_ESTIMATES", str(tmp_path))
    with computation("swift", "slow") as run:
        while run.report().balance.moves == 0:     # type: ignore[union-attr]
            run.run(1)
    with computation("swift", "slow") as run:
        assert "the first shares are those of an earlier run" in run.explain()
        assert run.layout.owned[0].extent[0] == pytest.approx(72, abs=2)


def test_where_times_say_nothing_there_is_no_balance_and_explain_says_why() -> None:
    with computation("swift", "slow", weights="auto", check=True) as run:
        assert "balance: off: check= makes launches take other times" in run.explain()
    with computation("swift", weights="auto") as run:
        assert "balance: off: there is one device" in run.explain()


def test_weights_may_be_where_it_begins() -> None:
    with computation("swift", "slow", weights=[2, 1], balance="start") as run:
        assert run.layout.owned[0].extent[0] == 64
        run.run(60)
        assert run.layout.owned[0].extent[0] == pytest.approx(72, abs=2)


def test_places_stay_as_thick_as_halos_need_and_cuts_aligned() -> None:
    timed_devices({"swift": 1e-3, "slow": 1.0})
    with computation("swift", "slow", weights="auto", align=4) as run:
        run.run(60)
        assert [box.extent[0] for box in run.layout.owned] == [88, 8]
        assert right(run)


def test_what_runs_on_the_way_goes_on() -> None:
    """Looks, conditions, checks for NaN, progress: as without a move."""
    told: list[int] = []
    with computation("swift", "slow", weights="auto", trace=True) as run:
        record = run.record("u", every=7, y=3, x=4)
        run.run(50, progress=lambda done, total: told.append(done))
        run.run(30, stop_if=True, check_every=30)
        assert run.report().balance.moves == 1  # type: ignore[union-attr]
        assert [*record.steps] == [*range(7, 81, 7)]
        assert told == sorted(told) and told[-1] == 50
        assert right(run)


def test_a_run_that_is_ended_after_a_move_goes_on() -> None:
    def tell(done: int, total: int) -> None:
        if done > 30:
            raise ValueError("enough")

    with computation("swift", "slow", weights="auto") as run:
        with pytest.raises(ValueError, match="enough"):
            run.run(90, progress=tell)
        assert run.report().balance.moves == 1      # type: ignore[union-attr]
        assert 30 < run.step < 90 and right(run)
        run.run(5)
        assert right(run)


def test_where_old_and_new_tiles_do_not_fit_together_fields_move_in_turns() -> None:
    with computation("swift", "slow", weights="auto", memory_cap=24_000) as run:
        run.run(40)
        found = run.report().balance
        assert found is not None and found.moves
        assert max(device.peak_bytes for device in run.report().devices) <= 24_000
        assert run.layout.owned[0].extent[0] > 48 and right(run)


def test_where_new_tiles_do_not_fit_nothing_moves() -> None:
    with computation("swift", "slow", weights="auto", memory_cap=20_000) as run:
        run.run(40)
        found = run.report().balance
        assert found is not None and found.moves == 0 and "no memory for a move" in found.why
        assert run.layout.owned[0].extent[0] == 48 and right(run)


@pytest.mark.parametrize(("given", "problem"), [
    ({"balance": "often"}, "balance is one of start, dynamic, off"),
    ({"balance": "start", "dims": (2, 1)}, "balance='start' moves the cuts .* got dims"),
    ({"balance": "dynamic", "tune": 1.0}, "which tune= changes"),
    ({"balance": "dynamic", "check": True}, "under check= they mean nothing"),
    ({"weights": "auto", "partition": "cyclic", "block": 8}, "weights belong .* weights auto"),
])  # fmt: skip
def test_what_does_not_go_together_is_refused(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        computation("swift", "slow", **given)
