# SPDX-License-Identifier: MIT
"""Tuning while a run is under way: the same bits, the same number of steps, on all ranks."""
from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from mpi_jobs import helpers_path, run_ranks
from sample import cases, sample

from controllers import Computation, Stencil, kgt, reference_run
from controllers.kernel import stage_kernel
from controllers.kernel.winners import VARIABLE
from controllers.kgt.kernel import StageKernel
from controllers.program.program import Program, Stage
from controllers.tuning.bench import Bench
from hitmap.comm import SerialCommunicator

LINE = Stencil.of("line", [(-2, 1)], [1, 0, 3, 2], 6).program("float32")
N_CELLS = 20_011
STEPS = 120     # enough for a whole search: the space of one axis is small
LONG_S = 600.0


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "tuning"))
    return tmp_path / "tuning"


def field() -> npt.NDArray[Any]:
    return np.random.default_rng(1).random(N_CELLS, np.float32)


def tuned(**options: Any) -> Computation:
    given = {
        "devices": "cpu:0", "comm": SerialCommunicator(), "tune": LONG_S, "steps_per_launch": 1,
        **options,
    }  # fmt: skip
    run = Computation(LINE, N_CELLS, **given)
    run.scatter(field())
    return run


def in_use(run: Computation) -> str:
    (kernel,) = run.report().kernels
    return kernel.origin


@pytest.mark.parametrize("parts", sample([[1, 2, 4, 50, 0, 63], [STEPS]], 2), ids=str)
def test_a_tuned_run_has_the_bits_of_the_reference(parts: list[int]) -> None:
    with tuned() as run:
        for n_steps in parts:
            run.run(n_steps)
        assert np.array_equal(run.gather(), reference_run(LINE, field(), sum(parts), (False,)))
        assert run.report().steps == sum(parts)


