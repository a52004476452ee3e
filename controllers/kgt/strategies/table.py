# SPDX-License-Identifier: MIT
"""The strategies: one row each, which is all that choice, tuning and command line know of them."""
from __future__ import annotations

from collections.abc import Mapping

from controllers.kgt.strategies.cell import CellConfig, GroupsConfig
from controllers.kgt.strategies.config import Config
from controllers.kgt.strategies.generic import GenericConfig
from controllers.kgt.strategies.items import ItemsConfig, ItemsOnCpuConfig
from controllers.kgt.strategies.marching import MarchingConfig
from controllers.kgt.strategies.rows import RowsConfig
from controllers.kgt.strategies.streaming import StreamingConfig
from controllers.kgt.strategies.wavefront import WavefrontConfig
from controllers.program.program import Program, Stage

# Where several offer themselves for a launch, the last of them is taken.
_ROWS: tuple[type[Config], ...] = (
    CellConfig,         # any box of any stage, on any device
    GroupsConfig,
    RowsConfig,
    MarchingConfig,
    WavefrontConfig,
    StreamingConfig,
    GenericConfig,
    ItemsConfig,        # item functions, which no other one computes
    ItemsOnCpuConfig,
)
STRATEGIES: dict[str, type[Config]] = {row.strategy: row for row in _ROWS}


def strategy_named(name: str) -> type[Config]:
    """The strategy; ValueError where there is none of that name."""
    if name not in STRATEGIES:
        raise ValueError(f"the strategy is one of {', '.join(STRATEGIES)}, got {name!r}")
    return STRATEGIES[name]


def strategies_for(kind: str, program: Program, stage: Stage) -> list[type[Config]]:
    """Those for a kind of device that compute all operations of `stage`, as the table orders."""
    named = (each for each in STRATEGIES.values() if each.kind in ("", kind))
    return [each for each in named if each.computes(program, stage)]


def plain(config: Config) -> dict[str, object]:
    """The configuration as plain data, for JSON; `config_from` reads it.

    >>> [*plain(MarchingConfig()).items()][:4]
    [('strategy', 'marching'), ('lanes', 4), ('steps', 2), ('axis', 0)]
    """
    values = config.parameters().items()
    listed = {name: [*value] if isinstance(value, tuple) else value for name, value in values}
    return {"strategy": config.strategy, **listed}


def config_from(data: Mapping[str, object]) -> Config:
    """The configuration of plain data.

    KeyError, TypeError or ValueError where this version writes no such thing.
    """
    values = {name: tuple(v) if isinstance(v, list) else v for name, v in data.items()}
    return STRATEGIES[str(values.pop("strategy"))](**values)
