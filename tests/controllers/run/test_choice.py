# SPDX-License-Identifier: MIT
"""A run chooses its devices by what steps take, which the test says; the bits stay the same."""
from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi_jobs import helpers_path, run_ranks
from sample import sample
from timed_devices import timed_devices, without_timed_devices

import controllers as ct
from controllers.balance import calibration, chooser, first
from controllers.device.assignment import plan_assignment
from controllers.device.device import Device, NoDeviceError, reference_device
from controllers.device.selection import choose
from controllers.run.choice import Choice
from controllers.tuning.widths import WidthChooser
from hitmap import SerialCommunicator

MEAN = ct.Stencil.of("mean", [(-1, 1)] * 2, [0, 1, 0, 1, 2, 1, 0, 1, 0], 6).program("float32")
EXTENT = (96, 8)
FIELD = np.random.default_rng(0).random(EXTENT, np.float32)
TRIO = ("auto", "swift", "slow", "other")


def steps_take(seconds: Mapping[frozenset[str], float], told: Any = Choice.ran) -> Any:
    """What `Choice` is told of steps: by the devices that compute."""

    def ran(self: Choice, n_steps: int, _: float, per_launch: int) -> None:
        names = frozenset(name.split()[1] for name in self._named(self.devices))
        told(self, n_steps, n_steps * seconds[names], per_launch)

    return ran


def table(both: float, swift: float, slow: float) -> dict[frozenset[str], float]:
    return {frozenset({"swift", "slow"}): both, frozenset({"swift"}): swift,
            frozenset({"slow"}): slow}  # fmt: skip


@pytest.fixture(autouse=True)
def devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("CONTROLLERS_ESTIMATES", str(tmp_path))
    monkeypatch.setenv("CONTROLLERS_LINKS", "off")
    monkeypatch.setattr(calibration, "MOST_PART", 0.0)
    monkeypatch.setattr(chooser, "BUDGET", 0.1)     # for less steps
    monkeypatch.setattr(first, "CORE_BYTES_PER_S", 700.0)   # steps of some seconds
    timed_devices({"swift": 1e-3, "slow": 1e-3, "other": 1e-3})
    yield
    without_timed_devices()


def computation(*devices: str, **keywords: Any) -> ct.Computation:
    names = devices or ("auto", "swift", "slow")
    return ct.Computation(MEAN, FIELD, devices=names, comm=SerialCommunicator(), **keywords)


def right(run: ct.Computation) -> bool:
    found = run.gather()
    return np.array_equal(found, ct.reference_run(MEAN, FIELD, run.step, (False, False)))


def chosen(run: ct.Computation) -> set[str]:
    choice = run.report().choice
    assert choice is not None
    used = {where.device for where in run.plan.locations}
    assert used == {*choice.chosen} and run.layout.n_places == len(used)
    return {name.split()[1] for name in used}


@pytest.mark.whole
@pytest.mark.parametrize(("seconds", "best"), sample([
    ((4.0, 10.0, 9.0), {"swift", "slow"}),
    ((9.0, 10.0, 8.0), {"slow"}),
    ((9.0, 7.0, 8.0), {"swift"}),
    ((6.0, 10.0, 60.0), {"swift", "slow"}),
], 4))
def test_the_run_goes_on_with_the_devices_whose_steps_were_shortest(
    seconds: tuple[float, float, float], best: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Choice, "ran", steps_take(table(*seconds)))
    with computation() as run:
        run.run(800)
        assert chosen(run) == best and right(run)
        report = run.report().choice
        assert report is not None and 1 <= report.trials <= 2
        assert report.spent_s < 0.15 * 800 * min(seconds)
        text = str(report)
        assert "chosen after" in text and "slower" in text and text in run.explain()
        assert text in run.report().table()
        json.dumps(run.report().as_dict())
    with computation() as run:      # what was seen is kept
        assert chosen(run) == best
        run.run(300)
        assert run.report().choice.trials <= 1 and chosen(run) == best   # type: ignore[union-attr]
        assert right(run)


