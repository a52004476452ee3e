# SPDX-License-Identifier: MIT
"""Every strategy has the bits of the reference, wherever a box starts and ends."""
from __future__ import annotations

import random
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import pyopencl as cl
import pytest
from kernel_ways import extreme

from controllers.device import find_devices
from controllers.expression import SYMBOLS, Constant, Expression, Operation, Read
from controllers.kernel import build
from controllers.kgt.generator import Configuration, generate
from controllers.kgt.marching import MarchingConfiguration
from controllers.kgt.rows import RowsConfiguration
from controllers.program import INTEGERS, Field, Program, Stage
from controllers.reference import apply_stage
from hitmap.shape import Shape
from hitmap.strided import Geometry

Array = npt.NDArray[Any]
STRATEGIES = ("rows", "marching")
N_CONFIGURATIONS = 40   # those that the cases take turns with: each is compiled for every stage


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "number" in metafunc.fixturenames:
        numbers = range(metafunc.config.getoption("strategy_cases"))
        metafunc.parametrize("number", numbers, ids=[f"case-{number}" for number in numbers])


@pytest.fixture(scope="module")
def queue() -> cl.CommandQueue:
    handle = find_devices()[0].handle
    assert handle is not None, "an OpenCL device"
    return cl.CommandQueue(cl.Context([handle]))


@dataclass(frozen=True)
class Tiles:
    """The fields of a case: where they lie, each with its own margins, and their cells."""

    geometry: dict[str, Geometry]
    cells: dict[str, Array]


def random_tree(rng: random.Random, reads: list[Read], dtype: str) -> Expression:
    """A tree over all `reads`, each used once or more, with constants; or a sum, as stencils are."""
    whole = dtype in INTEGERS

    def constant() -> Constant:
        return Constant(rng.choice([1, 2, 3, -4, 7]) if whole else rng.choice([0.5, 3, -1 / 3]))

    nodes: list[Expression] = []
    for read in reads:
        nodes.append(constant() * read if rng.random() < 0.6 else read)
    if rng.random() < 0.6:
        tree = nodes[0]
        for node in nodes[1:]:
            tree = tree + node
        return tree / rng.choice([4, 3, -7, 1])
    while len(nodes) > 1:
        at = rng.randrange(len(nodes) - 1)
        nodes[at : at + 2] = [Operation(rng.choice(SYMBOLS), nodes[at], nodes[at + 1])]
    return Operation("-", nodes[0], constant())


def random_program(rng: random.Random) -> Program:
    """One stage over 1 to 3 fields, 1 to 4 axes, up to 5 cells to a side, any dtype."""
    n_axes = rng.randint(1, 4)
    dtype = rng.choice(["float32", "float32", "float64", *INTEGERS])
    names = rng.sample(["u", "v", "w"], rng.randint(1, 3))
    most = 5 if n_axes < 3 else 2
    shape = tuple((-rng.randint(0, most), rng.randint(0, most)) for _ in range(n_axes))
    reads = [
        Read(rng.choice(names[1:] or names), tuple(rng.randint(*ends) for ends in shape))
        for _ in range(rng.randint(1, 9))
    ]
    stage = Stage("random", names[0], random_tree(rng, reads, dtype), shape)
    return Program("random", tuple(Field(name, dtype) for name in names), (stage,))


def random_configuration(
    rng: random.Random, strategy: str, program: Program, extent: tuple[int, ...]
) -> RowsConfiguration | MarchingConfiguration | None:
    """One that suits the box; None where there is none: "rows" needs rows of some length."""
    stage = program.stages[0]
    if strategy == "rows":
        default = RowsConfiguration.default(program, stage)
        made = rng.choice([*default.search_space(program.n_axes)]).within(extent)
        return replace(made, streaming=rng.random() < 0.5, segment=rng.choice([40, 64, 16384]))
    marching = MarchingConfiguration.default(program, stage)
    return rng.choice([*marching.search_space(program.n_axes)]).within(extent)


