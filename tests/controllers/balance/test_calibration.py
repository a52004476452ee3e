# SPDX-License-Identifier: MIT
"""Devices of which nothing is known are timed on scratch, before long runs alone."""
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi_jobs import helpers_path, run_ranks
from timed_devices import TimedExecutor, timed_devices, without_timed_devices

import controllers as ct
from controllers.balance import calibration, first
from controllers.balance.calibration import Trial, calibrated, rate_on_scratch
from controllers.device.device import WITHOUT_OPENCL, reference_device
from controllers.executor.reference import ReferenceExecutor
from controllers.kernel.registry import SPECIALISED
from controllers.plan import Location
from controllers.settings.execution import Execution
from hitmap import SerialCommunicator, Shape

MEAN = ct.Stencil.of("mean", [(-1, 1)] * 2, [0, 1, 0, 1, 2, 1, 0, 1, 0], 6).program("float32")
EXTENT = (96, 8)
FIELD = np.random.default_rng(0).random(EXTENT, np.float32)
HERE = Location(0, 0, shares_host=True, device="a swift one", kind="reference")


@pytest.fixture(autouse=True)
def devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("CONTROLLERS_ESTIMATES", str(tmp_path))
    timed_devices({"swift": 1e-3, "slow": 3e-3})
    yield
    without_timed_devices()


def computation(**keywords: Any) -> ct.Computation:
    given = {"devices": ["swift", "slow"], "comm": SerialCommunicator(), **keywords}
    return ct.Computation(MEAN, FIELD, **given)


def test_a_long_run_begins_with_shares_of_a_calibration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first, "CORE_BYTES_PER_S", 1.0)     # steps of minutes, as it seems
    for source in ("by the class of the devices", "those of an earlier run"):
        with computation() as run:
            assert f"the first shares are {source}" in run.explain()
            run.run(2)
            assert run.layout.owned[0].extent[0] == pytest.approx(72, abs=1)
            assert np.array_equal(run.gather(), ct.reference_run(MEAN, FIELD, 2, (False, False)))
            balance = run.report().balance
            assert balance is not None and balance.moves == (source[0] == "b")
            assert [one.step for one in balance.history] == [0] * (balance.moves + 1)
            again = "those of a calibration" if balance.moves else source
            assert f"the first shares are {again}" in run.explain()
            run.run(60)
            assert run.report().balance.moves == balance.moves      # type: ignore[union-attr]


@pytest.mark.parametrize("keywords", [
    {}, {"devices": ["swift", "swift"], "weights": "auto"}, {"balance": "off"},
    {"weights": [1, 1], "balance": "start"},
])  # fmt: skip
def test_short_runs_and_devices_that_are_alike_have_no_time_for_any(
    keywords: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    if keywords:
        monkeypatch.setattr(first, "CORE_BYTES_PER_S", 1.0)
    monkeypatch.setattr(calibration, "rate_on_scratch", None)   # whoever asks would fail
    if "weights" in keywords and keywords["weights"] == "auto":
        monkeypatch.setattr(calibration, "MOST_PART", 0.0)
    with computation(**keywords) as run:
        run.run(2)


def test_the_rate_is_that_of_the_launches_of_the_device() -> None:
    executor = TimedExecutor(WITHOUT_OPENCL["swift"]())
    trial = Trial(MEAN, Shape.of_extent(EXTENT), SPECIALISED, Execution())
    (rate,) = calibrated(trial, [(HERE, executor)], 0.01, SerialCommunicator())
    # a stencil computes no cells at the edge
    assert rate is not None and rate.cell_s == pytest.approx(1e-3 * 94 * 6 / (96 * 8))
    assert executor.ledger.peak_on_device > 0 == executor.ledger.on_device


def test_a_device_without_room_for_the_scratch_has_no_rate() -> None:
    executor = ReferenceExecutor(reference_device(), memory_cap=1000)
    trial = Trial(MEAN, Shape.of_extent(EXTENT), SPECIALISED, Execution())
    assert rate_on_scratch(trial, HERE, executor, 0.01) is None


@ct.step
def relaxed(u):
    new = 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1])
    return dict(u=new, residual=ct.max(np.abs(new - u)))


@ct.step
def drift(u):
    dt = 0.4 / ct.max(np.abs(u))    # of 0 in the scratch
    around = u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u
    return dict(u=u + 0.1 * around * dt, dt=dt, mass=ct.sum(u))


REPEATED = [ct.repeat(relaxed, until=lambda now: now.residual < 1e-2, at_most=9)]


@pytest.mark.parametrize("program", [REPEATED, drift], ids=["repeated", "drift"])
def test_programs_with_results_of_their_own_are_timed(program: Any) -> None:
    grid, alone = ct.Grid(y=48, x=20, boundary=ct.fixed(0)), SerialCommunicator()
    with ct.Computation(program, grid, u=1.0, devices="reference", comm=alone) as run:
        terms = run._assembly.terms
        trial = Trial(terms.program, terms.domain, terms.kernel, terms.execution)
        rate = rate_on_scratch(trial, HERE, ReferenceExecutor(reference_device()), 0.01)
    assert rate is not None and rate.cell_s > 0


RANKS = """import numpy as np
import controllers as ct
from controllers.balance import first
from hitmap.comm import default_communicator
from timed_devices import timed_devices
comm = default_communicator()
timed_devices({"swift": 1e-3, "slow": 3e-3})
first.CORE_BYTES_PER_S = 1.0
program = ct.Stencil.of("mean", [(-1, 1)] * 2, [0, 1, 0, 1, 2, 1, 0, 1, 0], 6).program("float32")
field = np.random.default_rng(0).random((96, 8), np.float32)
with ct.Computation(program, field, devices=["swift", "slow"][comm.rank]) as run:
    run.run(2)
    assert abs(run.layout.owned[0].extent[0] - 72) <= 1, run.layout
    found = run.gather()
if comm.rank == 0:
    assert np.array_equal(found, ct.reference_run(program, field, 2, (False, False)))
"""


@pytest.mark.whole
def test_ranks_calibrate_together(tmp_path: Path) -> None:
    job = run_ranks(2, RANKS, env={**helpers_path(), "CONTROLLERS_ESTIMATES": str(tmp_path)})
    assert job.returncode == 0, job.stderr
