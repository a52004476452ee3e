# SPDX-License-Identifier: MIT
"""Several steps in one launch have the bits of as many launches, wherever the cells end."""
from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pyopencl as cl
import pytest
from kernel_arguments import bound
from sample import sample
from several_steps import Case, differing, guarded, random_case, random_floats

from controllers.bench.problem import STENCILS
from controllers.device import find_devices
from controllers.kernel.build import build
from controllers.kgt import Launch, candidates, choose, generate
from controllers.kgt.choice import config_of
from controllers.kgt.strategies.streaming import StreamingConfig
from controllers.kgt.strategies.streaming.pipeline import KEPT, Pipeline
from controllers.kgt.text.emitter import used_fields
from controllers.language.weights import Stencil
from controllers.program.boundary import Boundary, mirror
from controllers.program.expression import Constant, Read, Scalar
from controllers.program.program import Field, Program, Stage
from controllers.program.scalars import Parameter
from hitmap.strided import Strided

ROOT = Path(__file__).parents[3]
CORNERS = Stencil.of("c", [(-1, 1)] * 2, [1, 4, 1, 4, 20, 4, 1, 4, 1], 40).program("float32")


def random_configuration(
    rng: random.Random, program: Program, nvidia: bool
) -> StreamingConfig:
    """One that has room for two steps or three; small, for it is compiled anew for each case."""
    stage, n_axes = program.stages[0], program.n_axes
    while True:
        vector = rng.choice([1, 2, 4] if n_axes < 4 else [1, 2])
        cells, group = [vector, 1, 1], [rng.choice([4, 8, 16, 32]), 1, 1]
        if n_axes < 3 and vector < 4:
            cells[0] *= 2
        for place in range(1, n_axes - 1):
            cells[place] = rng.choice([1, 1, 2]) if n_axes < 4 else 1
            group[place] = rng.choice([4, 6, 8])
        if group[0] * group[1] * group[2] > 256:
            continue
        steps = rng.choice([2, 2, 2, 3])
        config = StreamingConfig(
            steps, (cells[0], cells[1], cells[2]), (group[0], group[1], group[2]),
            length=rng.choice([1, 3, 8, 50]), vector=vector, ahead=rng.choice([0, 1, 2]),
            unroll=rng.choice([1, 1, 1, 2]), prefetch=rng.choice([0, 2]) if nvidia else 0,
            shuffles=nvidia and rng.random() < 0.5,
            reciprocals=nvidia or rng.random() < 0.3,
        )  # fmt: skip
        if config.fits(stage):
            return config


def check(
    queue: cl.CommandQueue, case: Case, config: StreamingConfig, program: Program | None = None,
    scalars: Mapping[str, float] = MappingProxyType({}),
) -> None:  # fmt: skip
    """The kernel gives what is expected on the box, and leaves the rest of the memory alone.

    program: another one than that of the case, which gives the same with these `scalars`.
    """
    stage, flags, program = case.stage, cl.mem_flags.READ_WRITE, program or case.program
    kernel = generate(program, program.stages[0], config)
    options = ["-cl-fp32-correctly-rounded-divide-sqrt"] if kernel.divides else []
    compiled = cl.Kernel(build(queue.context, kernel.name, kernel.source, options), kernel.name)
    rng, dtype = np.random.default_rng(5), case.program.dtype
    before = {name: rng.random(case.cells[name].size).astype(dtype) for name in stage.updates}
    old = {
        name: cl.Buffer(queue.context, flags | cl.mem_flags.COPY_HOST_PTR, hostbuf=cells)
        for name, cells in case.cells.items()
    }
    new = {
        name: cl.Buffer(queue.context, flags | cl.mem_flags.COPY_HOST_PTR, hostbuf=cells)
        for name, cells in before.items()
    }
    own = {f"s_{name}": np.dtype(program.dtype).type(value) for name, value in scalars.items()}
    launch(queue, compiled, replace(case, program=program), config, {**old, **own}, new)
    for name, cells in before.items():
        result = np.empty_like(cells)
        cl.enqueue_copy(queue, result, new[name])
        wrong = differing(result, case.expected(cells, name))
        where = f"{case.box} of {case.computed} ({config}):\n{kernel.source}"
        assert not wrong, f"{wrong} cells of {name}, {where}"


def launch(
    queue: cl.CommandQueue, compiled: cl.Kernel, case: Case, config: StreamingConfig,
    old: Mapping[str, object], new: Mapping[str, cl.Buffer],
) -> None:  # fmt: skip
    kernel = generate(case.program, case.stage, config)
    where = {field: case.where(field) for field in used_fields(case.stage)}
    assert config.suits(where.values())
    given = bound(kernel, where, old, new, case.box, case.computed)
    compiled(queue, *kernel.work_sizes(case.box.extent, True), *given)


def case_of(
    number: int, nvidia: bool, draw: Callable[[random.Random], Program] = random_floats
) -> tuple[Case, StreamingConfig]:
    rng = random.Random(f"streaming {number}")
    program = draw(rng)
    config = random_configuration(rng, program, nvidia)
    limit = (300, 40, 14, 9)[program.n_axes - 1]
    extent = tuple(rng.randint(1, limit) for _ in range(program.n_axes))
    return random_case(rng, program, config.steps_per_launch, extent, config.vector), config


