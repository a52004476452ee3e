# SPDX-License-Identifier: MIT
"""Fast arithmetic is near the exact result, is asked for by name, and is told of."""
from __future__ import annotations

import json
import math
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sample import cases, sample

from controllers import Computation, stencil_computation
from controllers.cli.main import main
from controllers.kgt import STRATEGIES, generate
from controllers.kgt.__main__ import main as kgt
from controllers.kgt.choice import config_of
from controllers.kgt.text.fast import stage_of
from controllers.kgt.text.fold_values import with_values
from controllers.language.weights import Stencil
from controllers.program.expression import Application, Constant, Expression, Read, count
from controllers.program.fold import Fold
from controllers.program.program import Field, Program, Stage
from controllers.program.reference import reference_run
from controllers.run.dry_run import dry_run

SHAPE = [(-1, 1), (-1, 1)]
WEIGHTS = [1, 4, 1, 4, 20, 4, 1, 4, 1]
COMPACT = Stencil.of("compact", SHAPE, WEIGHTS, 40)


def fast_expression(stencil: Stencil, dtype: str = "float32") -> Expression:
    program = stencil.program(dtype).with_math("fast")
    return stage_of(program, program.stages[0]).expression


def run(program: Program, field: npt.NDArray[Any], n_steps: int, **options: Any) -> Any:
    with Computation(program, field.shape, devices="cpu", **options) as computation:
        computation.scatter(field)
        computation.run(n_steps)
        return computation.gather(), computation.report(), computation.explain()


@pytest.mark.whole
@pytest.mark.parametrize("seed", cases(1, 3))
@pytest.mark.parametrize("dtype", sample(["float32", "float64"], 2))
def test_the_error_stays_within_a_few_roundings_per_term(dtype: str, seed: int) -> None:
    rng = random.Random(seed)
    weights = [rng.choice([0, 1, -2, 0.3, 1 / 7]) for _ in range(9)]
    weights[4] = 1.5
    stencil = Stencil.of("s", SHAPE, weights, rng.choice([4, 6.5, -3, 1]))
    field = np.random.default_rng(seed).random((37, 150)).astype(dtype)
    result, _, _ = run(stencil.program(dtype), field, 1, math="fast")
    exact = reference_run(
        stencil.program("float64"), field.astype("float64"), 1, (False, False)
    )
    most = sum(map(abs, weights)) / abs(stencil.factor)     # of a value: the field is below 1
    assert np.abs(result - exact).max() <= 2 * len(weights) * np.finfo(dtype).eps * most


def test_weights_are_divided_beforehand_in_the_dtype_of_the_field() -> None:
    expression = fast_expression(COMPACT)
    assert count(expression) == {"*": 9, "+": 8}
    first = expression
    while isinstance(first, Application) and first.symbol == "+":
        first = first.left
    assert isinstance(first, Application)
    assert first.left is Constant(float(np.float32(1) / np.float32(40)))
    assert first.right is Read("u", (-1, -1))


def test_equal_weights_are_one_product_after_the_sum() -> None:
    mean = Stencil.of("mean", SHAPE, [0, 1, 0, 1, 0, 1, 0, 1, 0], 3)
    assert count(fast_expression(mean)) == {"*": 1, "+": 3}


def test_a_weight_that_becomes_one_makes_no_product() -> None:
    assert count(fast_expression(Stencil.of("s", [(-1, 1)], [3, 6, 1], 3)))["*"] == 2


@pytest.mark.parametrize("factor", [1e38, 1e-38])
def test_a_division_stays_where_a_constant_would_leave_the_range(factor: float) -> None:
    stencil = Stencil.of("s", [(-1, 1)], [5, 1e-3, 3e3], factor)
    assert count(fast_expression(stencil))["/"] == 1


def test_other_expressions_lose_the_divisions_by_constants_alone() -> None:
    u, v = Read("u", (0,)), Read("v", (0,))
    for expression, left in (((u * v + u) / 3, 0), (u / v, 1), ((u - v / 7) / 3 / v, 1)):
        stage = Stage("s", {"u": expression}, ((0, 0),))
        fields = (Field("u", "float64"), Field("v", "float64"))
        program = Program("s", fields, (stage,), "fast")
        assert count(stage_of(program, stage).expression)["/"] == left


