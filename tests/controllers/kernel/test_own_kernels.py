# SPDX-License-Identifier: MIT
"""Optimised kernels of the user's own: how they declare their launches, and what is refused."""
from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sample import sample

from controllers import Computation, Controller, Kernel, Stencil, kgt, reference_run
from controllers.check.trial import KernelError, check_kernel
from controllers.device import choose, find_devices
from controllers.executor.opencl import OpenCLExecutor
from controllers.kernel.configuration import LaunchSize
from controllers.kernel.launch_form import LaunchForm
from controllers.kgt.__main__ import main
from controllers.kgt.choice import config_of
from controllers.kgt.launch_line import launch_line
from controllers.program.expression import Read
from controllers.program.program import Field, Program, Stage
from controllers.program.schedule import sweeps_of
from controllers.run.dry_run import dry_run
from hitmap import SerialCommunicator, Shape

CROSS = [0, 1, 0, 1, 1, 1, 0, 1, 0]
FIVE = Stencil.of("five", [(-1, 1)] * 2, CROSS, 5).program("float32")
FOUR = Stencil.of("four", [(-1, 1)] * 2, [0, 1, 0, 1, 0, 1, 0, 1, 0], 4).program("float32")
SEVEN = Stencil.of(
    "seven", [(-1, 1)] * 3, [int(n in (4, 10, 12, 13, 14, 16, 22)) for n in range(27)], 7
).program("float32")
EXTENTS = {1: (203,), 2: (45, 83), 3: (19, 22, 43), 4: (5, 6, 7, 19)}    # no multiples of anything

# a tile of cells and their neighbours in local memory
LOADED = """
    const long first_0 = (long)get_group_id(1) * 16 - 1, first_1 = (long)get_group_id(0) * 16 - 1;
    const int x = (int)get_local_id(0), y = (int)get_local_id(1);
    for (int i = y; i < 18; i += 16)
        for (int j = x; j < 18; j += 16)
            if (first_0 + i <= extent_0 && first_1 + j <= extent_1)
                near[i * 18 + j] = AT_LOCAL(u, first_0 + i, first_1 + j);
    barrier(CLK_LOCAL_MEM_FENCE);
    const long i = (long)get_global_id(1), j = (long)get_global_id(0);
    __local const VALUE *at = near + (y + 1) * 18 + x + 1;
    if (i < extent_0 && j < extent_1)
        u_new[u_first + i * u_pitch_0 + j] = (at[-18] + at[-1] + at[0] + at[1] + at[18]) / 5;
"""
HEAD = "__global const VALUE *restrict u, __global VALUE *restrict u_new, TILE(u), BOX"
REQUIRED = "__attribute__((reqd_work_group_size(16, 16, 1)))"
TILED = f"{REQUIRED}\n__kernel void tiled({HEAD})\n{{ __local VALUE near[18 * 18]; {LOADED} }}"
LOCAL = f"__kernel void tiled({HEAD}, __local VALUE *near)\n{{ {LOADED} }}"

# four cells of a row by each item
FOURS = f"""
__kernel void fours({HEAD})
{{
    const long i = (long)get_global_id(1);
    for (long j = 4 * (long)get_global_id(0); j < 4 * (long)get_global_id(0) + 4; ++j)
        if (i < extent_0 && j < extent_1)
            u_new[u_first + i * u_pitch_0 + j] = (AT_LOCAL(u, i - 1, j) + AT_LOCAL(u, i, j - 1)
                + AT_LOCAL(u, i, j) + AT_LOCAL(u, i, j + 1) + AT_LOCAL(u, i + 1, j)) / 5;
}}
"""


def field_of(program: Program) -> npt.NDArray[Any]:
    return np.random.default_rng(0).random(EXTENTS[program.n_axes]).astype(program.dtype)


def check(program: Program, kernel: Kernel, n_launches: int = 3, **options: Any) -> None:
    """A run has the bits of the reference."""
    field = field_of(program)
    with Computation(
        program, field.shape, devices="cpu:0", kernel=kernel, comm=SerialCommunicator(), **options
    ) as run:
        n_steps = n_launches * run.plan.steps_per_launch
        run.scatter(field)
        run.run(n_steps)
        result = run.gather()
    right = reference_run(program, field, n_steps, (False,) * program.n_axes)
    assert result is not None and result.tobytes() == right.tobytes()


def refused(message: str, kernel: Kernel, program: Program = FIVE, **options: Any) -> None:
    with pytest.raises(ValueError, match=message):
        Computation(
            program, EXTENTS[program.n_axes], devices="cpu:0", kernel=kernel,
            comm=SerialCommunicator(), **options,
        )  # fmt: skip