def test_a_random_stage_has_the_bits_of_one_step_after_another(
    queue: cl.CommandQueue, strategy_case: int
) -> None:
    case, config = case_of(strategy_case, "NVIDIA" in queue.device.vendor)
    check(queue, case, config)


@pytest.mark.whole
@pytest.mark.parametrize("number", range(69, 149, 3))
def test_what_lies_behind_mirrors_is_copied_between_the_steps(
    queue: cl.CommandQueue, number: int
) -> None:
    rng, n_axes = random.Random(f"mirrors {number}"), 1 + number % 4
    reach = tuple(rng.randint(1, 2 if n_axes < 3 else 1) for _ in range(n_axes))
    ends = [tuple(side * n if axis == at else 0 for axis, n in enumerate(reach))
            for at in range(n_axes) for side in (-1, 1)]  # fmt: skip
    dtype = rng.choice(["float32", "float32", "float64"])
    corner = tuple(rng.choice([-1, 1]) * n for n in reach)
    tree = sum((Read("u", at) * rng.choice([0.5, 2]) for at in ends), Read("u", corner))
    sides = [[rng.choice([mirror(), mirror(-1), "keep"]) for _ in "lu"] for _ in range(n_axes)]
    field = Field("u", dtype, Boundary.of(sides, n_axes))
    shape = tuple((-n, n) for n in reach)
    program = Program("p", (field,), (Stage("s", {"u": tree}, shape),))
    nvidia = "NVIDIA" in queue.device.vendor
    config = random_configuration(rng, program, nvidia)
    while not nvidia:       # PoCL takes long to compile what is unrolled
        config = replace(config, cells=(config.vector, 1, 1), ahead=0, unroll=1)
        if config.fits(program.stages[0]):
            break
        config = random_configuration(rng, program, nvidia)
    extent = tuple(rng.randint(2, (150, 30, 12, 7)[n_axes - 1]) for _ in range(n_axes))
    case = random_case(rng, program, config.steps_per_launch, extent, config.vector)
    check(queue, case, config)


@pytest.mark.parametrize("number", sample(range(20), 20))
def test_scalars_are_arguments(queue: cl.CommandQueue, number: int) -> None:
    case, config = case_of(number, "NVIDIA" in queue.device.vendor)
    values, stage = {"a": 0.875, "b": 0.25}, case.stage

    def program(a: float | Scalar, b: float | Scalar) -> Program:
        new = replace(stage, updates={stage.writes: stage.expression * a + b})
        scalars = {name: Parameter(value) for name, value in values.items()}
        return replace(case.program, stages=(new,), scalars=scalars)

    case = replace(case, program=program(**values))
    check(queue, case, config, program(Scalar("a"), Scalar("b")), values)


@pytest.mark.whole
def test_it_reads_nothing_outside_of_what_it_may() -> None:
    path = [str(ROOT), str(ROOT / "tests" / "support"), os.environ.get("PYTHONPATH", "")]
    if find_devices()[0].kind != "cpu":
        pytest.skip("pages that must not be touched are in the memory of a CPU")
    code = "import sys, test_streaming; test_streaming.run_guarded(int(sys.argv[1]))"
    for number in range(3):
        run = subprocess.run(
            [sys.executable, "-c", code, str(number)],
            cwd=Path(__file__).parent, capture_output=True, text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
        )  # fmt: skip
        assert run.returncode == 0, f"case {number}: {run.stderr[-2000:]}"


def run_guarded(number: int) -> None:
    """One case, whose memory lies between pages that must not be touched."""
    handle = find_devices()[0].handle
    assert handle is not None, "an OpenCL device"
    queue = cl.CommandQueue(cl.Context([handle]))
    case, config = case_of(number, nvidia=False)
    kernel = generate(case.program, case.stage, config)
    compiled = cl.Kernel(build(queue.context, kernel.name, kernel.source, []), kernel.name)
    for at_end in (False, True):
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
        *old, new = (
            cl.Buffer(queue.context, flags, hostbuf=guarded(cells, at_end))
            for cells in (*case.cells.values(), case.cells[case.stage.writes])
        )
        made = {case.stage.writes: new}
        launch(queue, compiled, case, config, dict(zip(case.cells, old)), made)
        queue.finish()


def test_of_a_sum_the_partial_sums_are_kept_and_of_a_field_only_the_arriving_plane() -> None:
    pipeline = Pipeline.of(CORNERS.stages[0], streams=True)
    assert (pipeline.lag, [value.depth for value in pipeline.values]) == (1, [1, 1])
    assert not any(value.raw for value in pipeline.values)
    back = Stage("s", {"u": (Read("u", (-2, 0)) + Read("u", (-1, 0))) / 2}, ((-2, 0), (0, 0)))
    pipeline = Pipeline.of(back, streams=True)
    assert pipeline.lag == 0 and [value.raw for value in pipeline.values] == [True, False]
    assert pipeline.result is Read(KEPT, (1, 1))
    assert [number for number, _ in pipeline.order()] == [1, 0]


