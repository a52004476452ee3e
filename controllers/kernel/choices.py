# SPDX-License-Identifier: MIT
"""The choice of a configuration for each launch on one device.

First what is being tried, then the winner that was kept, then the default.  A winner serves all
boxes whose extents have the same nearest powers of 2, if it suits them; it makes as many
steps per launch as the default.
"""
from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from math import log2
from typing import TypeAlias

from controllers import kgt
from controllers.device.device import Device
from controllers.kernel.winners import Winner, Winners
from controllers.program.program import Field, Program, Stage
from controllers.program.structure import structure

_logger = logging.getLogger(__name__)
# What launches of one stage share that have the same winner; plain text, for the name of an entry.
Key: TypeAlias = tuple[str, ...]


class Choices:
    """The configurations of one device; `winners` are by default those of the user's cache."""

    def __init__(self, device: Device, winners: Winners | None = None) -> None:
        self._kind = device.kind
        self._winners = Winners.of(device) if winners is None else winners
        self._chosen: dict[Key, kgt.Config] = {}     # tried now, found, or kept
        self._looked_up: set[Key] = set()
        self._digests: dict[tuple[Stage, tuple[Field, ...], str], str] = {}

    def configuration(
        self, program: Program, stage: Stage, launch: kgt.Launch | None = None
    ) -> kgt.Config:
        """The configuration for `launch`; without one the default for a large box."""
        default = kgt.choose(program, stage, self._kind, launch)
        if launch is None:
            return default
        key = self.key(program, stage, launch)
        if key not in self._looked_up:
            self._looked_up.add(key)
            winner = self._winners.load(key)
            if winner is not None and winner.config in kgt.candidates(
                program, stage, self._kind, launch
            ):
                self._chosen[key] = winner.config
        if key not in self._chosen:
            return default
        chosen = self._chosen[key]
        for config in dict.fromkeys((chosen, chosen.within(launch.extent))):
            if config.suits(launch.fields.values()):
                return config
        return default

    def key(self, program: Program, stage: Stage, launch: kgt.Launch) -> Key:
        """What a winner for `launch` is kept under, whatever program and stage are called."""
        kernel = stage, program.fields, program.math
        if kernel not in self._digests:
            self._digests[kernel] = structure(program, stage)
        default = kgt.choose(program, stage, self._kind, launch)
        return (
            self._digests[kernel],
            extent_class(launch.extent),
            "exceeds cache" if launch.exceeds_cache else "in cache",
            f"{default.steps_per_launch} steps",
        )

    def usual_steps(self, program: Program, stage: Stage, launch: kgt.Launch) -> int:
        """How many steps of a box are best computed at once: as was found, or by default."""
        winner = self._winners.load(self._steps_key(program, stage, launch))
        steps = 0 if winner is None else winner.config.steps_per_launch
        if not 1 <= steps <= max(launch.extent):
            return kgt.usual_steps(program, stage, self._kind)
        return steps

    def keep_steps(
        self, program: Program, stage: Stage, launch: kgt.Launch, winner: Winner
    ) -> None:
        """Let later runs compute as many steps at once as `winner`."""
        self._winners.store(self._steps_key(program, stage, launch), winner)

    def _steps_key(self, program: Program, stage: Stage, launch: kgt.Launch) -> Key:
        *kernel, _ = self.key(program, stage, replace(launch, n_steps=1))
        return (*kernel, "steps per launch")

    def use(self, key: Key, config: kgt.Config) -> None:
        """From now on take this one for launches of `key`, where it suits."""
        self._looked_up.add(key)
        self._chosen[key] = config

    @contextmanager
    def using(self, key: Key, config: kgt.Config) -> Iterator[None]:
        """Take this one for what is bound in the meantime."""
        before = {key: self._chosen[key]} if key in self._chosen else {}
        looked_up = key in self._looked_up
        self.use(key, config)
        try:
            yield
        finally:
            del self._chosen[key]
            self._chosen.update(before)
            if not looked_up:
                self._looked_up.discard(key)

    def keep(self, key: Key, winner: Winner) -> bool:
        """Use a winner, and keep it for later runs; whether there is a cache to keep it in."""
        self.use(key, winner.config)
        self._winners.store(key, winner)
        plain = kgt.plain(winner.config)
        _logger.info(
            "tuned: %.3g s per step for boxes of %s with %s", winner.seconds, key[1], plain
        )
        return self._winners.kept


def extent_class(extent: tuple[int, ...]) -> str:
    """The same text for boxes that are about as large: the nearest powers of 2.

    >>> extent_class((8190, 8192, 90)), extent_class((91,))
    ('2^13 2^13 2^6', '2^7')
    """
    return " ".join(f"2^{round(log2(cells))}" for cells in extent)
