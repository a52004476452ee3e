# SPDX-License-Identifier: MIT
"""The benchmark: turns, checks, who is left out, and what is written."""
from __future__ import annotations

import csv
import dataclasses
import json
import os
import runpy
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt
import pytest

from controllers.bench import Comparator, Problem, case, comparators_of, cores, host, run_case
from controllers.bench.host import NumPyLoop, PlainC
from controllers.bench.loops import Buffers, HandWritten
from controllers.bench.problem import STENCILS
from controllers.bench.results import COLUMNS
from controllers.bench.rounds import FEW_ROUNDS, ROUNDS, Entrant, interleaved, ratio
from controllers.cli import bench_options
from controllers.cli.main import main
from controllers.placement.placement import one_device
from controllers.program.reference import reference_run

ROOT = Path(__file__).parents[3]
SMALL = Problem("2d5a", "float64", (45, 70))


class Clock:
    """Entrants take as long as they say; what runs is noted."""

    def __init__(self) -> None:
        self.now, self.turns = 0.0, ""

    def entrant(self, name: str, step_s: float, n_at_once: int = 1) -> Entrant:
        def run(n_steps: int) -> None:
            assert n_steps % n_at_once == 0
            self.now += step_s * n_steps
            self.turns += name

        return Entrant(run, n_at_once, 2.0 * step_s)

    def __call__(self) -> float:
        return self.now