@pytest.mark.parametrize("strategy", sorted({*STRATEGIES} - {"generic", "items", "items_on_cpu"}))
def test_all_strategies_allow_contraction_and_divide_nothing(strategy: str) -> None:
    strict = COMPACT.program("float32")
    program = strict.with_math("fast")
    config = config_of(strategy, program, program.stages[0])
    kernel = generate(program, program.stages[0], config)
    assert "#pragma OPENCL FP_CONTRACT ON" in kernel.source and not kernel.divides
    assert "0.025f" in kernel.source and "0.5f" in kernel.source
    assert not re.search(r"[/] 40|OFF|correctly-rounded", kernel.source)
    assert "FP_CONTRACT OFF" in generate(strict, strict.stages[0], config).source


def test_the_reference_stays_strict() -> None:
    field = np.random.default_rng(0).random((9, 9), np.float32)
    with Computation(COMPACT.program("float32"), (9, 9), devices="reference", math="fast") as run:
        run.scatter(field)
        run.run(3)
        result = run.gather()
    right = reference_run(COMPACT.program("float32"), field, 3, (False, False))
    assert result is not None and np.array_equal(result, right)


@pytest.mark.whole
def test_report_and_explanation_say_so() -> None:
    field = np.zeros((40, 40), np.float32)
    _, report, text = run(COMPACT.program("float32"), field, 2, math="fast")
    assert report.as_dict()["math"] == "fast" and "\nmath fast: " in report.table()
    assert "program compact: float32, math fast, 2 axes" in text
    assert "math fast" in str(dry_run(COMPACT.program("float32"), (40, 40), 2, math="fast"))
    _, report, text = run(COMPACT.program("float32"), field, 2)
    assert report.math == "strict" and "math" not in report.table() + text


def test_it_is_refused_where_it_has_no_meaning() -> None:
    with pytest.raises(ValueError, match=r"math='fast' is for float32.*int16; leave it out"):
        Computation(COMPACT.program("int16"), (9, 9), math="fast")
    with pytest.raises(ValueError, match="'generic' is not; leave one"):
        stencil_computation((9, 9), SHAPE, WEIGHTS, 40, 1, "generic", math="fast")
    with pytest.raises(ValueError, match="checked mode.*leave one"):
        Computation(COMPACT.program("float32"), (9, 9), math="fast", check=True)
    with pytest.raises(ValueError, match="'generic'"):
        dry_run(COMPACT.program("float32"), (9, 9), 1, math="fast", kernel="generic")
    with pytest.raises(ValueError, match="one of strict, fast, got 'loose'"):
        Computation(COMPACT.program("float32"), (9, 9), math="loose")  # type: ignore[arg-type]


@pytest.mark.whole
def test_the_command_line_takes_and_tells_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pattern = tmp_path / "compact.py"
    pattern.write_text(f"shape = {SHAPE}\npattern = {WEIGHTS}\nfactor = 40\n")
    words = f"run {pattern} --size 60 60 --iterations 3 --device cpu --math fast".split()
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["math"] == "fast"
    assert main([*words, "--dtype", "int32"]) == 2
    assert "leave it out" in capsys.readouterr().err
    assert kgt([str(pattern), "--print", "--math", "fast"]) == 0
    assert "0.1f * u[c - u_pitch_0]" in capsys.readouterr().out
    assert kgt([str(pattern), "--print", "--math", "fast", "--dtype", "int32"]) == 2


def test_sums_stay_exact() -> None:
    u, v = Read("u", (0, 0)), Read("v", (0, 0))
    stage = Stage("dot", {"u": u + v}, ((0, 0), (0, 0)), {"total": Fold("sum", u * v)})
    program = Program("dot", (Field("u", "float64"), Field("v", "float64")), (stage,))
    fast = with_values(program.with_math("fast"), stage)
    text = config_of("cell", *fast).kernel(*fast).source
    exact, added = text.index("FP_CONTRACT OFF"), text.index("kgt_two_sum(")
    assert exact < added < text.rindex("FP_CONTRACT ON") < text.index("__kernel")

    rng = np.random.default_rng(1)
    fields = [rng.standard_normal((37, 50)) * 10.0 ** rng.integers(-9, 9, (37, 50)) for _ in "uv"]
    with Computation(program, (37, 50), devices="cpu", math="fast") as run:
        run.u[...], run.v[...] = fields
        run.run(1)
        assert run.total == math.fsum((fields[0] * fields[1]).ravel())