@pytest.mark.parametrize("number", cases(0, 20))
def test_halos_of_any_width_are_tuned(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(number)
    monkeypatch.setattr("controllers.tuning.timing.MAX_LAUNCHES", 2)
    per_launch = rng.choice([1, 1, 3])
    with tuned(
        halo_width=per_launch * rng.randint(2, 5), steps_per_launch=per_launch,
        places_per_controller=rng.randint(2, 3), boundary=rng.choice(["fixed", "periodic"]),
    ) as run:  # fmt: skip
        done, widest = 0, run.halo_width
        for _ in range(6):
            run.run(n_steps := rng.randint(1, 3 * STEPS))
            done += n_steps
            if rng.random() < 0.5:
                run.use_halo_width(per_launch * rng.randint(1, widest // per_launch))
        periodic = (run.plan.periodic[0],)
        assert np.array_equal(run.gather(), reference_run(LINE, field(), done, periodic))
        found = run.report().tuning
        assert found is not None and found.tried > 1


@pytest.mark.whole
@pytest.mark.parametrize("boundary", sample(["periodic", "fixed"], 2))
def test_kernels_are_tuned_once_the_halo_width_is_found(
    boundary: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controllers.tuning.timing.MAX_LAUNCHES", 2)
    monkeypatch.setattr("controllers.placement.halo_width.MOST_TRIED", 4)
    with tuned(halo_width="auto", places_per_controller=2, boundary=boundary) as run:
        assert len(run._assembly.relay.widths) > 1
        n_steps = 0
        while run._finding is not None and n_steps < 20_000:
            assert run.report().tuning.tried == 0
            run.run(200)
            n_steps += 200
        width = run._chooser.width      # which the next steps have
        run.run(width * STEPS)
        assert run.halo_width == width and run._tuner._engine is run._engine
        found = run.report()
        assert found.tuning is not None and found.tuning.tried > 1
        assert found.halo_width == width and width in found.widths
        periodic = (run.plan.periodic[0],)
        right = reference_run(LINE, field(), n_steps + width * STEPS, periodic)
        assert np.array_equal(run.gather(), right)


def test_progress_counts_all_steps() -> None:
    told: list[tuple[int, int]] = []
    with tuned() as run:
        run.run(STEPS, lambda done, total: told.append((done, total)))
    assert told == sorted(told)
    assert told[-1] == (STEPS, STEPS)
    assert {total for _, total in told} == {STEPS}


@pytest.mark.parametrize(("n_at_once", "n_steps"), sample([(1, STEPS), (3, 12_000)], 2))
def test_configurations_are_tried_and_the_best_is_used_from_then_on(
    cache: Path, monkeypatch: pytest.MonkeyPatch, n_at_once: int, n_steps: int
) -> None:
    monkeypatch.setattr("controllers.tuning.site.WORTH", 10.0)      # whatever is not the default
    monkeypatch.setattr("controllers.tuning.trials.Trials.best", property(_last))
    usual: dict[str, Any] = {"tune": 0.0, "steps_per_launch": n_at_once}
    with tuned(**usual) as run:
        default = in_use(run)
    with tuned(steps_per_launch=n_at_once) as run:
        run.run(n_steps)
        used = in_use(run)
        assert used != default
        assert used in run.explain()
        assert np.array_equal(run.gather(), reference_run(LINE, field(), n_steps, (False,)))
    assert len([*cache.iterdir()]) == 1
    with tuned(**usual) as run:
        assert in_use(run) == used
        run.run(7)
        assert np.array_equal(run.gather(), reference_run(LINE, field(), 7, (False,)))


def _last(trials: Any) -> kgt.Config:
    """In place of the fastest one, so that noise decides nothing."""
    found: kgt.Config = [*trials.ratios][-1]
    return found


def test_a_wrong_candidate_never_does_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    with tuned(tune=0.0) as run:
        default = in_use(run)
    wrong: set[str] = set()

    def generate(
        program: Program, stage: Stage, made: kgt.Config | None = None,
        *, digests: bool = False,
    ) -> StageKernel:
        kernel = kgt.generate(program, stage, made, digests=digests)
        if made is None or made.described() in default:
            return kernel
        wrong.add(made.described())
        return replace(kernel, source=kernel.source.replace("/ 6.0f", "/ 7.0f"))

    monkeypatch.setattr(stage_kernel, "generate", generate)
    with tuned() as run:
        run.run(STEPS)
        assert in_use(run) == default
        assert np.array_equal(run.gather(), reference_run(LINE, field(), STEPS, (False,)))
    assert wrong


class Clock:
    """In place of the clock of the budget: passes when kernels are built, and not else."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, build_s: float) -> None:
        self.seconds, self.n_built, problem = 0.0, 0, Bench.problem

        def slow(bench: Bench, made: kgt.Config) -> str | None:
            self.seconds += build_s
            self.n_built += 1
            return problem(bench, made)

        monkeypatch.setattr("controllers.tuning.spending.now", lambda: self.seconds)
        monkeypatch.setattr(Bench, "problem", slow)


@pytest.mark.parametrize(("budget", "most"), [(0.5, 1), (3.5, 3), (9.0, 9)])
def test_nothing_begins_that_would_exceed_the_seconds(
    monkeypatch: pytest.MonkeyPatch, budget: float, most: int
) -> None:
    clock = Clock(monkeypatch, 1.0)
    with tuned(tune=budget) as run:
        run.run(STEPS)
        assert 1 <= clock.n_built <= most
        run.run(STEPS)
        assert clock.n_built <= most
        assert np.array_equal(run.gather(), reference_run(LINE, field(), 2 * STEPS, (False,)))


@pytest.mark.whole
def test_the_report_tells_what_was_tried_gained_and_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, 1.0)
    with tuned(tune=9.0, devices=["cpu:0", "reference"]) as run:
        run.run(STEPS)
        run.redistribute(weights=[5, 1])
        run.run(STEPS)
        report, data = run.report(), run.report().as_dict()["tuning"]
    tuning = report.tuning
    assert tuning is not None and data == tuning.as_dict()
    assert 1 <= tuning.tried < clock.n_built
    assert tuning.budget_s == 9.0 and tuning.spent_s == clock.seconds <= 9.0
    assert 0 < tuning.best_s <= tuning.first_s and tuning.speedup >= 1
    assert max(0, tuning.spent_s - report.seconds) <= tuning.uncounted_s <= tuning.spent_s
    assert f"tuning: {tuning.tried} configurations tried" in report.table()
    assert f"{clock.seconds:.3g} s of 9 s spent" in report.table()
    with tuned(tune=0) as run:
        assert run.report().tuning is None and "tuning" not in run.report().table()


def test_without_seconds_nothing_is_tried(cache: Path) -> None:
    with tuned(tune=0) as run:
        run.run(STEPS)
    assert not cache.exists()


def test_it_goes_on_after_the_field_is_divided_anew() -> None:
    with tuned(devices=["cpu:0", "reference"]) as run:
        run.run(5)
        run.redistribute(weights=[5, 1])
        run.run(40)
        assert np.array_equal(run.gather(), reference_run(LINE, field(), 45, (False,)))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"tune": -1}, "at least 0, got -1"),
        ({"tune": float("nan")}, "at least 0, got nan"),
        ({"check": True}, "a run under check has none; leave it out"),
        ({"kernel": "generic"}, "the kernel 'generic' has no configurations to tune; leave it out"),
    ],
)
def test_what_cannot_be_tuned_is_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        tuned(**options)


RANKS = """
import numpy as np
from test_tuning_run import LINE, LONG_S, N_CELLS, field
from controllers import Computation, reference_run
from hitmap.comm import default_communicator

comm = default_communicator()
for devices in ("cpu", ["cpu/1,1", "reference"][comm.rank]):
    with Computation(LINE, N_CELLS, devices=devices, tune=LONG_S) as run:
        run.scatter(field() if comm.rank == 0 else None)
        for n_steps in (40, 30):
            run.run(n_steps)
        whole, steps = run.gather(), run.report().steps
    if comm.rank == 0:
        print(np.array_equal(whole, reference_run(LINE, field(), 70, (False,))), steps)
"""


@pytest.mark.whole
def test_ranks_with_unlike_devices_make_the_same_steps() -> None:
    here = {"PYTHONPATH": f"{Path(__file__).parent}:{helpers_path()['PYTHONPATH']}"}
    job = run_ranks(2, RANKS, env=here)
    assert job.returncode == 0, job.stderr
    assert job.stdout.split() == ["True", "70"] * 2