@pytest.mark.parametrize("options", sample([
    {}, {"places_per_controller": 2},
    {"places_per_controller": 3, "zero_copy": False, "overlap": "on"}, {"check": True},
], 4))  # fmt: skip
def test_a_tile_in_local_memory_with_a_required_work_group(options: dict[str, Any]) -> None:
    check(FIVE, Kernel.of("tiled", TILED), **options)


def test_local_memory_and_work_group_may_be_declared_instead() -> None:
    own = Kernel.of("tiled", LOCAL, work_group=(16, 16), local={"near": 18 * 18})
    check(FIVE, own, places_per_controller=2)
    refused("local memory 'near' has no size.*local=", Kernel.of("k", LOCAL, work_group=(16, 16)))
    refused("'far' a size.*no __local parameter", Kernel.of("k", TILED, local={"far": 3}))


def test_bodies_take_work_groups_larger_than_the_boxes() -> None:
    body = "NEW(u) = (NEAR(u,-1,0) + NEAR(u,0,-1) + HERE(u) + NEAR(u,0,1) + NEAR(u,1,0)) / 5;"
    check(FIVE, Kernel.of("mean", body, work_group=(64, 8)), overlap="on", places_per_controller=2)
    refused("a body.*whole kernels", Kernel.of("mean", body, cells_per_item=(1, 4)))


@pytest.mark.parametrize("group", sample([[1, 1, 3, 8], [64], [4, 3, 16]], 3))
def test_work_groups_have_an_extent_for_each_axis(group: list[int]) -> None:
    n = len(group)
    line = Stencil.of("line", [(0, 0)] * (n - 1) + [(0, 1)], [1, 1], 2).program("float32")
    zeros = "0, " * (n - 1)
    body = f"NEW(u) = (NEAR(u, {zeros}0) + NEAR(u, {zeros}1)) / 2;"
    check(line, Kernel.of("mean", body, work_group=tuple(group)), places_per_controller=2)
    if n == 4:
        refused("along the first two", Kernel.of("mean", body, work_group=(1, 2, 3, 8)), line)
    many = Kernel.of("k", body, work_group=(1,) * (n - 1) + (1 << 18,))
    refused("work_group has 262144 work-items.*at most", many, line)


@pytest.mark.whole
def test_an_item_may_compute_several_cells() -> None:
    check(FIVE, Kernel.of("fours", FOURS, cells_per_item=(1, 4)))
    own = Kernel.of("fours", FOURS, cells_per_item=(1, 4), work_group=(2, 8))
    check(FIVE, own, check=True, places_per_controller=2)
    refused("does not set .*cells_per_item", Kernel.of("fours", FOURS, cells_per_item=(1, 8)))
    refused("one extent for each of 2 axes", Kernel.of("fours", FOURS, cells_per_item=(1, 1, 4)))


def test_a_work_group_that_contradicts_the_required_one_is_refused() -> None:
    message = r"compiled for work-groups of 16 x 16 x 1.*groups of 8 x 16.*agree"
    refused(message, Kernel.of("tiled", TILED, work_group=(16, 8)))
    check(FIVE, Kernel.of("tiled", TILED, work_group=(16, 16)), 1)
    deep = TILED.replace("16, 16, 1", "16, 4, 4")
    refused("over 2 axes", Kernel.of("tiled", deep))


CONFIGURATIONS = [
    (program, strategy) for program in (FOUR, SEVEN) for strategy in ("rows", "marching")
]


@pytest.mark.parametrize(("program", "strategy"), sample(CONFIGURATIONS, 4))
def test_what_kgt_writes_is_launched_as_it_says(
    program: Program, strategy: str, tmp_path: Path
) -> None:
    path = tmp_path / "own.cl"
    config = config_of(strategy, program, program.stages[0])
    text = kgt.generate(program, program.stages[0], config).source
    path.write_text(launch_line(config) + text)
    padded = {"zero_copy": False} if strategy == "marching" else {}
    check(program, Kernel.of("own", path), **padded)
    check(program, Kernel.of("own", text, like=config), places_per_controller=2, **padded)


@pytest.mark.whole
@pytest.mark.parametrize("program", [FOUR, SEVEN])
def test_several_steps_per_launch(program: Program) -> None:
    stage = program.stages[0]
    config = replace(config_of("streaming", program, stage), steps_per_launch=2)
    text = kgt.generate(program, stage, config).source
    own = Kernel.of("own", text, like=config)
    check(program, own, zero_copy=False)
    check(program, own, zero_copy=False, places_per_controller=2, boundary="fixed")
    refused("computes 2 steps.*checked mode", own, program, check=True, zero_copy=False)
    refused("computes 2 steps.*launches of 3", own, program, steps_per_launch=3, zero_copy=False)


