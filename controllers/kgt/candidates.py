# SPDX-License-Identifier: MIT
"""The configurations that may compute a box: the default, and what can be tried in its place.

All of them make the same number of steps in a launch, and give the same bits.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import get_args

from controllers.kgt.choice import Launch, choose
from controllers.kgt.generator import Configuration, generate
from controllers.program.program import Program, Stage

STRATEGIES = {made.strategy: made for made in get_args(Configuration) if made is not type(None)}


def candidates(
    program: Program, stage: Stage, kind: str, launch: Launch
) -> tuple[Configuration, ...]:
    """The default for `launch` on a device of this kind, then all others; each once.

    Empty where one cell per work-item is the default, which has no parameters.  Some may not suit
    the box, or exceed a limit of the device.
    """
    default = choose(program, stage, kind, launch)
    if default is None:
        return ()
    steps = steps_per_launch(default)
    others = (
        made.within(launch.extent)
        for made in default.search_space(program.n_axes)
        if steps_per_launch(made) == steps
    )
    return tuple(dict.fromkeys((default, *others)))


def steps_per_launch(configuration: Configuration) -> int:
    """Time steps that one launch makes."""
    return int(getattr(configuration, "steps_per_launch", 1))


def suits(
    program: Program, stage: Stage, configuration: Configuration, launch: Launch
) -> bool:
    """Whether a configuration can compute the box of `launch`."""
    return generate(program, stage, configuration).suits(launch.fields.values())


def plain(configuration: Configuration) -> dict[str, object]:
    """The configuration as plain data, for JSON; `configuration_from` reads it.

    >>> from controllers.kgt.marching import MarchingConfiguration
    >>> [*plain(MarchingConfiguration()).items()][:4]
    [('strategy', 'marching'), ('lanes', 4), ('steps', 2), ('axis', 0)]
    """
    if configuration is None:
        return {"strategy": "cell"}
    values = asdict(configuration).items()
    listed = {name: [*value] if isinstance(value, tuple) else value for name, value in values}
    return {"strategy": configuration.strategy, **listed}


def configuration_from(data: Mapping[str, object]) -> Configuration:
    """The configuration of plain data.

    KeyError, TypeError or ValueError where this version writes no such thing.
    """
    values = {name: tuple(v) if isinstance(v, list) else v for name, v in data.items()}
    strategy = values.pop("strategy")
    if strategy == "cell" and not values:
        return None
    made: Configuration = STRATEGIES[str(strategy)](**values)
    return made