def test_a_default_fits_its_stage_and_the_search_space_holds_it() -> None:
    for n_axes in (1, 2, 3, 4):
        for dtype in ("float32", "float64"):
            reach = 2 if n_axes < 4 else 1
            weights = [1.0] * (2 * reach + 1) ** n_axes
            far = Stencil.of("s", [(-reach, reach)] * n_axes, weights, 3).program(dtype)
            config = StreamingConfig.default(far, far.stages[0])
            assert config.fits(far.stages[0]) and config.steps_per_launch >= 2
            kernel = generate(far, far.stages[0], config)
            assert kernel.steps_per_launch == config.steps_per_launch
            if n_axes in (2, 3):
                assert config in set(config.space(n_axes))
    wide = Stencil.of("s", [(-2, 2)] * 4, [1.0] * 625, 3).program("float32")
    with pytest.raises(ValueError, match="2 steps spoil 8 cells along axis 1, a tile has 8 there"):
        StreamingConfig.default(wide, wide.stages[0])


def test_groups_are_the_shorter_the_fewer_there_are_for_the_units_of_a_device() -> None:
    """So of the 2d4 of the benchmark, measured on an H200 with the lengths 96 to 640.

    96 rows gave 2131 and 1081 billion cell-steps/s at 8192^2 and 4096^2, 256 rows 1737 and 735;
    at 16384^2 128 to 192 rows gave 2704 to 2735, 256 rows 2685.
    """
    program = STENCILS["2d4"].program("float32")
    for n, least, most in ((16384, 128, 192), (8192, 64, 128), (4096, 32, 96)):
        where = {"u": Strided(n + 4, (n + 32, 1), (n - 2, n - 2))}
        launch = Launch(where, True, 12, max_items=1024, units=132, nvidia=True)
        config = choose(program, program.stages[0], "gpu", launch)
        assert isinstance(config, StreamingConfig)
        assert least <= config.length <= most and config in candidates(
            program, program.stages[0], "gpu", launch
        )
        few = choose(program, program.stages[0], "gpu", replace(launch, units=16))
        assert isinstance(few, StreamingConfig) and few.length > config.length
        assert config.within((11, n)).length == 12    # no longer than the box


def test_what_it_cannot_compute_is_refused_with_the_reason() -> None:
    whole = Program("p", (Field("u", "int32"),), (Stage("s", {"u": Read("u", (0,))}, ((0, 0),)),))
    other = Program(
        "p", (Field("u", "float32"),), (Stage("s", {"u": Constant(1)}, ((0, 0),)),)
    )
    for program in (whole, other):
        with pytest.raises(ValueError, match="reads the field it writes, in float32 or float64"):
            generate(program, program.stages[0], config_of("streaming", CORNERS,
                                                                  CORNERS.stages[0]))  # fmt: skip
    with pytest.raises(ValueError, match="80 steps spoil 160 cells along axis 1, a tile has 128"):
        generate(CORNERS, CORNERS.stages[0], StreamingConfig(80))
    with pytest.raises(ValueError, match="a vector has 1, 2 or 4 cells"):
        StreamingConfig(vector=3)
    with pytest.raises(ValueError, match="2 steps or more, 1024 items at most"):
        StreamingConfig(steps_per_launch=1)


def test_shuffles_take_the_place_of_local_memory_within_a_warp() -> None:
    config = StreamingConfig(2, shuffles=True)
    text = generate(CORNERS, CORNERS.stages[0], config).source
    assert "shfl.sync.up.b32" in text and "__local" not in text
    wide = replace(config, group=(64, 1, 1))
    assert "barrier" in generate(CORNERS, CORNERS.stages[0], wide).source


def test_other_fields_are_read_in_several_steps_of_planes_but_not_of_volumes() -> None:
    for n_axes, is_one in ((2, False), (3, True)):
        here, next_one = (0,) * n_axes, (1, *(0,) * (n_axes - 1))
        value = Read("u", here) + Read("k", here) * Read("u", next_one)
        stage = Stage("flow", {"u": value}, ((-1, 1),) * n_axes)
        program = Program("flow", (Field("u", "float32"), Field("k", "float32")), (stage,))
        assert (StreamingConfig.usual_steps(program, stage) == 1) == is_one


def test_mirrors_are_passed_in_several_steps_of_planes_but_not_of_volumes() -> None:
    for n_axes, rule, is_one in ((2, "mirror", False), (3, "mirror", True), (3, "keep", False)):
        value = Read("u", (0,) * n_axes) + Read("u", (1, *(0,) * (n_axes - 1)))
        stage = Stage("flow", {"u": value}, ((-1, 1),) * n_axes)
        field = Field("u", "float32", boundary=Boundary.of(rule, n_axes))
        program = Program("flow", (field,), (stage,))
        assert (StreamingConfig.usual_steps(program, stage) == 1) == is_one