def test_a_short_run_is_computed_by_one_device_without_any_trial(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Choice, "ran", steps_take(table(4.0, 10.0, 9.0)))
    monkeypatch.setattr(first, "CORE_BYTES_PER_S", 1e12)
    with computation() as run:
        run.run(3)
        report = run.report().choice
        assert report is not None and report.trials == 0 and len(chosen(run)) == 1
        assert "without a trial" in str(report) and right(run)
        assert [moment.step for moment in run.steps(4)] == [4, 5, 6, 7] and right(run)


def test_a_calibration_says_with_which_devices_a_long_run_begins(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    timed_devices({"swift": 9e-3, "slow": 1e-3})
    monkeypatch.setattr(calibration, "MOST_PART", 1e9)     # however slow this machine is
    with computation() as run:
        run.run(2)
        assert chosen(run) == {"swift", "slow"} and right(run)
        report = run.report().choice
        assert report is not None and report.source == "those of a calibration"


def test_devices_that_cannot_take_part_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Choice, "ran", steps_take(table(4.0, 10.0, 9.0)))
    with computation(memory_cap=20_500) as run:   # a half of the field each, but not beside a whole
        assert chosen(run) == {"swift", "slow"}
        run.run(500)
        report = run.report().choice
        assert report is not None and "refused" in str(report) and right(run)
    with pytest.raises(ct.MemoryCapError):
        computation(memory_cap=1000)


@pytest.mark.parametrize("keywords", [{"check": True}, {"tune": 1.0}])
def test_where_times_say_nothing_there_are_no_trials(
    keywords: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Choice, "ran", steps_take(table(4.0, 10.0, 9.0)))
    with computation(**keywords) as run:
        run.run(30)
        report = run.report().choice
        assert report is not None and report.trials == 0
        assert "chosen, without trials:" in str(report) and right(run)


def test_who_divides_the_field_anew_ends_the_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Choice, "ran", steps_take(table(4.0, 10.0, 9.0)))
    with computation() as run:
        run.run(3)
        run.redistribute(places_per_controller=2)
        run.run(300)
        assert run.layout.n_places == 4 and run.report().choice is None and right(run)


def test_of_three_devices_those_that_pay_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = {frozenset(some): s for some, s in (
        ({"swift"}, 9.0), ({"slow"}, 20.0), ({"other"}, 10.0), ({"swift", "slow"}, 8.5),
        ({"swift", "other"}, 5.0), ({"slow", "other"}, 9.5), ({"swift", "slow", "other"}, 5.4),
    )}  # fmt: skip
    monkeypatch.setattr(Choice, "ran", steps_take(seconds))
    with computation(*TRIO) as run:
        run.run(1500)
        assert chosen(run) == {"swift", "other"} and right(run)


