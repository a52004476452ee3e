# SPDX-License-Identifier: MIT
"""Estimates are near what executions take, and what is kept of them cannot be spoilt."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import median

import numpy as np
import pytest
from mpi_jobs import helpers_path
from sample import sample
from simulated_tasks import SHAPES, SimulatedTask, drawn_case, executions

from controllers.device import reference_device
from controllers.estimates.device_rates import LEAST_POINTS, guessed
from controllers.estimates.estimates import Estimates, estimates_folder
from controllers.estimates.history import AGE_S, MOST_CASES, NEWEST, History, history_from
from controllers.estimates.task_key import Case, TaskKey, Work, units_of

KEY = TaskKey("scale", "numpy", "a device", "a driver 1")
N = 20              # executions that have to be enough
# of a GPU, and of a CPU that others use, too: scatter of executions, limits of errors
MACHINES = {"gpu": (0.01, 0.01, 0.03), "busy cpu": (0.05, 0.05, 0.08)}
TRIALS = 100


def learnt(
    shape: str, noise: float, seed: int, n_sizes: int
) -> tuple[Estimates, SimulatedTask, list[Case]]:
    rng = np.random.default_rng(seed)
    task = SimulatedTask.drawn(shape, rng)
    cases = [drawn_case(shape, rng) for _ in range(n_sizes)]
    estimates = Estimates(None)
    for case, seconds in executions(N, lambda n: cases[n % n_sizes], task, noise, rng):
        estimates.add(KEY, case, seconds)
    return estimates, task, cases


def errors(shape: str, machine: str, n_sizes: int, n_trials: int) -> Iterator[tuple[float, bool]]:
    """Of next executions that nothing disturbs, and whether they lie in the interval."""
    noise = MACHINES[machine][0]
    for seed in range(n_trials):
        estimates, task, cases = learnt(shape, noise, seed, n_sizes)
        rng = np.random.default_rng(1000 + seed)
        case = cases[0] if n_sizes == 1 else drawn_case(shape, rng)
        found = estimates.estimate(KEY, case)
        assert found is not None
        assert found.source == ("history" if n_sizes == 1 else "regression")
        took = task.seconds(case) * np.exp(noise * rng.normal())
        yield abs(found.seconds / took - 1), found.least_s <= took <= found.most_s


@pytest.mark.parametrize("machine", MACHINES)
def test_known_sizes_are_foreseen_by_their_executions(machine: str) -> None:
    for shape in SHAPES:
        found = [*errors(shape, machine, 1, TRIALS)]
        assert median(error for error, _ in found) <= MACHINES[machine][1]
        assert sum(inside for _, inside in found) >= 0.75 * TRIALS


@pytest.mark.parametrize(
    ("shape", "machine", "n_sizes"), sample(product(SHAPES, MACHINES, [5, N]), 5)
)
def test_new_sizes_are_foreseen_by_others(
    shape: str, machine: str, n_sizes: int, request: pytest.FixtureRequest
) -> None:
    n_trials = TRIALS if request.config.getoption("whole") else TRIALS // 5
    found = [*errors(shape, machine, n_sizes, n_trials)]
    assert median(error for error, _ in found) <= MACHINES[machine][2]
    assert sum(inside for _, inside in found) >= 0.7 * n_trials


def test_few_executions_are_estimates_that_say_how_unsure_they_are() -> None:
    estimates = Estimates(None)
    assert estimates.estimate(KEY, Case(100)) is None
    estimates.add(KEY, Case(100), 2.0)
    same, twice, far = (estimates.estimate(KEY, Case(n)) for n in (100, 200, 6400))
    assert same is not None and twice is not None and far is not None
    assert (same.seconds, twice.seconds, far.seconds) == pytest.approx((2, 4, 128))
    widths = [one.most_s / one.seconds for one in (same, twice, far)]
    assert widths == sorted(widths) and widths[0] >= 1.5 and widths[2] > 2 * widths[0]
    empty = Case(0)
    estimates.add(KEY, empty, 0.0)      # what takes no time takes what a clock can tell
    found = estimates.estimate(KEY, empty)
    assert found is not None and found.seconds > 0


def test_sizes_that_are_nearly_equal_say_nothing_on_how_time_grows() -> None:
    rng = np.random.default_rng(1)
    estimates = Estimates(None)
    for n in range(1000, 1020):
        estimates.add(KEY, Case(n), 5.0 * np.exp(0.05 * rng.normal()))
    found = estimates.estimate(KEY, Case(4000))
    assert found is not None and found.seconds == pytest.approx(20, rel=0.05)


def test_a_device_that_has_become_another_is_followed() -> None:
    estimates = Estimates(None)
    for seconds in [1.0] * 100 + [2.0] * (NEWEST // 2 + 1):
        estimates.add(KEY, Case(1), seconds)
    found = estimates.estimate(KEY, Case(1))
    assert found is not None and found.seconds == 2.0


def test_new_tasks_are_foreseen_by_what_they_move_and_compute() -> None:
    estimates = Estimates(None)
    work, case = Work(nbytes=1e8, operations=1e9), Case(5.0)
    assert estimates.estimate(KEY, case, work) is None
    guess = estimates.estimate(KEY, case, work, guessed(reference_device()))
    assert guess is not None and guess.source == "class" and guess.most_s > 3 * guess.seconds
    rng = np.random.default_rng(3)
    for number in range(10):
        done = Work(*(10 ** rng.uniform(6, 9, 2)))
        seconds = 1e-4 + done.nbytes / 1e10 + done.operations / 1e11
        other = replace(KEY, task=f"task {number}")
        estimates.add(other, Case(1), seconds * (10 if number == 4 else 1), done)
    estimates.add(replace(KEY, device="another"), Case(1), 1e3, work)
    found = estimates.estimate(KEY, case, work)
    assert found is not None and found.source == "rates"
    assert found.seconds == pytest.approx(1e-4 + 1e-2 + 1e-2, rel=1e-6)
    estimates.add(KEY, case, 0.5, work)
    found = estimates.estimate(KEY, case, work)
    assert found is not None and (found.seconds, found.source) == (0.5, "regression")


def test_parts_of_a_cpu_are_units_of_one_device() -> None:
    cpu = replace(reference_device(), kind="cpu", compute_units=8, name="a CPU")
    part = cpu.divided((2, 6), 1)
    assert TaskKey.of("t", "v", part).of_all == TaskKey.of("t", "v", cpu)
    assert str(TaskKey.of("t", "v", part)) == "t (v) on a CPU, cores 2 to 7"
    assert TaskKey.of("t", "v", cpu.divided((2, 3, 3), 1)) != TaskKey.of("t", "v", part)
    assert (units_of(cpu), units_of(part)) == (8, 6)
    assert units_of(replace(cpu, kind="gpu")) == 1
    second = replace(cpu, kind="gpu", number=1)
    assert TaskKey.of("t", "v", second).place == "a CPU, number 1"


def test_a_slow_part_is_told_apart_and_knows_what_all_parts_know(tmp_path: Path) -> None:
    swift, slow, new = (replace(KEY, which=which) for which in ("cores 0", "cores 1", "cores 2"))
    estimates, sizes = Estimates(tmp_path), [Case(n) for n in (100, 200, 300, 400)]
    for case in sizes:      # in all, as a device without parts has left it
        for _ in range(9):
            estimates.add(KEY, case, 1.0 + 0.01 * case.size)

    def seconds(key: TaskKey, case: Case) -> float:
        found = estimates.estimate(key, case)
        assert found is not None and found.least_s < found.seconds < found.most_s
        return found.seconds

    assert estimates.knows(new) and not estimates.knows(replace(new, task="another"))
    for _ in range(3):
        estimates.add(swift, sizes[0], 2.0)
        assert seconds(slow, sizes[3]) == pytest.approx(5.0)    # too little is known of it
    for _ in range(3):
        estimates.add(slow, sizes[0], 6.0)
    estimates.keep()
    estimates = Estimates(tmp_path)
    assert seconds(swift, sizes[0]) == 2.0 and seconds(slow, sizes[0]) == 6.0
    assert seconds(slow, sizes[3]) == pytest.approx(15.0)       # which it has never done
    assert seconds(swift, sizes[3]) == seconds(new, sizes[3]) == pytest.approx(5.0)
    for case in sizes[1:3]:     # its own sizes are enough, whatever others have done
        estimates.add(slow, case, 0.06 * case.size)
    assert seconds(slow, sizes[3]) == pytest.approx(24.0)


def test_times_of_parts_count_once_for_the_rates_of_the_device() -> None:
    estimates, work = Estimates(None), Work(1e6, 1e6)
    for number in range(LEAST_POINTS):
        part = replace(KEY, task=f"task {number}", which=f"cores {number % 2}")
        estimates.add(part, Case(1), 1.0, work)
    rates = estimates.rates(KEY.device, KEY.driver)
    assert rates is not None and rates.n_points == LEAST_POINTS


def test_what_is_kept_is_found_by_the_next_process_and_its_age_counts(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    first = Estimates(folder, lambda: 1000.0)
    for n in range(MOST_CASES + 3):
        first.add(KEY, Case(n, 2), 1.0 + n, Work(8.0 * n, n))
    for _ in range(NEWEST + 5):
        first.add(KEY, Case(40, 2), 7.0)
    assert not folder.exists()
    first.keep()
    second = Estimates(folder, lambda: 2000.0)
    ((key, history),) = second.all()
    assert key == KEY and len(history.cases) == MOST_CASES
    times = history.cases[Case(40, 2)]
    assert times.seconds == [7.0] * NEWEST and times.count == NEWEST + 5
    assert history.cases[Case(34, 2)].work == Work(272.0, 34.0)
    assert second.estimate(KEY, Case(40, 2)) == first.estimate(KEY, Case(40, 2))
    assert [*Estimates(folder, lambda: 1001.0 + AGE_S).all()] == [], "too old"
    assert [*Estimates(folder, lambda: 0.0 - AGE_S).all()] == [], "of the future"
    second.forget(KEY)
    assert [*second.all()] == [*Estimates(folder, lambda: 2000.0).all()] == []


def test_ages_are_of_executions() -> None:
    history = History()
    history.add(Case(1), 9.0, when=0.0)
    history.add(Case(1), 1.0, when=AGE_S)
    _, later = history_from(history.as_json(KEY), AGE_S + 10)
    assert later.cases[Case(1)].seconds == [1.0] and later.cases[Case(1)].count == 2


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), 1e9])
def test_what_no_execution_takes_is_refused(seconds: float) -> None:
    estimates = Estimates(None)
    with pytest.raises(ValueError, match="takes 1e-09 to 1e.08 s, got .*only go forwards"):
        estimates.add(KEY, Case(1), seconds)
    for case in (Case(-1), Case(float("nan")), Case(1, 0)):
        with pytest.raises(ValueError, match="at least 1 unit"):
            estimates.add(KEY, case, 1.0)
    assert [*estimates.all()] == []


def _good(**changed: object) -> bytes:
    row = {"size": 5, "units": 1, "nbytes": 0, "operations": 0, "count": 1, "executions": [[1, 2]]}
    words = ["scale", "numpy", "a device", "a driver 1"]
    return json.dumps({"key": changed.pop("key", words), "cases": [{**row, **changed}]}).encode()


POISONED = [
    b"", b"7", b"[]", b"{}", b"[" * 100_000, b"\xff\xfe", b'{"key": 3, "cases": []}',
    _good(key=["a", "b", "c"]), _good(key=["scale", "numpy", "a device", 1]),
    _good(key=["another", "numpy", "a device", "a driver 1"]),
    _good(size="5"), _good(size=-1), _good(size=float("nan")), _good(size=10**400),
    _good(size=True),
    _good(units=0), _good(units=1.5), _good(units=True), _good(nbytes=float("inf")),
    _good(operations=-1), _good(count="1"), _good(executions=7), _good(executions={"1": 2}),
    _good(executions=[[1]]), _good(executions=[[1, 2, 3]]), _good(executions=[[1, 0]]),
    _good(executions=[[1, -2]]), _good(executions=[[1, float("nan")]]),
    _good(executions=[[1, float("inf")]]), _good(executions=[["1", 2]]),
    _good(executions=[[float("nan"), 2]]), _good(executions=[[1, 2], [1, 1e300]]),
]  # fmt: skip


@pytest.mark.parametrize("content", POISONED, ids=lambda content: repr(content[:90]))
def test_a_poisoned_file_is_a_miss_and_is_replaced(content: bytes, tmp_path: Path) -> None:
    estimates = Estimates(tmp_path, lambda: 1.0)
    assert estimates._entries is not None
    parts = ("times 1", KEY.task, KEY.variant, KEY.device, KEY.driver)
    estimates._entries.store(parts, _good())
    assert [*Estimates(tmp_path, lambda: 1.0).history(KEY).cases] == [Case(5)], "the good one"
    estimates._entries.store(parts, content)
    assert estimates.estimate(KEY, Case(5)) is None
    assert all(key.task == "another" for key, _ in estimates.all())
    estimates.add(KEY, Case(5), 3.0)
    estimates.keep()
    assert Estimates(tmp_path, lambda: 1.0).history(KEY).cases[Case(5)].seconds == [3.0]


def test_a_damaged_file_is_a_miss(tmp_path: Path) -> None:
    estimates = Estimates(tmp_path)
    for _ in range(5):
        estimates.add(KEY, Case(5), 3.0)
    estimates.keep()
    (path,) = tmp_path.glob("*.times")
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(50):
        damaged = bytearray(content)
        damaged[rng.integers(len(content))] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        assert Estimates(tmp_path).estimate(KEY, Case(5)) is None
        path.write_bytes(content[: rng.integers(len(content))])
        assert Estimates(tmp_path).estimate(KEY, Case(5)) is None
    path.write_bytes(content)
    assert Estimates(tmp_path).estimate(KEY, Case(5)) is not None


def test_where_nothing_can_be_kept_all_is_known_until_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("no folder")
    estimates = Estimates(tmp_path / "file")
    for _ in range(3):
        estimates.add(KEY, Case(5), 3.0)
    estimates.keep()
    assert "no times are kept" in caplog.text
    found = estimates.estimate(KEY, Case(5))
    assert found is not None and found.seconds == 3.0
    monkeypatch.setenv("CONTROLLERS_ESTIMATES", "OFF")
    assert estimates_folder() is None
    Estimates.of_user().keep()
    monkeypatch.setenv("CONTROLLERS_ESTIMATES", str(tmp_path))
    assert estimates_folder() == tmp_path


WRITER = """
import sys
from pathlib import Path
from controllers.estimates.estimates import Estimates
from controllers.estimates.task_key import Case, TaskKey

