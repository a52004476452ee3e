# SPDX-License-Identifier: MIT
"""Generic, specialised and user kernels give the same bits."""
from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from kernel_ways import WAYS, run
from mpi_jobs import run_ranks
from sample import sample
from stencil_cases import difference, random_case

from controllers import Computation, Kernel, Stencil, kgt, reference_run
from controllers.check.setting import Check
from controllers.device import find_devices
from controllers.kernel.choices import Choices
from controllers.kernel.configuration import planned_configurations
from controllers.kernel.stage_kernel import stage_kernel
from controllers.plan import Location, Plan
from controllers.program.expression import Read
from controllers.program.program import Field, Program, Stage
from hitmap import Layout, SerialCommunicator, Shape

SUPPORT = Path(__file__).parents[2] / "support"
MEAN = Stencil.of("mean", [(-1, 1)] * 2, [0, 1, 0, 1, 0, 1, 0, 1, 0], 4)


@pytest.mark.parametrize(("number", "way"), sample(product(range(10), WAYS[1:]), 9))
def test_random_stencils_have_the_bits_of_the_reference(number: int, way: str) -> None:
    case = random_case(number)
    field = case.field
    result = run(way, case.stencil, field, sum(case.runs), case.boundary, devices="cpu")
    assert result is not None
    assert difference(result, case.expected[-1]) is None, case.stencil


RANKS = """
import sys
sys.path.insert(0, {tests!r})
from kernel_ways import WAYS, run
from stencil_cases import difference, random_case
from hitmap.comm import default_communicator

comm = default_communicator()
for number in {numbers}:
    case = random_case(number)
    for way in WAYS[1:]:
        n_steps, where = sum(case.runs), {{"comm": comm, "devices": "cpu"}}
        result = run(way, case.stencil, case.field, n_steps, case.boundary, **where)
        if result is not None:
            print(number, way, difference(result, case.expected[-1]))
"""


@pytest.mark.whole
@pytest.mark.parametrize("numbers", [[1], [2, 5]])
def test_two_ranks_give_the_same_bits(numbers: list[int]) -> None:
    job = run_ranks(2, RANKS.format(tests=str(SUPPORT), numbers=numbers))
    assert job.returncode == 0, job.stderr
    assert [line.split()[2:] for line in job.stdout.splitlines()] == [["None"]] * 3 * len(numbers)


def test_the_generic_kernel_is_one_text_for_all_patterns() -> None:
    device = find_devices()[0]
    choices = Choices(device)
    texts = set()
    for weights in ([1, 2, 3], [0, 0, 7]):
        program = Stencil.of("s", [(-1, 1)], weights, 3).program("float32")
        texts.add(stage_kernel("generic", program, program.stages[0], device, choices).source)
    assert len(texts) == 1


def test_the_generic_kernel_refuses_what_is_no_weighted_sum() -> None:
    u = Read("u", (0,))
    program = Program("p", (Field("u", "float32"),), (Stage("square", {"u": u * u}, ((0, 0),)),))
    with pytest.raises(ValueError, match="'square' is no weighted sum.*specialised"):
        Computation(program, 9, devices="cpu", kernel="generic")


def test_a_user_kernel_may_compute_what_no_pattern_says() -> None:
    field = np.random.default_rng(1).random((21, 17), np.float32)
    logistic = Kernel.of("logistic", "NEW(u) = r * HERE(u) * (1 - HERE(u));", scalars={"r": 3.5})
    here = Stencil.of("here", [(0, 0)] * 2, [1], 1).program("float32")
    with Computation(here, field.shape, devices="cpu", kernel=logistic) as run:
        run.scatter(field)
        run.run(2)
        result = run.gather()
    right = field
    for _ in range(2):
        right = np.float32(3.5) * right * (1 - right)
    assert result is not None and np.array_equal(result, right)


@pytest.mark.parametrize("check", sample(["on", "off"], 2))
def test_a_user_kernel_may_compute_a_stage_of_several_updates(check: Check) -> None:
    u, v, east = Read("u", (0, 0)), Read("v", (0, 0)), Read("u", (0, 1))
    turn = Stage("turn", {"u": east - v, "v": v + u * east}, ((0, 0), (0, 1)))
    program = Program("turn", (Field("u", "float32"), Field("v", "float32")), (turn,))
    body = "const VALUE east = NEAR(u, 0, 1);\nNEW(u) = east - HERE(v);\n"
    kernel = Kernel.of("turn", f"{body}NEW(v) = HERE(v) + HERE(u) * east;")
    rng = np.random.default_rng(4)
    fields = {name: rng.random((21, 17), np.float32) for name in "uv"}
    with Computation(
        program, (21, 17), devices="cpu", places_per_controller=2, kernel=kernel, check=check
    ) as run:
        for name, values in fields.items():
            run[name].scatter(values)
        run.run(3)
        result = {name: run[name].gather() for name in fields}
    for name, right in reference_run(program, fields, 3, (False, False)).items():
        got = result[name]
        assert got is not None and np.array_equal(got, right), name


