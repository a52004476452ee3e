# SPDX-License-Identifier: MIT
"""The strategy "wavefront": several steps in a launch have the bits of so many applications."""
from __future__ import annotations

import itertools
import math
import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyopencl as cl
import pytest
from kernel_arguments import bound
from sample import sample
from several_steps import differing, guarded
from test_strategies import Tiles, random_program, random_tiles, random_tree

from controllers.device import find_devices
from controllers.kernel.build import build
from controllers.kgt import generate
from controllers.kgt.__main__ import main
from controllers.kgt.strategies.wavefront import WavefrontConfig
from controllers.kgt.text.emitter import used_fields
from controllers.language.weights import Stencil
from controllers.program.boundary import Boundary, mirror
from controllers.program.expression import Read, reads
from controllers.program.mirrors import Mirrors
from controllers.program.program import Field, Program, Stage
from controllers.program.reference import values_of
from controllers.program.steps import own_reach
from hitmap.shape import Shape
from hitmap.strided import Geometry, Strided

Array = npt.NDArray[Any]
LOCAL_BYTES = 1 << 19
MEAN = Stencil.of("mean", [(-1, 1)] * 2, [0, 1, 0, 1, 0, 1, 0, 1, 0], 4).program("float32")


def grown(box: Shape, reach: tuple[tuple[int, int], ...], times: int) -> Shape:
    lows, highs = zip(*reach)
    return box.grow(tuple(times * low for low in lows), tuple(times * high for high in highs))


def own_stage(rng: random.Random) -> Program:
    """A random program whose stage reads the field that it writes; small offsets."""
    while True:
        program = random_program(rng)
        (stage,) = program.stages
        offsets = {read.offset for read in reads(stage.expression)}
        if all(max(map(abs, offset)) <= 3 for offset in offsets):
            own = tuple(rng.randint(max(-3, low), min(3, high)) for low, high in stage.offsets)
            tree = random_tree(
                rng, [*reads(stage.expression), Read(stage.writes, own)], program.dtype
            )
            stage = Stage("random", {stage.writes: tree}, stage.offsets)
            return Program("random", program.fields, (stage,))