number, n_times = int(sys.argv[2]), int(sys.argv[3])
estimates = Estimates(Path(sys.argv[1]))
key = TaskKey("scale", "numpy", "a device", "a driver 1")
for n in range(n_times):
    estimates.add(key, Case(number), 1.0 + n)
    estimates.add(key, Case(1000), 5.0)
    estimates.keep()
    known = Estimates(Path(sys.argv[1])).history(key).cases[Case(number)]
    assert known.count == n + 1, known      # whoever writes at the same time
"""


@pytest.mark.parametrize("n_processes", sample([3, 8], 2))
def test_many_processes_write_at_once(n_processes: int, tmp_path: Path) -> None:
    n_times = NEWEST - 2
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    jobs = [
        subprocess.Popen([*command, str(n), str(n_times)], stderr=subprocess.PIPE, text=True,
                         env={**os.environ, **helpers_path()})
        for n in range(n_processes)
    ]  # fmt: skip
    told = [job.communicate(timeout=300)[1] for job in jobs]
    assert [job.returncode for job in jobs] == [0] * n_processes, told
    ((key, history),) = Estimates(tmp_path).all()
    assert key == KEY
    for n in range(n_processes):
        assert sorted(history.cases[Case(n)].seconds) == [1.0 + n for n in range(n_times)]
    assert history.cases[Case(1000)].count == n_processes * n_times
