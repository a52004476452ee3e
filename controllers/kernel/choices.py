# SPDX-License-Identifier: MIT
"""The choice of a configuration for each launch on one device.

First what is being tried, then the winner that was kept, then the default.  A winner serves all
boxes whose extents have the same nearest powers of 2, if it suits them; it makes as many
steps per launch as the default.
"""
from __future__ import annotations

import logging
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from math import log2
from typing import TypeAlias

from controllers import kgt
from controllers.device.device import Device
from controllers.kernel.candidate import Candidate, KeptCandidate, OwnCandidate, plain
from controllers.kernel.offer import Offer
from controllers.kernel.winners import Winner, Winners

_logger = logging.getLogger(__name__)
# What launches of one stage share that have the same winner; plain text, for the name of an entry.
Key: TypeAlias = tuple[str, ...]


class Choices:
    """The configurations of one device; `winners` are by default those of the user's cache."""

    def __init__(self, device: Device, winners: Winners | None = None) -> None:
        self._winners = Winners.of(device) if winners is None else winners
        self._chosen: dict[Key, Candidate] = {}     # tried now, found, or kept
        self._looked_up: set[Key] = set()
        self.settled: set[Key] = set()      # for which a run has tried what is alike
        self._digests: dict[Hashable, str] = {}

    def configuration(self, offer: Offer, launch: kgt.Launch | None = None) -> Candidate:
        """What of `offer` is for `launch`; without one the default for a large box."""
        default = offer.default(launch)
        if launch is None:
            return default
        key = self.key(offer, launch)
        if key not in self._looked_up:
            self._looked_up.add(key)
            winner = self._winners.load(key)
            found = None if winner is None else _offered(offer.candidates(launch), winner.config)
            if found is not None:
                self._chosen[key] = found
        if key not in self._chosen:
            return default
        chosen = self._chosen[key]
        for config in dict.fromkeys((chosen, chosen.within(launch.extent))):
            if config.suits(launch.fields.values()):
                return config
        return default

    def takes_digests(self, offer: Offer, launch: kgt.Launch) -> bool:
        """Whether what is for `launch` can take the digest of the field that it updates."""
        return self.configuration(offer, launch).digests

    def key(self, offer: Offer, launch: kgt.Launch) -> Key:
        """What a winner for `launch` is kept under, whatever program and stage are called."""
        if offer.of not in self._digests:
            self._digests[offer.of] = offer.digest()
        return (
            self._digests[offer.of],
            extent_class(launch.extent),
            "exceeds cache" if launch.exceeds_cache else "in cache",
            f"{launch.n_steps} steps",
        )

    def usual_steps(self, offer: Offer, launch: kgt.Launch) -> int:
        """How many steps of a box are best computed at once: as was found, or by default."""
        winner = self._winners.load(self._steps_key(offer, launch))
        steps = 0 if winner is None else winner.config.steps_per_launch
        return steps if 1 <= steps <= max(launch.extent) else offer.usual_steps()

    def keep_steps(self, offer: Offer, launch: kgt.Launch, winner: Winner) -> None:
        """Let later runs compute as many steps at once as `winner`."""
        self._winners.store(self._steps_key(offer, launch), winner)

    def _steps_key(self, offer: Offer, launch: kgt.Launch) -> Key:
        *kernel, _ = self.key(offer, launch)
        return (*kernel, "steps per launch")

    def use(self, key: Key, config: Candidate) -> None:
        """From now on take this one for launches of `key`, where it suits."""
        self._looked_up.add(key)
        self._chosen[key] = config

    @contextmanager
    def using(self, key: Key, config: Candidate) -> Iterator[None]:
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
        assert not isinstance(winner.config, KeptCandidate), "it was found now"
        self.use(key, winner.config)
        self._winners.store(key, winner)
        _logger.info(
            "tuned: %.3g s per step for boxes of %s with %s",
            winner.seconds, key[1], plain(winner.config),
        )  # fmt: skip
        return self._winners.kept


def _offered(
    candidates: Iterable[Candidate], kept: Candidate | KeptCandidate
) -> Candidate | None:
    """What was kept, if it is still a candidate."""
    for candidate in candidates:
        if kept in (candidate, candidate.kept if isinstance(candidate, OwnCandidate) else None):
            return candidate
    return None


def extent_class(extent: tuple[int, ...]) -> str:
    """The same text for boxes that are about as large: the nearest powers of 2.

    >>> extent_class((8190, 8192, 90)), extent_class((91,))
    ('2^13 2^13 2^6', '2^7')
    """
    return " ".join(f"2^{round(log2(cells))}" for cells in extent)