def random_wavefront(
    rng: random.Random, program: Program, extent: tuple[int, ...]
) -> WavefrontConfig:
    """One whose rings fit; its tiles may be larger or smaller than the box."""
    stage = program.stages[0]
    default = WavefrontConfig.default(program, stage)
    while True:
        config = replace(
            default,
            steps_per_launch=rng.randint(2, 6), slices=rng.randint(1, 4),
            band=rng.choice([3, 8, 40]), depth=rng.choice([2, 5]), height=rng.choice([3, 8]),
            segment=rng.choice([2, 4, 13]) * default.lanes, streaming=rng.random() < 0.5,
        )  # fmt: skip
        config = rng.choice([config, replace(config, lanes=config.lanes // 2)]).within(extent)
        if config.local_bytes(program, stage) <= LOCAL_BYTES:
            return config


def random_limits(rng: random.Random, box: Shape, program: Program, steps: int) -> Shape:
    """The cells that are computed at all: on each side from the box's own end to far away."""
    lower, upper = [], []
    for first, last, (low, high) in zip(box.lower, box.upper, program.reach):
        below, above = (rng.choice([0, 1, 2, 3, 1000]) for _ in range(2))
        lower.append(first - below - (steps * low if below == 1000 else 0))
        upper.append(last + above + (steps * high if above == 1000 else 0))
    return Shape(tuple(lower), tuple(upper))


def expected_cells(
    program: Program, steps: int, box: Shape, computed: Shape, tiles: Tiles, before: Array
) -> Array:
    """`before` with the cells of `box` as they are after so many steps."""
    (stage,) = program.stages
    own, old = stage.writes, dict(tiles.cells)
    for step in range(steps):
        cells = grown(box, own_reach(stage), steps - 1 - step) & computed

        def read(node: Read, over: Shape = cells) -> Array:
            return tiles.geometry[node.field].strided(over.shift(node.offset)).view(old[node.field])

        new = old[own].copy()
        with np.errstate(all="ignore"):
            tiles.geometry[own].strided(cells).view(new)[...] = values_of(
                stage.expression, read, program.dtype
            )
        old[own] = new
        around = grown(computed, own_reach(stage), 1) & tiles.geometry[own].box
        mirrors = Mirrors.of(program.field(own).boundary, program.n_axes)
        mirrors.renew(tiles.geometry[own].strided(around).view(new), around, computed)
    result, where = before.copy(), tiles.geometry[own].strided(box)
    where.view(result)[...] = where.view(old[own])
    return result


def run_steps(
    queue: cl.CommandQueue, program: Program, config: WavefrontConfig, box: Shape,
    computed: Shape, tiles: Tiles, before: Array,
) -> Array:  # fmt: skip
    """What one launch makes of `before`."""
    kernel = generate(program, program.stages[0], config)
    assert kernel.steps_per_launch == config.steps_per_launch
    options = ["-cl-fp32-correctly-rounded-divide-sqrt"] if kernel.divides else []
    compiled = cl.Kernel(build(queue.context, kernel.name, kernel.source, options), kernel.name)
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
    old = {name: cl.Buffer(queue.context, flags, hostbuf=a) for name, a in tiles.cells.items()}
    new = cl.Buffer(queue.context, flags, hostbuf=before.copy())
    (stage,) = program.stages
    where = {field: tiles.geometry[field].strided(box) for field in used_fields(stage)}
    assert config.suits(where.values())
    given = bound(kernel, where, old, {stage.writes: new}, box, computed)
    compiled(queue, *kernel.work_sizes(box.extent, True), *given)
    result = np.empty_like(before)
    cl.enqueue_copy(queue, result, new)
    return result


def check_steps(
    queue: cl.CommandQueue, program: Program, config: WavefrontConfig, box: Shape,
    computed: Shape, tiles: Tiles,
) -> None:  # fmt: skip
    """One launch gives the bits of the reference on `box`, and leaves the rest alone."""
    size = tiles.cells[program.stages[0].writes].size
    before = np.random.default_rng(5).integers(0, 100, size).astype(program.dtype)
    result = run_steps(queue, program, config, box, computed, tiles, before)
    expected = expected_cells(
        program, config.steps_per_launch, box, computed, tiles, before
    )
    wrong = differing(result, expected)
    assert not wrong, f"{wrong} cells of {box}, computed {computed}: {config}"


def test_several_steps_of_a_random_stage_equal_the_reference_bit_for_bit(
    cpu_queue: cl.CommandQueue, strategy_case: int
) -> None:
    rng = random.Random(f"wavefront {strategy_case}")
    program = own_stage(rng)
    config = WavefrontConfig.default(program, program.stages[0])
    outer = [rng.choice([1, 2, 5, 12, 33]) for _ in range(program.n_axes - 1)]
    outer = outer if program.n_axes < 4 else [min(n, 5) for n in outer]
    extent = (*outer, rng.randint(config.lanes, rng.choice([config.lanes, 80, 300])))
    box = Shape.of_extent(extent).shift(tuple(rng.randint(0, 9) for _ in extent))
    config = random_wavefront(rng, program, extent)
    computed = random_limits(rng, box, program, config.steps_per_launch)
    around = grown(box, program.reach, config.steps_per_launch - 1)
    tiles = random_tiles(rng, program, around, rng.choice([1, 16]))
    check_steps(cpu_queue, program, config, box, computed, tiles)


@pytest.mark.parametrize("number", sample(range(60), 60))
def test_what_lies_behind_mirrors_is_copied_at_every_level(
    cpu_queue: cl.CommandQueue, number: int
) -> None:
    rng, n_axes = random.Random(f"mirrors {number}"), 2 + number % 3 // 2
    reach = tuple(rng.randint(1, 2) for _ in range(n_axes))
    ends = [tuple(side * n if axis == at else 0 for axis, n in enumerate(reach))
            for at in range(n_axes) for side in (-1, 1)]  # fmt: skip
    dtype = rng.choice(["float32", "float64", "int32"])
    tree = random_tree(rng, [Read("u", offset) for offset in ends], dtype)
    tree = sum((Read("u", offset) * 2 for offset in ends), tree)
    sides = [[rng.choice([mirror(), mirror(-1), "keep"]) for _ in "lu"] for _ in range(n_axes)]
    field = Field("u", dtype, Boundary.of(sides, n_axes))
    shape = tuple((-n, n) for n in reach)
    program = Program("p", (field,), (Stage("s", {"u": tree}, shape),))
    config = WavefrontConfig.default(program, program.stages[0])
    extent = (*(rng.choice([2, 5, 12, 33]) for _ in reach[1:]), rng.randint(config.lanes, 80))
    box = Shape.of_extent(extent)
    config = random_wavefront(rng, program, extent)
    computed = random_limits(rng, box, program, config.steps_per_launch)
    around = grown(box, program.reach, config.steps_per_launch - 1)
    check_steps(cpu_queue, program, config, box, computed, random_tiles(rng, program, around, 16))


def guarded_case(number: int) -> None:
    """A launch on a field that holds what it may read and not one element more."""
    rng, steps = random.Random(number), 3
    shape = [[(-1, 1)] * 2, [(-2, 1), (0, 3)], [(-1, 1)] * 3, [(-3, 2)]][number % 4]
    n_weights = math.prod(high - low + 1 for low, high in shape)
    program = Stencil.of("s", shape, [*range(1, n_weights + 1)], 7).program("float32")
    extent = tuple(rng.randint(1, 20) for _ in shape[1:]) + (rng.randint(16, 90),)
    box = Shape.of_extent(extent).shift((9,) * len(extent))
    config = replace(
        WavefrontConfig.default(program, program.stages[0]), steps_per_launch=steps,
        band=7, height=3, segment=32, streaming=True,
    )  # fmt: skip
    computed = random_limits(rng, box, program, steps)
    allowed = grown(box, program.reach, steps) & grown(computed, program.reach, 1)
    geometry = Geometry.dense(allowed)
    cells = np.random.default_rng(0).random(geometry.n_elements).astype("float32")
    values = guarded(cells, at_end=True, align=4)
    tiles = Tiles({"u": geometry}, {"u": values})
    handle = find_devices()[0].handle
    assert handle is not None, "an OpenCL device"
    context = cl.Context([handle])
    check_steps(cl.CommandQueue(context), program, config, box, computed, tiles)


@pytest.mark.skipif(sys.platform == "win32", reason="mprotect")
@pytest.mark.whole
@pytest.mark.parametrize("numbers", [[0, 5], [1, 2, 3], [4, 6, 7]], ids=str)
def test_no_cell_is_read_that_the_field_need_not_hold(numbers: list[int]) -> None:
    """In a process of its own, which a read of a page that may not be touched would end."""
    code = f"import test_wavefront\nfor n in {numbers}: test_wavefront.guarded_case(n)"
    here = Path(__file__)
    folders = here.parent, here.parents[2] / "support", here.parents[3]
    paths = [str(folder) for folder in folders]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, f"exit code {done.returncode}: {done.stderr[-2000:]}"


def test_a_kernel_of_several_steps_says_how_many_and_what_it_suits() -> None:
    config = WavefrontConfig.default(MEAN, MEAN.stages[0])
    kernel = generate(MEAN, MEAN.stages[0], config)
    assert kernel.steps_per_launch == config.steps_per_launch == 8
    assert config.suits([Strided(8, (401, 1), (1, 16))])
    assert not config.suits([Strided(8, (401, 1), (50, 15))])
    names = [parameter.name for parameter in kernel.parameters]
    assert names[-4:] == [f"computed_{end}_{axis}" for axis in (0, 1) for end in ("first", "last")]


def test_default_rings_fit_whatever_the_stage_and_search_spaces_hold_them() -> None:
    for n_axes, far in itertools.product((1, 2, 3, 4), (1, 2, 5)):
        tree = Read("u", (-far,) * n_axes) + Read("u", (far,) * n_axes)
        for dtype in ("float32", "float64"):
            stage = Stage("s", {"u": tree}, ((-far, far),) * n_axes)
            program = Program("p", (Field("u", dtype),), (stage,))
            config = WavefrontConfig.default(program, stage, exceeds_cache=True)
            assert config.local_bytes(program, stage) <= 1 << 20, (n_axes, far)
            assert config in set(config.space(n_axes)), (n_axes, far)


def test_what_a_wavefront_cannot_do_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 2 steps per launch, got 1; use the strategy"):
        WavefrontConfig(steps_per_launch=1)
    with pytest.raises(ValueError, match="two vectors of 16 cells, got 20 cells"):
        WavefrontConfig(segment=20)
    stage = Stage("copy", {"u": Read("v", (0,))}, ((0, 0),))
    program = Program("p", (Field("u", "float32"), Field("v", "float32")), (stage,))
    with pytest.raises(ValueError, match="'copy' does not read the field 'u' that it writes"):
        generate(program, stage, WavefrontConfig())


def test_the_command_line_prints_a_wavefront(capsys: pytest.CaptureFixture[str]) -> None:
    pattern = Path(__file__).parents[3] / "examples" / "patterns" / "jacobi_2d4.py"
    assert main([str(pattern), "--print", "--strategy", "wavefront"]) == 0
    assert "8 steps, float32, tile by tile through the cache" in capsys.readouterr().out


def test_what_may_be_tried_on_narrow_boxes_has_segments_of_two_vectors() -> None:
    narrow = replace(WavefrontConfig.default(MEAN, MEAN.stages[0]), segment=40)
    tried = [*narrow.space(2)]
    assert tried and all(config.segment >= 2 * config.lanes for config in tried)
