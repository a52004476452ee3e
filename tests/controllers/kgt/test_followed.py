# SPDX-License-Identifier: MIT
"""Kernels of several steps write what a step renames, with the bits of one step after another."""
from __future__ import annotations

import random
from dataclasses import replace

import pyopencl as cl
import pytest
from random_trees import random_tree
from sample import cases
from several_steps import random_case
from test_streaming import case_of, check, random_configuration
from test_wavefront import random_wavefront
from time_levels import wave

from controllers.kgt import choose, generate, step_counts, usual_steps
from controllers.kgt.launch import Launch
from controllers.kgt.strategies.streaming import StreamingConfig
from controllers.kgt.strategies.streaming.pipeline import KEPT, Pipeline
from controllers.kgt.strategies.wavefront import WavefrontConfig
from controllers.program.boundary import Boundary, mirror
from controllers.program.expression import Read
from controllers.program.following import followed
from controllers.program.program import Field, Program, Stage
from hitmap.strided import Strided


def random_wave(rng: random.Random) -> Program:
    """A stage of any reach that reads a field that is renamed at the cell, perhaps another one."""
    n_axes, dtype = rng.randint(1, 4), rng.choice(["float32", "float32", "float64"])
    most = (4, 3, 2, 1)[n_axes - 1]
    shape = tuple((-rng.randint(0, most), rng.randint(0, most)) for _ in range(n_axes))
    names = ["u", *(["k"] if rng.random() < 0.3 else [])]
    each = ["u", *(rng.choice(names) for _ in range(rng.randint(0, 6)))]
    places = [tuple(rng.randint(*ends) for ends in shape) for _ in each]
    if rng.random() < 0.6:      # cells beside are read of one plane, as of a star
        plane = rng.randint(*shape[0])
        places = [(plane, *at[1:]) if any(at[1:]) else at for at in places]
        places = [(at[0], *(0,) * (n_axes - 1)) if rng.random() < 0.5 else at for at in places]
    every = [Read(field, at) for field, at in zip(each, places)]
    every += [Read("before", (0,) * n_axes), Read("u", (0,) * n_axes)]
    rng.shuffle(every)
    stage = Stage("random", {"u": random_tree(rng, every, dtype)}, shape)
    fields = tuple(Field(name, dtype) for name in dict.fromkeys([*each, "before"]))
    return followed(Program("random", fields, (stage,), renames={"before": "u"}))


def mirrored(rng: random.Random) -> Program:
    """A stage with the field that follows it, with a mirror at the first plane at least."""
    n_axes = rng.choice([1, 2, 2, 2, 3])
    reach = tuple(rng.randint(1, 2 if n_axes < 3 else 1) for _ in range(n_axes))
    ends = [tuple(side * n if axis == at else 0 for axis, n in enumerate(reach))
            for at in range(n_axes) for side in (-1, 1)]  # fmt: skip
    around = (Read("u", at) * rng.choice([0.5, 2]) for at in ends)
    tree = sum(around, Read("before", (0,) * n_axes) * -1)
    sides = [[rng.choice([mirror(), mirror(-1), "keep"]) for _ in "lu"] for _ in range(n_axes)]
    sides[0][0] = mirror()
    boundary, dtype = Boundary.of(sides, n_axes), rng.choice(["float32", "float64"])
    fields = tuple(Field(name, dtype, boundary) for name in ("u", "before"))
    stage = Stage("s", {"u": tree}, tuple((-n, n) for n in reach))
    return followed(Program("p", fields, (stage,), renames={"before": "u"}))


@pytest.mark.parametrize("number", cases(4, 60))
def test_both_fields_have_the_bits_of_one_step_after_another(
    queue: cl.CommandQueue, number: int
) -> None:
    case, config = case_of(number, "NVIDIA" in queue.device.vendor, random_wave)
    check(queue, case, config)


@pytest.mark.parametrize("number", cases(3, 24))
def test_what_is_held_back_at_mirrors_takes_the_field_that_follows_along(
    queue: cl.CommandQueue, number: int
) -> None:
    """With a mirror at the first plane the steps are later, by twice what they reach below."""
    rng, nvidia = random.Random(f"followed mirrors {number}"), "NVIDIA" in queue.device.vendor
    program = mirrored(rng)
    n_axes = program.n_axes
    config = random_configuration(rng, program, nvidia)
    while not nvidia:       # PoCL takes long to compile what is unrolled
        config = replace(config, cells=(config.vector, 1, 1), ahead=rng.choice([0, 1]), unroll=1)
        if config.fits(program.stages[0]):
            break
        config = random_configuration(rng, program, nvidia)
    extent = tuple(rng.randint(2, (150, 30, 12)[n_axes - 1]) for _ in range(n_axes))
    check(queue, random_case(rng, program, config.steps_per_launch, extent, config.vector), config)


