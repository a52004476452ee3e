# SPDX-License-Identifier: MIT
"""Fused stages that fold: the fields and results of the reference, on any places."""
from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from engine_runs import compare, fill, layout_of, locations_of
from fusable_folds import FoldCase, fold_case
from random_boundaries import same
from sample import cases, sample
from small_kernels import opencl

from controllers.device import reference_device
from controllers.engine import Engine
from controllers.executor.executor import Executor
from controllers.executor.reference import ReferenceExecutor
from controllers.kernel.choices import Choices
from controllers.kgt.choice import choose, config_of
from controllers.kgt.strategies.cell import CellConfig
from controllers.plan import Plan
from controllers.program.expression import Constant
from controllers.program.fold import Fold
from controllers.program.fusion import fused
from controllers.program.program import Field, Program, Stage
from controllers.program.storing import with_temporaries
from controllers.program.structure import structure
from hitmap import SerialCommunicator

N_PLACES = (1, 2, 3, 4, 5)


@pytest.mark.parametrize("number", cases(5, 120))
def test_all_numbers_of_places_give_the_results_of_the_reference(number: int) -> None:
    right, rng = fold_case(number), random.Random(number)
    program = with_temporaries(fused(right.case.program), "always" if number % 3 else "auto")
    one: Executor = ReferenceExecutor(reference_device())
    for n_places in N_PLACES if number > 4 else (N_PLACES[number % 5],):
        check(right, program, [one] * n_places, rng)


@pytest.mark.parametrize("number", sample(range(60), 60))
def test_pocl_gives_the_results_of_the_reference(number: int) -> None:
    right, rng = fold_case(number), random.Random(number)
    pocl = opencl(bool(number % 2), "cpu")
    pocl.choices = Choices(pocl.device)     # others have had it
    devices: list[Executor] = [pocl, ReferenceExecutor(reference_device())]
    executors = [rng.choice(devices) for _ in range(1 + number % 5)]
    check(right, fused(right.case.program), executors, rng)


def test_a_stage_that_folds_numbers_alone_is_known_by_where_it_lies() -> None:
    fields = Field("u", "float32"), Field("v", "float64")
    texts = {
        structure(Program("p", fields, (stage,)), stage)
        for stage in (Stage("s", {}, ((0, 0),), {"n": Fold("sum", Constant(1))}, name)
                      for name in "uv")
    }  # fmt: skip
    assert len(texts) == 2


def test_numbers_alone_are_not_folded_by_rows() -> None:
    stage = Stage("s", {}, ((0, 0),), {"n": Fold("sum", Constant(1))}, "u")
    program = Program("p", (Field("u", "float32"),), (stage,))
    assert isinstance(choose(program, stage, "cpu"), CellConfig)
    with pytest.raises(ValueError, match="in a way that the strategy 'rows' does not write"):
        config_of("rows", program, stage)


def check(
    right: FoldCase, program: Program, executors: Sequence[Executor], rng: random.Random
) -> None:
    case, layout = right.case, layout_of(right.case, len(executors), rng)
    locations = locations_of(executors)
    plan = Plan(program, layout, case.periodic, locations, overlap=rng.choice(["on", "off"]))
    engine = Engine(plan, dict(enumerate(executors)), SerialCommunicator())
    fill(engine, case.arrays)
    engine.run(case.n_steps)
    for field, values in right.right.fields.items():
        compare(engine, field, values)
    assert [*engine.folds.results] == [*right.right.results]
    for name, value in engine.folds.results.items():
        assert alike(value, right.right.results[name]), name
    engine.close()


def alike(one: Any, other: Any) -> bool:
    return type(one) is type(other) and same(np.asarray(one), np.asarray(other))
