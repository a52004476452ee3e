# SPDX-License-Identifier: MIT
"""Stages in one sweep, on any places and devices and by all strategies: the same bits."""
from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from engine_runs import check_engine, check_orders, layout_of
from fusable_programs import fusable_program, fused_number
from random_boundaries import same
from random_options import N_CASES
from sample import cases, sample
from small_kernels import FirstThatSuits, opencl

import controllers as ct
from controllers.check import CheckedEngine
from controllers.device import reference_device
from controllers.engine import Engine
from controllers.executor.executor import Executor
from controllers.executor.reference import ReferenceExecutor
from controllers.program.fusion import fused
from controllers.program.storing import with_temporaries
from controllers.run.dry_run import dry_run

GRID = ct.Grid(y=8, x=9, boundary="periodic")
STRATEGIES = ("cell", "rows", "marching")
N_FUSED = 170       # of all cases


# of those whose scalars stay the same
@pytest.mark.parametrize("number", sample(range(1, 2 * N_CASES, 2), 40))
def test_every_order_that_a_plan_allows_gives_the_bits_of_the_reference(number: int) -> None:
    case = fusable_program(number)
    made = with_temporaries(fused(case.program), "always" if number % 3 else "auto")
    for n_places in (1, 2, 3, 5):
        check_orders(case, n_places, random.Random(1000 * number + n_places), made)


@pytest.mark.parametrize("position", cases(2, N_FUSED))
def test_pocl_and_the_reference_give_the_same_bits(position: int) -> None:
    number = fused_number(position)
    case, rng = fusable_program(number), random.Random(number)
    made = fused(case.program)
    pocl = opencl(bool(number % 2), "cpu")
    pocl.choices = FirstThatSuits(pocl.device, STRATEGIES[number % 3], number // 3)
    devices: list[Executor] = [pocl, pocl, ReferenceExecutor(reference_device())]
    executors = [rng.choice(devices) for _ in range(rng.choice([1, 2, 3, 5]))]
    layout = layout_of(case, len(executors), rng)
    kind = CheckedEngine if number % 5 == 4 else Engine
    check_engine(case, executors, layout, kind, program=made)


def test_explain_says_what_is_fused_and_the_option_keeps_stages_apart() -> None:
    @ct.step
    def push(u: Any, v: Any) -> Any:
        return dict(v=v + 0.1 * ct.laplacian(u))

    @ct.step
    def move(u: Any, v: Any) -> Any:
        return dict(u=u + v)

    text = str(dry_run([push, move, push], GRID, 2))
    for line in (
        "  stage push_move",
        "  push_move: one sweep for push, move, which moves 32 instead of 48 bytes per cell",
        "  push: not in one sweep with push_move, since it reads u at (-1, 0)",
    ):
        assert line in text.splitlines(), text
    apart = dry_run([push, move], GRID, 2, execution=ct.Execution(fuse="never")).plan
    assert [sweep.name for sweep in apart.sweeps] == ["push", "move"]
    start = np.random.default_rng(1).random(GRID.shape)
    found: list[Any] = []
    for fuse in ("auto", "never"):
        options: Any = {"devices": "reference", "places_per_controller": 3, "fuse": fuse}
        with ct.Computation([push, move], GRID, u=start, v=0, **options) as run:
            run.run(3)
            found.append((np.asarray(run.u), np.asarray(run.v), len(run.plan.sweeps)))
    (u, v, n_fused), (other_u, other_v, n_apart) = found
    assert same(u, other_u) and same(v, other_v) and (n_fused, n_apart) == (1, 2)