def random_tiles(
    rng: random.Random, program: Program, box: Shape, multiple: int
) -> Tiles:
    """Tiles around what `box` needs, with margins and padded rows; some rows start anywhere."""
    geometry, cells = {}, {}
    np_rng = np.random.default_rng(rng.randrange(2**32))
    for field in program.fields:
        low, high = zip(*program.reach)
        full = box.grow(
            tuple(n + rng.randint(0, 3) for n in low), tuple(n + rng.randint(0, 3) for n in high)
        )
        start = full.lower[-1] - full.lower[-1] % multiple      # equal modulo it in all fields
        full = Shape((*full.lower[:-1], start), full.upper)
        pitches = [1]
        for axis in range(program.n_axes - 1, 0, -1):
            pitch = full.extent[axis] * pitches[0] + rng.randint(0, 9)
            pitches.insert(0, -(-pitch // multiple) * multiple)
        geometry[field.name] = Geometry(full, tuple(pitches))
        n_elements = -(-full.extent[0] * pitches[0] // 64) * 64
        cells[field.name] = _values(np_rng, n_elements, program.dtype)
    return Tiles(geometry, cells)


def _values(rng: np.random.Generator, count: int, dtype: str) -> Array:
    if dtype in INTEGERS:
        return extreme(rng, (count,), dtype)
    values = rng.standard_normal(count).astype(dtype)
    values[::7] = np.finfo(dtype).tiny / 3
    return values


def check(
    queue: cl.CommandQueue, program: Program, made: Configuration, box: Shape, tiles: Tiles,
    is_cpu: bool,
) -> None:  # fmt: skip
    """The kernel equals the reference on `box`, and leaves the rest of the memory alone."""
    stage = program.stages[0]
    kernel = generate(program, stage, made)
    options = ["-cl-fp32-correctly-rounded-divide-sqrt"] if kernel.divides else []
    compiled = cl.Kernel(build(queue.context, kernel.name, kernel.source, options), kernel.name)
    before = _values(np.random.default_rng(5), tiles.cells[stage.writes].size, program.dtype)
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    old = {name: cl.Buffer(queue.context, flags, hostbuf=a) for name, a in tiles.cells.items()}
    new = cl.Buffer(queue.context, flags, hostbuf=before)
    buffers = [old[field] if role == "in" else new for field, role in kernel.buffers]
    where = {field: tiles.geometry[field].strided(box) for field in kernel.fields}
    assert kernel.suits(where.values())
    scalars = kernel.scalars(
        {field: cells.first for field, cells in where.items()},
        {field: cells.pitches[:-1] for field, cells in where.items()},
        box.extent,
    )
    compiled(queue, *kernel.work_sizes(box.extent, is_cpu), *buffers, *scalars)
    result = np.empty_like(before)
    cl.enqueue_copy(queue, result, new)

    def read(node: Read) -> Array:
        return tiles.geometry[node.field].strided(box.shift(node.offset)).view(
            tiles.cells[node.field]
        )

    expected = before.copy()
    with np.errstate(all="ignore"):
        tiles.geometry[stage.writes].strided(box).view(expected)[...] = apply_stage(
            stage, read, program.dtype
        )
    word = f"u{result.itemsize}"
    wrong = np.flatnonzero(result.view(word) != expected.view(word))
    wrong = wrong[~(np.isnan(result[wrong]) & np.isnan(expected[wrong]))]    # payloads are free
    assert not wrong.size, f"{wrong.size} of {box} ({made}):\n{kernel.source}"


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_random_stage_equals_the_reference_bit_for_bit(
    queue: cl.CommandQueue, strategy: str, number: int
) -> None:
    rng = random.Random(f"{strategy} {number}")
    program = random_program(rng)
    stage = program.stages[0]
    limit = (3000, 150, 70, 60)[program.n_axes - 1]
    *outer, row = (limit, *[rng.choice([1, 2, 3, 7, 12, 33])] * 3)[: program.n_axes][::-1]
    extent = (*(rng.randint(1, min(n, 33)) for n in outer), rng.randint(1, row))
    if strategy == "rows":
        lanes = RowsConfiguration.default(program, stage).lanes
        extent = (*extent[:-1], max(extent[-1], 2 * lanes))
    box = Shape.of_extent(extent).shift(tuple(rng.randint(0, 9) for _ in extent))
    made = random_configuration(rng, strategy, program, extent)
    multiple = made.lanes if isinstance(made, MarchingConfiguration) else 1
    check(queue, program, made, box, random_tiles(rng, program, box, multiple), strategy == "rows")
