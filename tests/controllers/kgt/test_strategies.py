# SPDX-License-Identifier: MIT
"""Every strategy has the bits of the reference, wherever a box starts and ends."""
from __future__ import annotations

import random
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyopencl as cl
import pytest
from kernel_arguments import bound
from kernel_ways import extreme
from random_trees import random_tree
from sample import sample
from several_steps import differing

from controllers.kernel.build import build
from controllers.kgt import Config, Launch, choose, generate
from controllers.kgt.__main__ import main
from controllers.kgt.choice import config_of
from controllers.kgt.strategies.cell import CellConfig
from controllers.kgt.strategies.marching import MarchingConfig
from controllers.kgt.strategies.rows import RowsConfig
from controllers.kgt.text.emitter import used_fields
from controllers.kgt.text.fold_values import with_values
from controllers.language.weights import Stencil
from controllers.program.expression import Application, Constant, Read, walk
from controllers.program.fold import Fold
from controllers.program.functions import QUOTIENT
from controllers.program.program import INTEGERS, Field, Program, Stage
from controllers.program.reference import values_of
from hitmap.shape import Shape
from hitmap.strided import Geometry, Strided

ROOT = Path(__file__).parents[3]
Array = npt.NDArray[Any]
STRATEGIES = ("rows", "marching")
MEAN = Stencil.of("mean", [(-1, 1)] * 2, [0, 1, 0, 1, 0, 1, 0, 1, 0], 4).program("float32")


@dataclass(frozen=True)
class Tiles:
    """The fields of a case: where they lie, each with its own margins, and their cells."""

    geometry: dict[str, Geometry]
    cells: dict[str, Array]


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
    stage = Stage("random", {names[0]: random_tree(rng, reads, dtype)}, shape)
    return Program("random", tuple(Field(name, dtype) for name in names), (stage,))


def with_more_updates(rng: random.Random, program: Program) -> Program:
    """The stage updates all fields, by expressions that share a part."""
    (stage,) = program.stages
    updates, first = dict(stage.updates), stage.expression
    parts = [node for node in walk(first) if isinstance(node, Application)] or [first]
    for field in program.fields[1:]:
        reads = rng.sample(stage.reads, rng.randint(1, len(stage.reads)))
        tree = random_tree(rng, reads, program.dtype)
        if program.dtype in INTEGERS:       # whose parts may be wider than the field
            updates[field.name] = tree
            continue
        shared = tree + rng.choice(parts)
        updates[field.name] = rng.choice([tree, shared, shared / rng.choice([5, 1])])
    return replace(program, stages=(replace(stage, updates=updates),))


def random_configuration(
    rng: random.Random, strategy: str, program: Program, extent: tuple[int, ...]
) -> RowsConfig | MarchingConfig:
    """One that suits the box, whose rows are as long as "rows" needs them."""
    stage = program.stages[0]
    if strategy == "rows":
        default = RowsConfig.default(program, stage)
        config = rng.choice([*default.space(program.n_axes)]).within(extent)
        ahead = rng.choice([0, 1, 4])
        segment = rng.choice([17, 40, 64, 16384])
        config = replace(config, segment=segment, ahead=ahead, shares=rng.choice([1, 2, 5]))
        return replace(config, streaming=rng.random() < 0.5)
    marching = MarchingConfig.default(program, stage)
    config = rng.choice([*marching.space(program.n_axes)]).within(extent)
    return replace(config, reciprocals=rng.random() < 0.3)


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
    queue: cl.CommandQueue, program: Program, config: Config, box: Shape, tiles: Tiles,
    is_cpu: bool,
) -> None:  # fmt: skip
    """The kernel equals the reference on `box`, and leaves the rest of the memory alone."""
    stage = program.stages[0]
    kernel = generate(program, stage, config)
    options = ["-cl-fp32-correctly-rounded-divide-sqrt"] if kernel.divides else []
    compiled = cl.Kernel(build(queue.context, kernel.name, kernel.source, options), kernel.name)
    before = {
        field: _values(np.random.default_rng(5), tiles.cells[field].size, program.dtype)
        for field in stage.updates
    }
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    old = {name: cl.Buffer(queue.context, flags, hostbuf=a) for name, a in tiles.cells.items()}
    new = {name: cl.Buffer(queue.context, flags, hostbuf=a) for name, a in before.items()}
    where = {field: tiles.geometry[field].strided(box) for field in used_fields(stage)}
    assert config.suits(where.values())
    given = bound(kernel, where, old, new, box)
    compiled(queue, *kernel.work_sizes(box.extent, is_cpu), *given)
    def read(node: Read) -> Array:
        return tiles.geometry[node.field].strided(box.shift(node.offset)).view(
            tiles.cells[node.field]
        )

    for field, value in stage.updates.items():
        result, expected = np.empty_like(before[field]), before[field].copy()
        cl.enqueue_copy(queue, result, new[field])
        with np.errstate(all="ignore"):
            right = values_of(value, read, program.dtype)
        tiles.geometry[field].strided(box).view(expected)[...] = right
        wrong = differing(result, expected)
        assert not wrong, f"{wrong} of {field}, {box} ({config}):\n{kernel.source}"


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_random_stage_equals_the_reference_bit_for_bit(
    queue: cl.CommandQueue, cpu_queue: cl.CommandQueue, strategy: str, strategy_case: int
) -> None:
    rng = random.Random(f"{strategy} {strategy_case}")
    program = random_program(rng)
    if rng.random() < 0.6:
        program = with_more_updates(rng, program)
    stage = program.stages[0]
    limit = (3000, 150, 70, 60)[program.n_axes - 1]
    *outer, row = (limit, *[rng.choice([1, 2, 3, 7, 12, 33])] * 3)[: program.n_axes][::-1]
    extent = (*(rng.randint(1, min(n, 33)) for n in outer), rng.randint(1, row))
    if strategy == "rows":
        lanes = RowsConfig.default(program, stage).lanes
        extent = (*extent[:-1], max(extent[-1], lanes))
    box = Shape.of_extent(extent).shift(tuple(rng.randint(0, 9) for _ in extent))
    config = random_configuration(rng, strategy, program, extent)
    multiple = config.lanes if isinstance(config, MarchingConfig) else 1
    tiles, is_cpu = random_tiles(rng, program, box, multiple), strategy == "rows"
    check(cpu_queue if is_cpu else queue, program, config, box, tiles, is_cpu)


