# SPDX-License-Identifier: MIT
"""Looks within a run: steps that go on meanwhile leave no trace where the run ends."""
from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi_jobs import helpers_path, run_ranks
from sample import sample

from controllers import Computation, Field, Program, Read, Stage
from controllers.program.fold import Fold
from controllers.program.reference import reference_steps
from hitmap import SerialCommunicator

STAR = ((-1, 1), (-1, 1))
EXTENT = (23, 17)
U = Read("u", (0, 0))
MEAN = (Read("u", (0, -1)) + Read("u", (0, 1)) + Read("u", (-1, 0)) + Read("u", (1, 0))) * 0.25
TOP = Fold("max", abs(MEAN - U))
RELAXING = Stage("relax", {"u": MEAN}, STAR, {"top": TOP})
RELAX = Program("relax", (Field("u", "float64"),), (RELAXING,))
OVER = Program(     # the second stage writes where a step begins
    "over", (Field("u", "float64"), Field("v", "float64")),
    (RELAXING, Stage("add", {"v": Read("v", (0, 0)) + U}, ((0, 0), (0, 0)))),
)  # fmt: skip
RANKS = """import numpy as np
from hitmap.comm import default_communicator
from test_looks import RELAX, ran, start
comm = default_communicator()
fields = start(RELAX)
with ran(RELAX, 2, comm=comm) as run, ran(RELAX, 3) as alone:
    for n in (7, 16, 40):
        for one in (run, alone):
            one.run(until=lambda now: now.step >= n, check_every=3, at_most=60)
        assert run.step == alone.step and run.top == alone.top
        whole = run.u.get()
        assert whole is None or np.array_equal(whole, alone.u.get())
    try:
        run.run(until=lambda now: 1 / 0, check_every=2, at_most=60)
    except (ZeroDivisionError, RuntimeError) as error:
        assert "division by zero" in str(error), error
    assert run.step == alone.step + 2
    alone.run(2)
    whole = run.u.get()
    assert whole is None or np.array_equal(whole, alone.u.get())
"""


def start(program: Program) -> dict[str, Any]:
    rng = np.random.default_rng(8)
    return {field.name: rng.random(EXTENT) for field in program.fields}


def ran(program: Program, n_places: int, device: str = "reference", **options: Any) -> Computation:
    if device == "apart":   # with memory of its own
        device, options["zero_copy"] = "cpu", False
    return Computation(
        program, EXTENT, devices=device, places_per_controller=n_places, init=start(program),
        **{"comm": SerialCommunicator(), **options},
    )  # fmt: skip


@pytest.mark.parametrize(
    "program, device, n_places, every",
    sample([*product((RELAX, OVER), ("apart", "cpu", "reference"), (2, 1, 3), (3, 1, 2, 5))], 100),
)
def test_no_step_beyond_the_end_is_seen(
    program: Program, device: str, n_places: int, every: int
) -> None:
    right = [*reference_steps(program, start(program), (False, False), n_steps=60)]
    with ran(program, n_places, device) as run:
        step, asked = 0, list[int]()
        for most in (1, 2 * every, 4, 3 * every + 1):
            first, end = step, step + most

            def enough(now: Any, end: int = end, asked: list[int] = asked) -> bool:
                assert now.top == right[now.step - 1].results["top"]
                asked.append(now.step)
                return bool(now.step >= end)

            found = run.run(until=enough, check_every=every, at_most=20)
            asks = [*range(first + every, first + 20, every)]
            asks = [n for n in asks if n - every < end] + [first + 20]
            asks = [n for n in asks if n <= next(n for n in asks if n >= end)]
            assert asked == asks
            step = asks[-1]
            asked.clear()
            assert (run.step, {**(found or {})}) == (step, right[step - 1].results)
            for name, cells in right[step - 1].fields.items():
                assert np.array_equal(run[name].get(), cells), name
        assert run.report().steps == step


def test_a_step_more_is_under_way_where_it_writes_elsewhere(tmp_path: Path) -> None:
    with ran(RELAX, 1, "cpu", trace=True) as run, ran(OVER, 1, "cpu") as over:
        assert run.plan.keeps_fields and not over.plan.keeps_fields
        (place,) = run._engine.places.values()
        run.run(until=lambda now: True, check_every=4, at_most=40)
        assert (run.step, place.step, run._engine.course.last) == (4, 4, 3)
        run.save_trace(tmp_path / "trace.json")     # knows nothing of the step that was dropped
        assert '"step": 4' not in (tmp_path / "trace.json").read_text("utf-8")
        (place,) = over._engine.places.values()
        over.run(until=lambda now: True, check_every=4, at_most=40)
        assert (over.step, place.step) == (4, 3)


@pytest.mark.whole
def test_ranks_drop_the_same_step() -> None:
    done = run_ranks(2, RANKS, env=helpers_path(Path(__file__).parent))
    assert done.returncode == 0, done.stderr
