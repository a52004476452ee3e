# SPDX-License-Identifier: MIT
"""Random programs that fold: on any number of places, the fields and results of the reference."""
from __future__ import annotations

import random
from itertools import product

import pytest
from engine_runs import check_engine, layout_of
from fold_programs import N_CASES, random_folds
from random_options import choices
from sample import sample
from small_kernels import of_strategy

from controllers.check import CheckedEngine
from controllers.device import reference_device
from controllers.executor.executor import Executor
from controllers.executor.reference import ReferenceExecutor
from controllers.program.program import Program
from controllers.program.storing import with_temporaries

N_PLACES = (1, 2, 3, 5, 7)


def planned(number: int) -> Program:
    storing = choices()[number]["stored"]
    return with_temporaries(
        random_folds(number).program, "auto" if storing == "none" else storing
    )


@pytest.mark.whole
def test_the_cases_are_of_all_kinds() -> None:
    folds = [fold for n in range(N_CASES) for _, fold in random_folds(n).program.folds.values()]
    assert {fold.kind for fold in folds} == {"sum", "min", "max", "argmin", "argmax", "any", "all"}
    assert any(fold.over is not None for fold in folds)
    stages = [stage for n in range(N_CASES) for stage in random_folds(n).program.stages]
    assert any(not stage.updates for stage in stages)
    assert any(stage.updates and stage.folds for stage in stages)


@pytest.mark.parametrize(("number", "n_places"), sample(product(range(N_CASES), N_PLACES), 150))
def test_all_numbers_of_places_give_the_results_of_the_reference(
    number: int, n_places: int
) -> None:
    case, rng = random_folds(number), random.Random(1000 * number + n_places)
    one = ReferenceExecutor(reference_device())
    separate: list[Executor] = [ReferenceExecutor(reference_device()) for _ in range(n_places)]
    executors, layout = rng.choice([[one] * n_places, separate]), layout_of(case, n_places, rng)
    check_engine(case, executors, layout, program=planned(number))


@pytest.mark.whole
@pytest.mark.parametrize(
    ("number", "n_places"), [(n, N_PLACES[(n + k) % 5]) for n in range(N_CASES) for k in (0, 2)]
)
def test_pocl_gives_the_results_of_the_reference(number: int, n_places: int) -> None:
    case, chosen = random_folds(number), choices()[number]
    rng = random.Random(1000 * number + n_places)
    devices = of_strategy(chosen["strategy"], number)
    executors: list[Executor] = [rng.choice(devices) for _ in range(n_places)]
    check_engine(case, executors, layout_of(case, n_places, rng), program=planned(number))


@pytest.mark.parametrize("number", sample(range(N_CASES), 60))
def test_the_checked_mode_raises_no_alarm(number: int) -> None:
    case, rng = random_folds(number), random.Random(number)
    one = ReferenceExecutor(reference_device())
    executors: list[Executor] = [one, one, ReferenceExecutor(reference_device())]
    layout = layout_of(case, 3, rng)
    check_engine(case, executors, layout, CheckedEngine, program=planned(number))