def test_entrants_take_turns_forwards_and_backwards() -> None:
    clock = Clock()
    entrants = [clock.entrant("A", 0.5), clock.entrant("B", 0.25, n_at_once=2)]
    times = interleaved(entrants, 14.0, clock)
    assert clock.turns.endswith("ABBA" * (ROUNDS // 2) + "AB")
    assert times == [[0.5] * ROUNDS, [0.25] * ROUNDS]
    assert ratio(*times) == 2


def test_a_slow_entrant_has_fewer_turns_and_at_least_one() -> None:
    clock = Clock()
    fast, slow = clock.entrant("F", 0.01), clock.entrant("S", 0.3, n_at_once=4)
    times = interleaved([fast, slow], 5.0, clock)
    assert [len(own) for own in times] == [ROUNDS, FEW_ROUNDS]
    assert [len(own) for own in interleaved([fast, slow], 0.2, clock)] == [ROUNDS, 1]


@pytest.mark.parametrize("name", STENCILS)
def test_weights_sum_to_the_factor_so_that_values_stay_below_one(name: str) -> None:
    stencil = STENCILS[name]
    assert sum(stencil.weights) == stencil.factor and min(stencil.weights) >= 0


def test_sampled_boxes_are_cells_of_the_whole_reference_run() -> None:
    whole = reference_run(SMALL.program, SMALL.initial.copy(), 3, (False, False))
    boxes = case.sampled(SMALL, 3)
    assert len(boxes) == 9
    for box, cells in boxes:
        assert np.array_equal(whole[box.slices((0, 0))], cells)


class Wrong(NumPyLoop):
    name = "wrong"

    def result(self) -> npt.NDArray[Any]:
        right = super().result().copy()
        right[20, 30] += 1e-9
        return right


class Near(NumPyLoop):
    name, exact = "near", False

    def result(self) -> npt.NDArray[Any]:
        return super().result() * (1 + 1e-15)


class Unable(Comparator):
    name = "unable"

    def prepare(self, problem: Problem) -> None:
        raise TypeError(f"no {problem.dtype} here")


@pytest.mark.whole
def test_only_who_is_right_takes_part() -> None:
    made = run_case(
        SMALL, "cpu", one_device("cpu"), 0.2, ("numpy",), [Wrong(), Near(), Unable()]
    )
    assert made.wrong == ("wrong",)
    right = [figure.contestant for figure in made.figures]
    assert right[0] == "controllers" and right[-2:] == ["NumPy", "near"]
    assert "unable is left out: no float64 here" in made.notes
    assert "wrong is left out: wrong by 1.0e-09" in made.notes
    errors = {figure.contestant: figure.error for figure in made.figures}
    assert errors["controllers"] == errors["NumPy"] == 0
    assert 0 < errors["near"] < 1e-14 > errors["controllers --math fast"] > 0
    assert made.base == "controllers" and "same bits" in made.table()


class SlowC(NumPyLoop):
    """A baseline that is kept waiting for longer than NumPy computes."""

    name = PlainC.name

    def run(self, n_steps: int) -> None:
        start = time.perf_counter()
        super().run(n_steps)
        time.sleep(4 * (time.perf_counter() - start))


@pytest.mark.whole
def test_a_baseline_that_is_slower_than_numpy_is_implausible_and_not_used() -> None:
    times = {"C with OpenMP": [2.0, 9.0, 2.0], "hand-written PyOpenCL": [1.0, 3.0], "NumPy": [1.0]}
    assert [*case.implausible(times)] == ["C with OpenMP"]
    assert case.implausible({**times, "C with OpenMP": [0.5]}) == {}
    assert case.implausible({"C with OpenMP": [2.0]}) == {}
    made = run_case(SMALL, "cpu", one_device("cpu"), 0.2, ("numpy",), [SlowC()])
    assert made.base == "controllers" and made.implausible == (PlainC.name,)
    assert made.as_dict()["implausible"] == (PlainC.name,)
    head, *_, note = made.table().splitlines()
    assert head.endswith("speed relative to controllers")
    assert note.startswith("C with OpenMP is implausible, 0.")


def test_threads_of_c_do_not_spin_and_are_as_many_as_cores_are_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loaded = []

    def load(path: str) -> object:
        loaded.append({name: os.environ.get(name) for name in host.WAITING})
        return real(path)

    real = host.ctypes.CDLL
    monkeypatch.setattr(host.ctypes, "CDLL", load)
    monkeypatch.setattr(host, "free_cores", lambda: 3)
    before = dict(os.environ)
    plain = PlainC()
    plain.prepare(SMALL)
    plain.run(3)
    right = reference_run(SMALL.program, SMALL.initial.copy(), 3, (False, False))
    assert np.allclose(plain.result(), right, rtol=1e-14)
    assert loaded == [host.WAITING] and host.WAITING["OMP_WAIT_POLICY"] == "passive"
    assert dict(os.environ) == before
    assert plain.configuration.endswith("-fopenmp, 3 threads")
    text = host.c_source(SMALL.program, SMALL.domain, SMALL.box, 3)
    assert text.count("#pragma omp parallel for num_threads(3)") == 1


def test_cores_are_free_while_the_kernel_counts_them_as_idle(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 2, 3})
    for idle_s, free in ((0.0, 1), (0.7, 1), (2.1, 2), (3.1, 3), (3.9, 3)):
        moments, counted = iter([10.0, 11.0]), iter([500.0, 500.0 + idle_s])
        clock = SimpleNamespace(sleep=lambda _: None, monotonic=lambda at=moments: next(at))
        monkeypatch.setattr(cores, "time", clock)
        monkeypatch.setattr(cores, "idle_s", lambda *_, at=counted: next(at))
        assert cores.free_cores() == free
    clock = SimpleNamespace(sleep=lambda _: None, monotonic=lambda: 10.0)
    monkeypatch.setattr(cores, "time", clock)
    monkeypatch.setattr(cores, "idle_s", lambda *_: 0.0)    # as in containers that hide it
    assert cores.free_cores() == 3
    monkeypatch.setattr(cores, "_STAT", tmp_path / "nowhere")
    assert cores.free_cores() == 3


def test_comparators_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        "from controllers.bench.host import NumPyLoop\n"
        "class Mine(NumPyLoop):\n    name = 'mine'\n"
        "COMPARATORS = (Mine(),)\n"
    )
    (mine,) = comparators_of(path)
    assert mine.name == "mine"
    faults = {"import nowhere": "nowhere", "x = 1": "no tuple", "(": "Syntax", "1 / 0": "by zero"}
    for text, wrong in faults.items():
        path.write_text(text + "\n")
        with pytest.raises(ValueError, match=wrong):
            comparators_of(path)


def test_the_options_know_what_the_benchmark_knows() -> None:
    assert tuple(STENCILS) == bench_options.STENCILS
    assert bench_options.AGAINST == case.AGAINST