@pytest.mark.whole
@pytest.mark.parametrize("n_places", [1, 2])
def test_several_steps_per_launch_go_on_along_rings(n_places: int) -> None:
    config = replace(config_of("streaming", FOUR, FOUR.stages[0]), steps_per_launch=2)
    own = Kernel.of("own", kgt.generate(FOUR, FOUR.stages[0], config).source, like=config)
    field = field_of(FOUR)
    with Computation(
        FOUR, field, devices="cpu:0", kernel=own, zero_copy=False, boundary="periodic",
        places_per_controller=n_places, halo_width=6, comm=SerialCommunicator(),
    ) as run:  # fmt: skip
        run.run(10)
        right = reference_run(FOUR, field, 10, (True, True))
        assert run.gather().tobytes() == right.tobytes()


@pytest.mark.whole
def test_steps_that_are_left_over_need_a_variant_of_their_own() -> None:
    program, stage, field = FOUR, FOUR.stages[0], field_of(FOUR)
    config = replace(config_of("streaming", program, stage), steps_per_launch=2)
    own = Kernel.of("own", kgt.generate(program, stage, config).source, like=config)
    with Computation(
        program, field.shape, devices="cpu:0", kernel=own, zero_copy=False,
        comm=SerialCommunicator(),
    ) as run:  # fmt: skip
        run.scatter(field)
        with pytest.raises(ValueError, match="5 steps end with a launch of 1; run a multiple of 2"):
            run.run(5)
        run.run(2)      # as if nothing had happened
    both = own.with_variant(kgt.generate(program, stage).source)
    assert both.steps == (1, 2)
    with Computation(
        program, field.shape, devices="cpu:0", kernel=both, zero_copy=False,
        comm=SerialCommunicator(),
    ) as run:  # fmt: skip
        run.scatter(field)
        run.run(5)
        result = run.gather()
    assert result is not None
    assert np.array_equal(result, reference_run(program, field, 5, (False, False)))


@pytest.mark.whole
def test_boxes_that_no_variant_is_made_for_are_refused_or_left_to_the_next_one() -> None:
    config = config_of("rows", FOUR, FOUR.stages[0])
    text = kgt.generate(FOUR, FOUR.stages[0], config).source
    rows = Kernel.of("own", text, device="cpu", like=config)
    refused(r"box of 2 x 81.*4 x 16 cells or more", rows, FOUR, places_per_controller=20)
    cell = kgt.generate(FOUR, FOUR.stages[0]).source
    check(FOUR, rows.with_variant(cell), places_per_controller=20)


def test_the_command_writes_a_line_that_says_how_to_launch(tmp_path: Path) -> None:
    pattern = tmp_path / "mean.py"
    pattern.write_text("shape = [(-1, 1)]\npattern = [1, 0, 1]\nfactor = 2\n")
    for strategy in ("cell", "rows", "streaming"):
        assert main([str(pattern), "--strategy", strategy, "-o", str(tmp_path)]) == 0
        (variant,) = Kernel.of("mean", tmp_path / "mean.cl").variants
        like = variant.form.like
        assert like is None if strategy == "cell" else like.strategy == strategy


