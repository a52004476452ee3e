# SPDX-License-Identifier: MIT
"""Trials: what a search has tried, within a budget, and what came of it.

Machines drift, so times are compared within one batch only: the default is measured in each, and
what is kept of a configuration is its time relative to that of the default beside it.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from random import Random
from statistics import median
from types import MappingProxyType
from typing import Generic, TypeAlias, Union

from controllers.tuning.search import Search
from controllers.tuning.space import C, Space
from controllers.tuning.spending import Spending

# Seconds of a step, or why a configuration cannot be used.
Outcome: TypeAlias = Union[float, str]
# Measures some configurations side by side.
Measure: TypeAlias = Callable[[Sequence[C]], Mapping[C, Outcome]]


@dataclass(frozen=True)
class Budget:
    """What a search may spend: configurations tried besides the default, and seconds.

    No batch is begun that would exceed the seconds, if it took as long as the longest so far.
    """

    trials: float = inf
    seconds: float = inf


class Trials(Generic[C]):
    """A search over `space` under way, with at most `n_trials` configurations."""

    def __init__(
        self, space: Space[C], search: Search[C], n_trials: float = inf, seed: int = 0
    ) -> None:
        self.space = space
        self.discarded: dict[C, str] = {}       # why they cannot be used
        self._ratios: dict[C, float] = {space.default: 1.0}
        self._default_s: list[float] = []
        self._left = n_trials
        self._batches = search(space, MappingProxyType(self._ratios), Random(seed))

    def batch(self) -> list[C]:
        """What to measure next, the default first; [] when the search or its budget is at an end.

        A default that is of no use itself ends the search.
        """
        default = self.space.default
        if default in self.discarded:
            return []
        for batch in self._batches if self._left else ():
            new = [config for config in dict.fromkeys(batch) if config not in self._ratios]
            if new:
                tried = new[: int(min(self._left, len(new)))]
                self._left -= len(tried)
                return [default, *tried]
        return []

    def tell(self, outcomes: Mapping[C, Outcome]) -> None:
        """What came of a batch."""
        default_s = outcomes[self.space.default]
        for config, outcome in outcomes.items():
            if isinstance(outcome, str):
                self.discard(config, outcome)
            else:
                self._ratios[config] = outcome / default_s if isinstance(default_s, float) else inf
        if isinstance(default_s, float):
            self._default_s.append(default_s)

    def discard(self, config: C, why: str) -> None:
        """A configuration cannot be used."""
        self.discarded[config] = why
        self._ratios[config] = inf

    @property
    def ratios(self) -> Mapping[C, float]:
        """The time of each configuration tried, relative to the default; inf if discarded."""
        return MappingProxyType(self._ratios)

    @property
    def best(self) -> C:
        """The fastest so far; the default where nothing is faster."""
        return min(self._ratios, key=self._ratios.__getitem__)

    def seconds(self, config: C) -> float:
        """The time of a step with a configuration that was tried."""
        return self._ratios[config] * median(self._default_s) if self._default_s else inf


def tune(
    space: Space[C], measure: Measure[C], budget: Budget, search: Search[C], seed: int = 0
) -> Trials[C]:
    """Search `space` for what `measure` finds fastest."""
    trials, spending = Trials(space, search, budget.trials, seed), Spending(budget.seconds)
    while spending.fits and (batch := trials.batch()):
        with spending.piece():
            trials.tell(measure(batch))
    return trials