@pytest.mark.parametrize("dtype", sample(["int64", "float32", "uint8"], 3))
def test_a_stage_that_reads_nothing_is_computed_by_vectors(
    cpu_queue: cl.CommandQueue, dtype: str
) -> None:
    program = Program("p", (Field("u", dtype),), (Stage("s", {"u": Constant(7)}, ((0, 0),)),))
    box = Shape((3,), (200,))
    marching = MarchingConfig(4, 1, 0, (64, 1, 1))
    for config in (RowsConfig(lanes=8, rows=1), marching):
        tiles = random_tiles(random.Random(1), program, box, 4)
        check(cpu_queue, program, config, box, tiles, is_cpu=True)


def test_64_bit_quotients_of_cells_by_cells_have_the_reference_bits(
    cpu_queue: cl.CommandQueue,
) -> None:
    tree = Application(
        QUOTIENT, Read("u", (0, -1)) * Read("u", (1, 0)), Read("v", (0, 0)) + Read("v", (-1, 1))
    )
    fields = (Field("u", "int64"), Field("v", "int64"))
    program = Program("p", fields, (Stage("s", {"v": tree}, ((-1, 1),) * 2),))
    box = Shape((5, 6), (22, 90))
    for config in (RowsConfig(lanes=8, rows=2), MarchingConfig(2, 4, 0, (32, 4, 1))):
        tiles = random_tiles(random.Random(2), program, box, 4)
        check(cpu_queue, program, config, box, tiles, is_cpu=True)