def test_a_user_kernel_sees_global_coordinates_and_the_size_of_the_field() -> None:
    body = "NEW(u) = 100 * INDEX(0) + INDEX(1) + 10000 * SIZE(0) + 1000000 * SIZE(1) + 0 * HERE(u);"
    here = Stencil.of("here", [(0, 0)] * 2, [1], 1).program("int64")
    with Computation(
        here, (13, 11), devices="cpu", partition="blocks", places_per_controller=4,
        kernel=Kernel.of("where", body),
    ) as run:  # fmt: skip
        run.run(1)
        result = run.gather()
    rows, columns = np.mgrid[:13, :11]
    assert result is not None
    assert np.array_equal(result, 100 * rows + columns + 130000 + 11000000)


def test_the_reference_device_refuses_a_user_kernel_and_computes_the_generic_one() -> None:
    program, field = MEAN.program("float32"), np.random.default_rng(2).random((9, 8), np.float32)
    with pytest.raises(ValueError, match=r"reference.*'mine'.*choose another device"):
        Computation(
            program, (9, 8), devices="reference", kernel=Kernel.of("mine", "NEW(u) = 1;")
        )
    with Computation(program, (9, 8), devices="reference", kernel="generic") as run:
        run.scatter(field)
        run.run(3)
        result = run.gather()
    assert result is not None
    assert np.array_equal(result, reference_run(program, field, 3, (False, False)))


def test_a_parameter_without_a_value_is_named() -> None:
    head = "__global const float *u, __global float *u_new, TILE(u), BOX"
    source = f"__kernel void k({head}, int q) {{}}"
    with pytest.raises(ValueError, match=r"'q' has no value.*u_first.*scalars="):
        Computation(MEAN.program("float32"), (9, 8), devices="cpu", kernel=Kernel.of("k", source))


def test_a_level_that_is_not_const_is_refused() -> None:
    source = "__kernel void k(__global float *u, __global float *u_new, TILE(u), BOX) {}"
    with pytest.raises(ValueError, match=r"'u' is declared 'reading'.*__global const float"):
        Computation(MEAN.program("float32"), (9, 8), devices="cpu", kernel=Kernel.of("k", source))


@pytest.mark.parametrize("dtype", sample(["float32", "int32"], 2))
def test_a_sum_of_very_many_terms_is_not_written_out_and_has_the_same_bits(dtype: str) -> None:
    """Written out, 31 x 31 weights were built for 43 s, 61 x 61 for over two minutes."""
    rng = np.random.default_rng(1)
    weights = rng.integers(1, 99, 961)
    large = Stencil.of("large", [(-15, 15)] * 2, weights.tolist(), 7).program(dtype)
    field = (99 * rng.random((70, 53))).astype(dtype)
    with Computation(large, field.shape, devices="cpu", comm=SerialCommunicator()) as run:
        run.scatter(field)
        run.run(2)
        result, (used,), text = run.gather(), run.report().kernels, run.explain()
        assert run.plan.steps_per_launch == 1
    right = reference_run(large, field, 2, (False, False))
    assert result is not None and result.tobytes() == right.tobytes()
    assert used.origin == "kernels_cl/generic_stencil.cl, with 961 terms as data"
    assert used.origin in text
    layout, where = Layout.bands(Shape.of_extent(field.shape), 2), [Location(0), Location(1)]
    plan = Plan(large, layout, (False, False), where)
    boxes = [*plan.launched(plan.sweeps[0], 0)]
    (planned,) = planned_configurations(large, plan.sweeps[0], "specialised", boxes, "gpu")
    assert planned.origin == used.origin


def test_sums_are_written_out_up_to_256_terms() -> None:
    for n_terms, loops in ((256, False), (257, True)):
        row = Stencil.of("row", [(0, n_terms - 1)], [1.5] * n_terms, 3).program("float64")
        assert (kgt.choose(row, row.stages[0], "cpu").strategy == "generic") == loops
        assert kgt.step_counts(row, row.stages[0], "cpu")[1:] == () or not loops
        assert kgt.usual_steps(row, row.stages[0], "gpu") == 1
