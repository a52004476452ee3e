# SPDX-License-Identifier: MIT
"""Which strategy computes a box of a stage on a device, and with which configuration.

    CPU     rows, its stores past the caches where the fields exceed them; boxes of short rows: cell
            wavefront for several time steps at once
    GPU     marching, on aligned vectors where all rows start aligned; narrow boxes: cell
            streaming for several time steps at once
    others  cell

Kernels of several steps are chosen with the plan, which has to make room for them.  A weighted sum
of very many terms is not written out: generic, on all of them.  Each strategy says itself what it
offers for a launch (`strategies.config`); here the table is asked.

Only how fast a box is computed depends on the choice, not one bit of the result.
"""
from __future__ import annotations

from controllers.kgt.launch import Launch
from controllers.kgt.strategies.config import Config
from controllers.kgt.strategies.table import strategies_for, strategy_named
from controllers.kgt.text.analysis import reads_many
from controllers.kgt.text.fold_values import with_values
from controllers.program.following import followed, following
from controllers.program.program import Program, Stage

MOST_FLOPS = 256        # per cell, of several steps at once by default


def choose(program: Program, stage: Stage, kind: str, launch: Launch | None = None) -> Config:
    """The configuration for `stage` on a device of this kind; without `launch` for a large box.

    ValueError where no strategy computes as many steps of the box at once.

    >>> from controllers.language.weights import Stencil
    >>> from hitmap.strided import Strided
    >>> program = Stencil.of("s", [(-1, 1)] * 2, [0, 1, 0, 1, 0, 1, 0, 1, 0], 4).program("float32")
    >>> choose(program, program.stages[0], "cpu")   # doctest: +ELLIPSIS
    RowsConfig(lanes=16, rows=4, planes=1, band=16, depth=1, segment=16384, ...)
    >>> choose(program, program.stages[0], "cpu", Launch({"u": Strided(0, (8, 1), (100, 7))}))
    CellConfig()
    """
    program, stage = with_values(program, stage)
    for strategy in reversed(strategies_for(kind, program, stage)):
        config = strategy.chosen(program, stage, launch)
        if config is not None:
            return config
    assert launch is not None, "a strategy for one step of a large box"
    extent = " x ".join(map(str, launch.extent))
    raise ValueError(
        f"no kernel computes {launch.n_steps} steps of {extent} cells at once on a {kind}; use "
        f"fewer steps per launch, or other places"
    )


def candidates(
    program: Program, stage: Stage, kind: str, launch: Launch
) -> tuple[Config, ...]:
    """The default for `launch` on a device of this kind, then all others; each once.

    All of them make the same number of steps in a launch, and give the same bits.  Empty where the
    default has no parameters.  Some may not suit the box, or exceed a limit of the device.
    """
    default = choose(program, stage, kind, launch)
    if not can_vary(program, default):
        return ()
    others = (
        config.within(launch.extent)
        for config in default.space(program.n_axes)
        if config.steps_per_launch == default.steps_per_launch
    )
    return tuple(dict.fromkeys((default, *others)))


def can_vary(program: Program, config: Config) -> bool:
    """Whether there is anything to try in place of a configuration."""
    return next(config.space(program.n_axes), None) is not None


def usual_steps(program: Program, stage: Stage, kind: str) -> int:
    """How many steps of a large box are best computed by one launch."""
    program, stage = _as_several(program, stage)
    if program.flops_per_cell > MOST_FLOPS:
        return 1
    if program.folds and not (kind == "cpu" and reads_many(stage)):
        return 1
    strategies = strategies_for(kind, *with_values(program, stage))
    return max(strategy.usual_steps(program, stage) for strategy in strategies)


def step_counts(program: Program, stage: Stage, kind: str) -> tuple[int, ...]:
    """Numbers of steps per launch that may be tried for a large box on a device of this kind."""
    program, stage = _as_several(program, stage)
    strategies = strategies_for(kind, *with_values(program, stage))
    found = {1}.union(*(each.step_counts(program, stage) for each in strategies))
    return tuple(sorted(found))


def _as_several(program: Program, stage: Stage) -> tuple[Program, Stage]:
    """A program and its stage as launches of several steps compute it."""
    several = followed(program)
    return several, stage if several is program else following(program, stage)


def config_of(
    strategy: str, program: Program, stage: Stage, exceeds_cache: bool = True
) -> Config:
    """The default configuration of a strategy, for a large box.

    ValueError where the strategy cannot compute the stage.
    """
    program, stage = with_values(program, stage)
    named = strategy_named(strategy)
    named.check(program, stage)
    return named.default(program, stage, exceeds_cache)
