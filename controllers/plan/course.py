# SPDX-License-Identifier: MIT
"""Into which launches the time steps of a run are divided, where a launch computes several."""
from __future__ import annotations

from dataclasses import dataclass

from controllers.plan.plan import Plan


@dataclass(frozen=True)
class RunLaunches:
    """So many whole launches, one of the `rest` of the steps, if there is any, and one that folds.

    folding: 1 where the last step, which makes the folds of the run, is a launch of its own, or 0.
    per_launch: the steps of a whole launch.

    >>> found = RunLaunches(whole=2, rest=3, folding=1, per_launch=4)
    >>> found.count, [found.steps(n) for n in range(5)]
    (4, [0, 4, 8, 11, 12])
    """

    whole: int
    rest: int
    folding: int
    per_launch: int

    @classmethod
    def of(cls, plan: Plan, n_steps: int) -> RunLaunches:
        """Those of a run of `n_steps`, 0 or more."""
        per_launch = plan.span
        folding = int(plan.folds_apart and not plan.steps_are_rounds and n_steps > 0)
        return cls(*divmod(n_steps - folding, per_launch), folding, per_launch)

    @property
    def count(self) -> int:
        """How many launches there are."""
        return self.whole + (self.rest > 0) + self.folding

    def steps(self, n_launches: int) -> int:
        """How many time steps the first launches compute."""
        steps = min(n_launches * self.per_launch, self.whole * self.per_launch + self.rest)
        return steps + self.folding * (n_launches == self.count)