@pytest.mark.whole
@pytest.mark.parametrize("pair_s", [(24.0, 12.0, 6.0, 8.0), (24.0, 18.0, 12.0, 16.0)])
def test_sets_are_compared_with_the_halo_widths_that_suit_them(
    pair_s: tuple[float, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two devices, which exchange: of one alone there is nothing to be found."""
    of_width, widths = dict(zip((1, 2, 4, 8), pair_s)), list[int]()
    find, told = WidthChooser.ran, Choice.ran

    def searched(self: WidthChooser, n_steps: int, _: float) -> None:
        find(self, n_steps, n_steps * of_width[self.width])

    def ran(self: Choice, n_steps: int, _: float, per_launch: int) -> None:
        widths.append(run.halo_width)
        pair = len(self.devices) == 2
        each = of_width[run.halo_width] if pair else {"swift": 10.0, "slow": 9.0}[
            self._named(self.devices)[0].split()[1]]  # fmt: skip
        told(self, n_steps, n_steps * each, per_launch)

    monkeypatch.setattr(chooser, "BUDGET", 0.9)
    monkeypatch.setattr(WidthChooser, "ran", searched)
    monkeypatch.setattr(Choice, "ran", ran)
    with computation(halo_width="auto") as run:
        for n_steps in (1500, 60):
            run.run(n_steps)
            best = {"swift", "slow"} if min(pair_s) < 9 else {"slow"}
            assert chosen(run) == best and right(run)
            assert run.halo_width == (4 if len(best) == 2 else 1)
        report = run.report().choice
        assert report is not None and report.trials >= 1
    assert set(widths) == {1, 4}


@pytest.mark.parametrize(("given", "problem"), [
    ({"dims": (2, 1)}, "chooses how many devices compute, got dims"),
    ({"weights": [1, 2]}, "got weights, which says how many"),
    ({"partition": "cyclic", "block": 8}, "got cyclic"),
])  # fmt: skip
def test_who_says_how_many_places_there_are_leaves_no_choice(
    given: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        computation(**given)


def device(kind: Any, name: str) -> Device:
    plain = reference_device()
    return Device(
        name, "a maker", "a platform", "1", kind, 8, plain.memory_bytes, plain.memory_bytes,
        kind == "cpu", plain.dtypes, divisible=kind == "cpu",
    )  # fmt: skip


def test_auto_is_all_devices_and_a_cpu_leaves_a_core_to_the_driver() -> None:
    gpu, cpu, plain = device("gpu", "a GPU"), device("cpu", "a CPU"), reference_device()
    assert choose(["auto"], [gpu, cpu, plain]) == [gpu, cpu]
    assert choose(["cpu", "Auto"], [gpu, cpu, plain]) == [cpu]
    ((first_one, second),) = plan_assignment(choose(["auto"], [gpu, cpu, plain]), 1)
    assert first_one == gpu and second.compute_units == 7
    with pytest.raises(NoDeviceError):
        choose(["auto"], [plain])


RANKS = """import numpy as np
import controllers as ct
from test_choice import *
from hitmap.comm import default_communicator
comm = default_communicator()
timed_devices({"swift": 1e-3, "slow": 1e-3})
calibration.MOST_PART, chooser.BUDGET, first.CORE_BYTES_PER_S = 0.0, 0.1, 700.0
told = Choice.ran
for seconds, best in (((9.0, 7.0, 8.0), {"swift"}), ((4.0, 10.0, 9.0), {"swift", "slow"}),
                      ((9.0, 10.0, 8.0), {"slow"})):
    Choice.ran = steps_take(table(*seconds), told)
    with ct.Computation(MEAN, FIELD, devices=["auto", ["swift", "slow"][comm.rank]]) as run:
        run.run(800)
        assert chosen(run) == best, run.report().choice
        found, report = run.gather(), str(run.report().choice)
    assert comm.allgather(report) == [report] * 2
    if comm.rank == 0:
        assert np.array_equal(found, ct.reference_run(MEAN, FIELD, 800, (False, False)))
"""


@pytest.mark.whole
def test_ranks_choose_alike_and_one_may_be_left_without_a_place() -> None:
    env = {**helpers_path(Path(__file__).parent), "CONTROLLERS_ESTIMATES": "off"}
    job = run_ranks(2, RANKS, env=env)
    assert job.returncode == 0, job.stderr



WIDE_RANKS = """import numpy as np
import controllers as ct
from test_choice import *
from hitmap.comm import default_communicator
comm = default_communicator()
names = ["swift", "slow", "other"]
timed_devices(dict.fromkeys(names, 1e-3))
calibration.MOST_PART, chooser.BUDGET, first.CORE_BYTES_PER_S = 0.0, 0.9, 700.0
of_width, find, told = {1: 24.0, 2: 12.0, 4: 6.0, 8: 8.0, 16: 9.0}, WidthChooser.ran, Choice.ran
WidthChooser.ran = lambda self, n, _: find(self, n, n * of_width[self.width])
def ran(self, n_steps, _, per_launch):
    of_several = of_width[run.halo_width] * (len(self.devices) - 1)
    told(self, n_steps, n_steps * (of_several or 10.0), per_launch)
Choice.ran = ran
with ct.Computation(MEAN, FIELD, devices=["auto", names[comm.rank]], halo_width="auto") as run:
    run.run(2500)
    assert len(chosen(run)) == 2 and run.halo_width == 4, run.report().choice
    found = run.gather()
if comm.rank == 0:
    assert np.array_equal(found, ct.reference_run(MEAN, FIELD, 2500, (False, False)))
"""


@pytest.mark.whole
def test_ranks_find_the_halo_width_of_the_devices_that_are_on_trial() -> None:
    env = {**helpers_path(Path(__file__).parent), "CONTROLLERS_ESTIMATES": "off"}
    job = run_ranks(3, WIDE_RANKS, env=env)
    assert job.returncode == 0, job.stderr
