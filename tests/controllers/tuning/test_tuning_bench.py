# SPDX-License-Identifier: MIT
"""Configurations measured on a device: only what builds, fits and gives the right bits counts."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from sample import sample

from controllers import kgt
from controllers.bench.problem import STENCILS
from controllers.device import find_devices
from controllers.executor.opencl import OpenCLExecutor
from controllers.kernel import stage_kernel
from controllers.kernel.configuration import Placed, launch_of
from controllers.kgt.kernel import StageKernel
from controllers.kgt.strategies.cell import CellConfig
from controllers.kgt.strategies.marching import MarchingConfig
from controllers.kgt.strategies.rows import RowsConfig
from controllers.kgt.strategies.wavefront import WavefrontConfig
from controllers.language.weights import Stencil
from controllers.program.expression import Read
from controllers.program.program import Field, Program, Stage
from controllers.program.sweep import Sweep
from controllers.tuning import bench as bench_module
from controllers.tuning.bench import Bench
from controllers.tuning.scratch import MOST, scratch
from hitmap.shape import Shape
from hitmap.strided import Geometry

MEAN = Stencil.of("mean", [(-1, 1)] * 2, [0, 1, 0, 1, 0, 1, 0, 1, 0], 4).program("float32")
DOMAIN = Shape.of_extent((61, 203))


@pytest.fixture(scope="module")
def executor() -> OpenCLExecutor:
    return OpenCLExecutor(find_devices()[0])


def placed(program: Program = MEAN, domain: Shape = DOMAIN) -> Placed:
    box = program.updated(domain, (False,) * program.n_axes)
    return box, {field.name: Geometry.padded(domain) for field in program.fields}


def bench_of(
    executor: OpenCLExecutor, program: Program = MEAN, domain: Shape = DOMAIN, n_steps: int = 1
) -> Bench:
    sweep = Sweep.over(program.stages[0], domain, (False,) * program.n_axes, n_steps)
    return Bench(executor, program, sweep, placed(program, domain))


@pytest.fixture
def bench(executor: OpenCLExecutor) -> Bench:
    return bench_of(executor)


def two_fields() -> Program:
    read = Read("u", (0, 1)) * Read("v", (-1, 0)) + Read("u", (0, 0))
    stage = Stage("both", {"u": read, "v": read - Read("v", (0, 0))}, ((-1, 0), (0, 1)))
    return Program("both", (Field("u", "int32"), Field("v", "int32")), (stage,))


@pytest.mark.parametrize("program", sample([MEAN, two_fields()], 2))
def test_good_configurations_are_measured(executor: OpenCLExecutor, program: Program) -> None:
    batch = [CellConfig(), RowsConfig(rows=2), RowsConfig(lanes=8, rows=1)]
    outcomes = bench_of(executor, program).measure(batch)
    assert [*outcomes] == batch
    assert all(isinstance(time, float) and 0 < time < float("inf") for time in outcomes.values())


@pytest.mark.whole
def test_what_is_written_over_is_there_again_before_each_launch_that_counts(
    executor: OpenCLExecutor,
) -> None:
    new = Read("u", (0, 1)) - Read("old", (0, 0))
    leap = Stage("leap", {"u": new}, ((0, 0), (0, 1)), overwrites={"u": "old"})
    fields = Field("u", "int32"), Field("old", "int32")
    batch = [CellConfig(), RowsConfig(rows=1)]
    outcomes = bench_of(executor, Program("leap", fields, (leap,))).measure(batch)
    assert all(isinstance(time, float) for time in outcomes.values()), outcomes


BAD = RowsConfig(rows=2)


def spoil(monkeypatch: pytest.MonkeyPatch, change: Callable[[str], str]) -> None:
    """The generator writes another text for one configuration."""

    def generate(
        program: Program, stage: Stage, configuration: kgt.Config | None = None,
        *, digests: bool = False,
    ) -> StageKernel:
        kernel = kgt.generate(program, stage, configuration, digests=digests)
        return replace(kernel, source=change(kernel.source)) if configuration == BAD else kernel

    monkeypatch.setattr(stage_kernel, "generate", generate)


@pytest.mark.parametrize("most", [0, 1 << 18], ids=["against cell", "against NumPy"])
@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda text: text.replace(" / 4", " / 5").replace("0.25f", "0.2f"), "with other bits"),
        (lambda text: text.replace("if (item_at < item_cells)", "if (0)"), "with other bits"),
        (lambda text: text.replace("return item_value;", "return item_value"), "does not compile"),
    ],
    ids=["wrong sum", "cells left out", "no C"],
)
def test_what_is_wrong_is_discarded_and_the_others_are_measured(
    executor: OpenCLExecutor, monkeypatch: pytest.MonkeyPatch,
    change: Callable[[str], str], says: str, most: int,
) -> None:  # fmt: skip
    monkeypatch.setattr(bench_module, "MAX_REFERENCE", most)
    good = kgt.generate(MEAN, MEAN.stages[0], BAD).source
    assert change(good) != good
    spoil(monkeypatch, change)
    outcomes = bench_of(executor).measure([CellConfig(), BAD, replace(BAD, rows=4)])
    assert says in str(outcomes[BAD])
    assert [isinstance(time, float) for time in outcomes.values()] == [True, False, True]


def test_all_fields_that_a_stage_updates_must_be_right(
    executor: OpenCLExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil(monkeypatch, lambda text: text.replace("v_new + c_v[item]", "v_new + 1 + c_v[item]"))
    outcomes = bench_of(executor, two_fields()).measure([CellConfig(), BAD])
    assert isinstance(outcomes[CellConfig()], float)
    assert "with other bits" in str(outcomes[BAD])


def test_work_groups_beyond_the_limit_are_not_built(bench: Bench) -> None:
    handle = find_devices()[0].handle
    assert handle is not None
    most = handle.max_work_group_size
    problem = bench.problem(MarchingConfig(1, 1, 0, (most, 2, 1)))
    assert problem == f"has work-groups of {2 * most} items, at most {most} are possible"


@pytest.mark.parametrize(
    "most", sample([1 << 18, 0], 2), ids=["against NumPy", "against the default"]
)
def test_several_steps_at_once_are_measured_per_step(
    executor: OpenCLExecutor, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(bench_module, "MAX_REFERENCE", most)
    bench = bench_of(executor, n_steps=4)
    default, *others = bench.candidates
    assert isinstance(default, WavefrontConfig) and default.steps_per_launch == 4
    assert all(other.steps_per_launch == 4 for other in others)
    outcomes = bench.measure([default, replace(default, slices=2)])
    assert all(isinstance(time, float) for time in outcomes.values()), outcomes
    large = replace(default, segment=1 << 20)
    assert "of local memory" in str(bench.problem(large))


@pytest.mark.whole
def test_a_wrong_default_of_several_steps_is_found_on_a_large_box_too(
    executor: OpenCLExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def generate(
        program: Program, stage: Stage, made: kgt.Config | None = None,
        *, digests: bool = False,
    ) -> StageKernel:
        kernel = kgt.generate(program, stage, made, digests=digests)
        source = kernel.source.replace("0.25f", "0.2f").replace("/ 4", "/ 5")
        assert source != kernel.source
        return replace(kernel, source=source)

    monkeypatch.setattr(bench_module, "MAX_REFERENCE", 0)
    monkeypatch.setattr(stage_kernel, "generate", generate)
    bench = bench_of(executor, n_steps=4)
    assert "with other bits" in str(bench.problem(bench.candidates[0]))


def test_boxes_that_do_not_suit_are_not_tried(executor: OpenCLExecutor) -> None:
    narrow = bench_of(executor, domain=Shape.of_extent((50, 10)))
    assert narrow.problem(RowsConfig(lanes=16)) == "does not suit the box"
    assert narrow.candidates == ()


def test_the_default_comes_first_among_the_candidates(bench: Bench) -> None:
    first, *others = bench.candidates
    assert first == kgt.choose(MEAN, MEAN.stages[0], bench.executor.device.kind, bench.launch)
    assert len(set(others)) == len(others) > 10
    assert first not in others


@pytest.mark.parametrize("n_axes", [1, 2, 3, 4])
def test_a_scratch_is_small_and_aligned_like_the_box(n_axes: int) -> None:
    upper = (10_000_000, 5003, 203, 101)[4 - n_axes :]
    domain = Shape((3,) * n_axes, upper)
    box = domain.grow((-2,) * n_axes, (-1,) * n_axes)
    stage = Stage("s", {"u": Read("u", (0,) * n_axes)}, ((0, 0),) * n_axes)
    for make in (Geometry.dense, Geometry.padded):
        cells = domain.grow((9,) * n_axes, (-2,) * n_axes)
        sweep = Sweep.of(stage, cells, 3)
        cut, (small, geometries) = scratch((box, {"u": make(domain)}), sweep)
        behind = (end - last for end, last in zip(cells.upper, box.upper))
        assert cut.cells.lower == cells.lower
        assert cut.cells.upper == tuple(n + more for n, more in zip(small.upper, behind))
        assert small.lower == box.lower
        assert small.extent == tuple(map(min, zip(box.extent, MOST[n_axes])))
        assert geometries["u"] == make(small.grow((2,) * n_axes, (1,) * n_axes))
        same = geometries["u"].strided(small).first - make(domain).strided(box).first
        assert n_axes > 1 or same == 0


@pytest.mark.parametrize("extent", [(640, 640, 640), (645, 643, 647), (16384, 16384), (4099, 5003)])
def test_what_computes_several_steps_of_a_box_on_a_gpu_computes_its_scratch(
    extent: tuple[int, ...]
) -> None:
    """Rows that are whole vectors as they are need no padding, those of the scratch do."""
    star = STENCILS["3d7" if len(extent) == 3 else "2d4"].program("float32")
    (stage,), domain, fixed = star.stages, Shape.of_extent(extent), (False,) * len(extent)
    sweep, large = Sweep.over(stage, domain, fixed, 4), placed(star, domain)
    made = kgt.choose(star, stage, "gpu", launch_of(star, sweep, large, max_items=1024))
    part, small = scratch(large, sweep)
    assert made.suits(launch_of(star, part, small).fields.values())