@pytest.mark.whole
def test_the_command_measures_prints_and_writes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {kind: tmp_path / f"out.{kind}" for kind in ("json", "csv", "png")}
    words = ["--quick", "--seconds=0.1", "--stencils=2d5a", "--device=cpu", "--sizes=30x40,9x9x9"]
    words += [f"--{kind}={path}" for kind, path in files.items() if kind != "png"]
    assert main(["bench", *words, f"--picture={files['png']}"]) == 0
    printed = capsys.readouterr().out
    assert "2d5a float32 30 x 40 on " in printed and "strategy 'cell'" in printed
    (made,) = json.loads(files["json"].read_text())["cases"]
    names = [figure["contestant"] for figure in made["figures"]]
    assert {"controllers", "controllers --math fast", "NumPy"} < {*names}
    assert {"one-cell kernel", "hand-written PyOpenCL", "C with OpenMP"} < {*names}
    assert all(figure["cell_steps_per_s"] > 0 for figure in made["figures"])
    assert made["copy_bytes_per_s"] > 0 and not made["wrong"]
    with files["csv"].open(newline="") as file:
        rows = [*csv.DictReader(file)]
    assert tuple(rows[0]) == COLUMNS and [row["contestant"] for row in rows] == names
    assert files["png"].read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--stencils 2d4,2d5", "2d5"),
        ("--dtypes int32", "int32"),
        ("--sizes 100x", "4096x4096"),
        ("--sizes 9x9x9 --stencils 2d4 --device cpu", "2 axes"),
        ("--seconds 0", "over 0"),
        ("--device reference", "cpu/1"),
        ("--device cpu/1,1", "cpu/1"),
        ("--with nowhere.py", "nowhere.py"),
        ("--picture bars.txt", "--picture bars.txt"),
        ("--csv /nowhere/at/all.csv", "--csv /nowhere"),
    ],
)
def test_what_cannot_be_used_is_refused(
    words: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", *words.split()]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("controllers: error: ") and said in line


def tool(name: str, *words: object) -> int:
    """The exit code of a tool, which runs in this process."""
    path = str(ROOT / "tools" / name)
    with mock.patch.object(sys, "argv", [path, *map(str, words)]):
        try:
            runpy.run_path(path, run_name="__main__")
        except SystemExit as end:
            return int(end.code or 0)
    return 0


def test_a_loss_between_commits_is_flagged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    history = tmp_path / "history.csv"
    row = dict.fromkeys(COLUMNS, "x")
    speeds = {"a": (1.0, 2.0), "b": (0.8, 2.1), "c": (0.8, 1.7)}
    for commit, (of_copy, speed) in speeds.items():
        results = tmp_path / f"{commit}.csv"
        with results.open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            for name in ("controllers", "NumPy"):
                more = {"contestant": name, "of_copy": of_copy, "ratio": speed}
                writer.writerow(row | more)
        assert tool("record_bench.py", results, "--commit", commit, "--history", history) == 0
    assert len(history.read_text().splitlines()) == 1 + 2 * len(speeds)
    for pair, code in (("ab", 0), ("ac", 1), ("bc", 0), ("ax", 2)):
        assert tool("compare_bench.py", *pair, "--history", history) == code
    assert tool("compare_bench.py", tmp_path / "a.csv", tmp_path / "c.csv") == 1
    # relative to something else: only the copy counts
    lines = (tmp_path / "b.csv").read_text().splitlines()
    other = dict(zip(COLUMNS, lines[1].split(","))) | {"base": "another"}
    (tmp_path / "d.csv").write_text(f"{lines[0]}\n{','.join(other.values())}\n")
    capsys.readouterr()
    assert tool("compare_bench.py", tmp_path / "a.csv", tmp_path / "d.csv") == 1
    assert "another base" in capsys.readouterr().out
    assert tool("record_bench.py", history, "--commit", "d") == 2


def test_the_hand_written_kernel_for_gpus_has_the_same_bits() -> None:
    device = dataclasses.replace(one_device("cpu"), kind="gpu")
    for problem in (SMALL, Problem("3d7", "float32", (9, 13, 21))):
        loop = HandWritten(Buffers(device, problem))
        loop.prepare(problem)
        loop.run(3)
        periodic = (False,) * len(problem.extent)
        right = reference_run(problem.program, problem.initial.copy(), 3, periodic)
        assert np.array_equal(loop.result(), right)
