# SPDX-License-Identifier: MIT
"""What tuning has cost and gained, as a line for people and as plain data."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from controllers.report.duration import duration


@dataclass(frozen=True)
class TuningReport:
    """What the search in a run has tried, gained and spent.

    tried: configurations, besides those that were in use.
    first_s, best_s: kernels' time of a step of the largest boxes on each device, summed: with the
        configurations that were in use when the field was last divided, and with the best ones.
    spent_s: of the `budget_s` seconds; `uncounted_s` of them are not in the report's `seconds`: in
        these kernels were built and checked, in the others steps were made.
    """

    tried: int
    first_s: float
    best_s: float
    budget_s: float
    spent_s: float
    uncounted_s: float

    @classmethod
    def of_ranks(cls, ranks: Sequence[TuningReport | None]) -> TuningReport | None:
        """That of a job, from those of its ranks, which search at the same time."""
        all_: list[TuningReport] = [one for one in ranks if one is not None]
        if not all_:
            return None
        return cls(
            sum(one.tried for one in all_),
            sum(one.first_s for one in all_),
            sum(one.best_s for one in all_),
            *(max(getattr(one, name) for one in all_)
              for name in ("budget_s", "spent_s", "uncounted_s")),
        )  # fmt: skip

    @property
    def speedup(self) -> float:
        """How many times as fast the kernels of the largest boxes are now."""
        return self.first_s / self.best_s if self.best_s else 1.0

    def as_dict(self) -> dict[str, object]:
        """Plain data, for JSON."""
        return {**asdict(self), "speedup": self.speedup}

    def __str__(self) -> str:
        """
        >>> print(TuningReport(5, 0.012, 0.01, 3.0, 2.71, 2.4))
        tuning: 5 configurations tried, kernels 1.20 times as fast; 2.71 s of 3 s spent, 2.4 s ...
        """
        gain = f"kernels {self.speedup:.2f} times as fast" if self.speedup > 1 else "none faster"
        return (
            f"tuning: {self.tried} configurations tried, {gain}; {duration(self.spent_s)} of "
            f"{duration(self.budget_s)} spent, {duration(self.uncounted_s)} of it building and "
            f"checking kernels, beside the steps"
        )