def test_rows_of_an_item_share_what_they_read() -> None:
    star = [tuple(n * (at == axis) for at in range(3)) for axis in range(3) for n in (-2, -1, 1, 2)]
    value = sum((Read("u", offset) for offset in star), start=Read("v", (0, 0, 0)))
    stage = Stage("star", {"u": value}, ((-2, 2),) * 3)
    program = Program("star", (Field("u", "float32"), Field("v", "float32")), (stage,))
    for rows, n_loads in ((1, 8), (2, 12), (4, 20)):    # of these 4 along axis 1
        config = MarchingConfig(4, 8, 0, looped=True, rows=rows)
        kernel = generate(program, stage, config)
        step = kernel.source.partition("++item) {")[2]
        assert step.count("= *(__global const float4 *)") == n_loads
        assert step.count("kgt_store(") == rows
        assert kernel.work_sizes((80, 80, 100), False)[0] == (32, 80 // rows, 10)
    with pytest.raises(ValueError, match="2 rows take three axes, got 2"):
        generate(MEAN, MEAN.stages[0], MarchingConfig(rows=2))


def test_the_choice_follows_device_box_and_memory() -> None:
    stage = MEAN.stages[0]

    def chosen(kind: str, rows: int, columns: int, pitch: int, exceeds: bool = False) -> object:
        where = {"u": Strided(pitch + 1, (pitch, 1), (rows, columns))}
        return choose(MEAN, stage, kind, Launch(where, exceeds))

    large = chosen("cpu", 4000, 4001, 4003, exceeds=True)
    assert isinstance(large, RowsConfig) and large.streaming and large.ahead
    cached = chosen("cpu", 400, 401, 403)
    assert isinstance(cached, RowsConfig) and not (cached.streaming or cached.ahead)
    row = chosen("cpu", 1, 401, 403)
    assert isinstance(row, RowsConfig) and row.rows == 1
    assert chosen("cpu", 400, 3, 403) == chosen("gpu", 400, 3, 408) == CellConfig()
    aligned, unaligned = chosen("gpu", 400, 4001, 4008), chosen("gpu", 400, 4001, 4003)
    assert isinstance(aligned, MarchingConfig) and aligned.lanes == 4
    assert aligned.reciprocals
    assert isinstance(unaligned, MarchingConfig) and unaligned.lanes == 1
    single = chosen("gpu", 1, 4001, 4008)
    assert isinstance(single, MarchingConfig) and single.steps == 1
    assert choose(MEAN, stage, "accelerator") == CellConfig()


def test_rows_of_later_blocks_are_asked_for_where_stores_bypass_the_caches() -> None:
    far = Stencil.of("far", [(-1, 2), (0, 1), (-1, 1)], [1.0] * 24, 3).program("float32")
    stage = far.stages[0]
    config = replace(RowsConfig.default(far, stage, exceeds_cache=True), ahead=4)
    text = generate(far, stage, config).source
    assert "KGT_PREFETCH(u + c_u[item] + item_x + 2 * u_pitch_0 + 4 * u_pitch_1);" in text
    assert "KGT_PREFETCH(u_new + start_u + item_cells - 1 + u_pitch_1);" in text
    flat = MEAN.stages[0]
    config = replace(RowsConfig.default(MEAN, flat, exceeds_cache=True), rows=4, ahead=4)
    assert "KGT_PREFETCH(u + c_u[item] + item_x + 7 * u_pitch_0);" in generate(
        MEAN, flat, config
    ).source
    cached = RowsConfig.default(MEAN, flat)
    assert "PREFETCH" not in generate(MEAN, flat, cached).source


def test_rows_that_share_nothing_are_computed_one_at_a_time() -> None:
    u, v = Read("u", (0, 1)), Read("v", (0, 0))
    fields = Field("u", "float32"), Field("v", "float32")
    stage = Stage("push", {"v": v + u}, ((0, 0), (0, 1)))
    program = Program("push", fields, (stage,))
    config = RowsConfig.default(program, stage, exceeds_cache=True)
    assert config.rows == 1 and config.streaming
    text = generate(program, stage, replace(config, ahead=8)).source
    assert "KGT_PREFETCH(u + c_u[item] + item_x + 8192 / sizeof(float));" in text
    assert "KGT_PREFETCH_NEAR(v + c_v[item] + item_x + 2048 / sizeof(float));" in text
    line = Program("line", fields[:1], (Stage("move", {"u": Read("u", (1,))}, ((0, 1),)),))
    config = RowsConfig.default(line, line.stages[0], exceeds_cache=True)
    assert config.ahead and "KGT_PREFETCH" in generate(line, line.stages[0], config).source


def test_what_is_folded_alone_is_asked_for_twice_in_the_same_row() -> None:
    stage = Stage("sum", {}, ((0, 0), (-1, 0)), {"s": Fold("sum", Read("u", (0, -1)))})
    program = Program("sum", (Field("u", "float64"),), (stage,))
    text = generate(*with_values(program, stage), RowsConfig(8, 1, ahead=8)).source
    assert "KGT_PREFETCH(u + c_u[item] + item_x + 8192 / sizeof(double));" in text
    assert "KGT_PREFETCH_NEAR(u + c_u[item] + item_x + 2048 / sizeof(double));" in text


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_configuration_says_what_it_suits(strategy: str) -> None:
    config = config_of(strategy, MEAN, MEAN.stages[0])
    assert config.suits([Strided(8, (400, 1), (50, 300))])
    assert not config.suits([Strided(8, (400, 1), (1, 300))])
    odd = [Strided(8, (401, 1), (50, 300)), Strided(9, (400, 1), (50, 300))]
    assert config.suits(odd) == (strategy == "rows")


def test_search_spaces_hold_the_defaults_and_only_what_compiles() -> None:
    for n_axes in (1, 2, 3, 4):
        program = Stencil.of("s", [(0, 0)] * n_axes, [1], 1).program("float32")
        stage = program.stages[0]
        rows = RowsConfig.default(program, stage, exceeds_cache=True)
        marching = MarchingConfig.default(program, stage)
        assert rows in set(rows.space(n_axes)), n_axes
        assert marching in set(marching.space(n_axes)), n_axes
    with pytest.raises(ValueError, match=r"lanes is one of \(1, 2, 4\), got 8"):
        MarchingConfig(lanes=8)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--strategy", "rows"], "4 rows at a time"),
        (["--device", "cpu"], "4 rows at a time, in vectors of 16 cells"),
        (["--device", "gpu"], "vectors of 4 cells, marching 2 steps along axis 0"),
        (["--strategy", "cell", "--device", "gpu"], "one cell per work-item"),
    ],
)
def test_the_command_line_prints_a_strategy(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pattern = ROOT / "examples" / "patterns" / "jacobi_2d4.py"
    assert main([str(pattern), "--print", *arguments]) == 0
    assert re.search(words, capsys.readouterr().out)


def test_a_strategy_for_another_device_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    pattern = ROOT / "examples" / "patterns" / "jacobi_2d4.py"
    assert main([str(pattern), "--print", "--strategy", "rows", "--device", "gpu"]) == 2
    assert "'rows' is for the device 'cpu', got 'gpu'; leave out" in capsys.readouterr().err