@pytest.mark.parametrize(("line", "message"), [
    ('{"strategy": "rows"', r"the source:2:.*rows.*restore what kgt has written"),
    ('{"strategy": "columns"}', "KeyError"),
    ('{"strategy": "rows", "lanes": "16"}', "lanes is '16'"),
    ('{"strategy": "rows", "lanes": 1e9}', "lanes is"),
    ('{"strategy": "rows", "cells": 3}', "TypeError"),
    ("[" * 99999, "says of no kernel"),
    ('{"strategy": "rows"}\n// launch: {"strategy": "rows"}', "a second line"),
])  # fmt: skip
def test_a_launch_line_that_kgt_has_not_written_is_refused(line: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Kernel.of("own", f"// mine\n// launch: {line}\n__kernel void own() {{}}")


@pytest.mark.parametrize(("form", "message"), [
    ({"work_group": (16, 0)}, "one extent per axis, of 1 to"),
    ({"work_group": (2, 2, 2, 2, 2)}, "one extent per axis"),
    ({"cells_per_item": 1.5}, "whole number"),
    ({"steps_per_launch": 0}, "steps_per_launch is a number of 1 to"),
    ({"local": 12}, "local: a dict is expected"),
    ({"like": "rows"}, "a configuration of kgt"),
    ({"group": (16, 16)}, "'group' says nothing of its launches; there are work_group"),
])  # fmt: skip
def test_wrong_declarations_are_refused_at_once(form: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        Kernel.of("own", "NEW(u) = 1;", **form)


def test_like_is_in_place_of_the_rest() -> None:
    config = config_of("rows", FOUR, FOUR.stages[0])
    with pytest.raises(ValueError, match="leave out work_group"):
        LaunchForm.of("kernel 'k'", like=config, work_group=(1, 1))


def test_declared_reads_are_verified_and_lie_within_those_of_the_program() -> None:
    body = "NEW(u) = NEAR(u, 0, -1);"
    Computation(
        FIVE, EXTENTS[2], devices="cpu:0", comm=SerialCommunicator(),
        kernel=Kernel.of("shift", body, reads={"u": [(0, -1)]}),
    ).close()  # fmt: skip
    with pytest.raises(KernelError, match=r"reads u at the offset \(0, -1\).*it has \(0, 1\)"):
        Computation(
            FIVE, EXTENTS[2], devices="cpu:0", comm=SerialCommunicator(),
            kernel=Kernel.of("shift", body, reads={"u": [(0, 1)]}),
        )  # fmt: skip
    refused(r"declares to read 'u' at \(1, 1\)", Kernel.of("k", body, reads={"u": [(1, 1)]}))


def test_names_of_scalars_and_types_of_buffers_are_checked() -> None:
    for name in ("u", "u_new", "u_first", "u_pitch_0", "lower_0", "extent_1", "size_0"):
        refused(f"the scalar '{name}'.*another name",
                Kernel.of("k", "NEW(u) = 1;", scalars={name: 1}))  # fmt: skip
    double = HEAD.replace("VALUE", "double")
    text = f"__kernel void k({double}) {{ CELL; NEW(u) = HERE(u); }}"
    refused("'u' is a double\\*, and the field 'u' holds float32", Kernel.of("k", text))


def test_a_dry_run_knows_the_launches_that_are_declared() -> None:
    own = Kernel.of("fours", FOURS, cells_per_item=(1, 4), work_group=(2, 8))
    (planned,) = dry_run(FIVE, (62, 130), 1, devices="gpu", kernel=own).configurations
    assert planned.launches == (LaunchSize((60, 128), (32, 60), (8, 2)),)


U, V = (lambda *offset: Read("u", offset)), (lambda *offset: Read("v", offset))
FLOW = Program("flow", (Field("u", "float32"), Field("v", "float32")), (
    Stage("flux", {"v": U(0, 1) - U(0, 0)}, ((0, 0), (0, 1))),
    Stage("move", {"u": U(0, 0) + V(0, 0) * V(0, -1)}, ((0, 0), (-1, 0))),
))  # fmt: skip


def executor_for(kernel: Kernel) -> OpenCLExecutor:
    (device,) = choose(["cpu:0"], find_devices())
    return OpenCLExecutor(device, kernel=kernel)


def test_a_kernel_is_that_of_the_stage_which_it_names_and_binds_its_fields_by_name() -> None:
    body = "NEW(u) = HERE(u) + gain * HERE(v) * NEAR(v, 0, -1);"
    move = Kernel.of("mine", body, stage="move", scalars={"gain": 1.0})
    executor = executor_for(move)
    check_kernel(executor, FLOW, move)
    flux, update = sweeps_of(FLOW)
    _, built = executor.build(FLOW, update)
    names = [parameter.name for parameter in built.parameters]
    assert names[:3] == ["u", "v", "u_new"] and {"u_first", "v_first"} < {*names}
    assert executor.build(FLOW, flux)[0].name == "kgt_flux"
    wrong = replace(move, stage="mov")
    with pytest.raises(ValueError, match="stages flux, move, and the kernel 'mine' is for 'mov'"):
        executor_for(wrong).build(FLOW, flux)
    with pytest.raises(ValueError, match="does not say which one it computes.*stage='flux'"):
        executor_for(replace(move, stage="")).build(FLOW, flux)


def test_what_is_read_of_each_field_is_tried() -> None:
    body = "NEW(u) = HERE(u) + HERE(v) * NEAR(v, 0, -1) + NEAR(u, 0, -1);"
    kernel = Kernel.of("mine", body, stage="move")
    with pytest.raises(KernelError, match=r"reads u at the offset \(0, -1\).*it has \(0, 0\)\)"):
        check_kernel(executor_for(kernel), FLOW, kernel)


def test_a_controller_launches_them_as_they_declare() -> None:
    head = "__global const float *old, __global float *new, TILE(old), TILE(new), BOX"
    head += ", __local float *kept"
    text = f"__kernel void twice({head}) {{ CELL; HERE(new) = 2 * HERE(old); }}"
    kernels = [
        Kernel.of("twice", text, local={"kept": 64}, work_group=(8, 8), roles={"new": "out"}),
        Kernel.of("twice", f"__attribute__((reqd_work_group_size(32, 2, 1)))\n{text}",
                  local={"kept": 64}, roles={"new": "out"}),
    ]  # fmt: skip
    field = field_of(FIVE)
    with Controller("cpu:0") as controller:
        old, new = (controller.tile(field.shape, "float32") for _ in range(2))
        old.write(field)
        for kernel in kernels:
            new.write(np.zeros_like(field))
            controller.launch(kernel, Shape.of_extent(field.shape), old=old, new=new)
            assert np.array_equal(new.read(), 2 * field)