@pytest.mark.parametrize("number", cases(6, 90))
def test_a_wavefront_has_these_bits(queue: cl.CommandQueue, number: int) -> None:
    rng = random.Random(f"followed wavefront {number}")
    program = random_wave(rng)
    lanes = WavefrontConfig.default(program, program.stages[0]).lanes
    limit = (300, 40, 14, 9)[program.n_axes - 1]
    rows = tuple(rng.randint(1, limit) for _ in range(program.n_axes - 1))
    extent = (*rows, lanes + rng.randint(0, limit))
    config = random_wavefront(rng, program, extent)
    check(queue, random_case(rng, program, config.steps_per_launch, extent, 1), config)


@pytest.mark.parametrize("number", cases(3, 30))
def test_a_wavefront_between_mirrors_has_them(queue: cl.CommandQueue, number: int) -> None:
    rng = random.Random(f"followed mirrors of a wavefront {number}")
    program = mirrored(rng)
    lanes = WavefrontConfig.default(program, program.stages[0]).lanes
    rows = (rng.randint(2, (150, 30, 12)[program.n_axes - 1]) for _ in program.reach[1:])
    extent = (*rows, lanes + rng.randint(0, 40))
    config = random_wavefront(rng, program, extent)
    check(queue, random_case(rng, program, config.steps_per_launch, extent, 1), config)


def test_no_more_is_kept_than_the_planes_that_are_read_and_those_twice_the_lag_ago() -> None:
    stage = followed(wave()).stages[0]
    pipeline = Pipeline.of(stage, streams=True)
    assert pipeline.lag == pipeline.handed_late == 1
    assert [(value.raw, value.depth) for value in pipeline.values] == [(True, 2)]
    assert (pipeline.last, pipeline.earlier) == (Read(KEPT, (0, 1)), Read(KEPT, (0, 2)))
    corner = wave().stages[0].expression + Read("u", (1, 1))
    value = Stage("s", {"u": corner}, ((-1, 1), (-1, 1)))
    both = followed(replace(wave(), stages=(value,)))
    pipeline = Pipeline.of(both.stages[0], streams=True)     # beside, of two planes
    assert not pipeline.handed_late and sorted(v.depth for v in pipeline.values) == [1, 1, 2]
    back = Stage("s", {"u": Read("u", (-1, 0)) - Read("before", (0, 0))}, ((-1, 0), (0, 0)))
    fields = Field("u", "float32"), Field("before", "float32")
    program = followed(Program("p", fields, (back,), renames={"before": "u"}))
    pipeline = Pipeline.of(program.stages[0], streams=True)
    assert pipeline.lag == 0 and pipeline.last is pipeline.earlier is Read("u", (0, 0))


def test_several_steps_are_usual_of_planes_but_not_of_volumes() -> None:
    for program, count in ((wave(), 12), (wave("float64"), 10)):
        assert usual_steps(program, program.stages[0], "gpu") == count
        assert {2, 4, 8} <= {*step_counts(program, program.stages[0], "gpu")}
        assert usual_steps(program, program.stages[0], "cpu") == 8
    volumes = wave(n_axes=3)
    assert {usual_steps(volumes, volumes.stages[0], kind) for kind in ("cpu", "gpu")} == {1}


def test_a_launch_of_several_steps_is_streamed_and_one_of_a_single_step_is_not() -> None:
    program = followed(wave())
    stage, where = program.stages[0], Strided(64, (1024, 1), (900, 900))
    launch = Launch({"u": where, "before": where}, True, 6, nvidia=True)
    config = choose(program, stage, "gpu", launch)
    assert config.strategy == "streaming" and config.steps_per_launch == 6
    assert choose(program, stage, "gpu", replace(launch, n_steps=1)).strategy == "marching"
    names = [one.name for one in generate(program, stage, config).parameters]
    assert names[:4] == ["u", "before", "u_new", "before_new"]


def test_two_fields_of_which_none_follows_are_refused() -> None:
    program = wave()
    updates = {**program.stages[0].updates, "before": Read("u", (0, 0))}
    both = replace(program.stages[0], updates=updates)
    plain = replace(program, stages=(both,), renames={})
    with pytest.raises(ValueError, match="updates u, before, and kernels of the strategy 'str"):
        generate(plain, both, StreamingConfig(2))
