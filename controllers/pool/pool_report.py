# SPDX-License-Identifier: MIT
"""What a pool has done: task by task, where, how long, and how well that was foreseen."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import NamedTuple

from controllers.pool.decision import Decision
from controllers.report.duration import duration
from controllers.report.trace import Row, Span, Timeline


class Ended(NamedTuple):
    """A job that was done: when, in ns of `time.perf_counter_ns`, and how long foreseen."""

    number: int
    task: str
    variant: str
    lane: str
    cores: int
    start: int
    end: int
    foreseen_s: float
    failed: bool


@dataclass(frozen=True)
class TaskReport:
    """One task in one variant in one lane: the median of its times, and of what was foreseen."""

    task: str
    variant: str
    where: str
    count: int
    failed: int
    seconds: float
    foreseen_s: float


@dataclass(frozen=True)
class PoolReport:
    """The newest jobs of this rank's pool, and where they were sent and why.

    n_jobs: how many were done in all.  n_stolen: of these, and of their pieces, elsewhere than was
    foreseen.
    moved_nbytes: to devices with memory of their own, and from them.
    """

    tasks: tuple[TaskReport, ...]
    decisions: tuple[Decision, ...]
    n_jobs: int
    n_stolen: int
    moved_nbytes: tuple[int, int] = (0, 0)

    @classmethod
    def of(
        cls, ended: Iterable[Ended], decisions: Iterable[Decision], n_jobs: int, n_stolen: int,
        moved_nbytes: tuple[int, int],
    ) -> PoolReport:  # fmt: skip
        """Summed up by task, variant and lane."""
        groups: dict[tuple[str, str, str], list[Ended]] = {}
        for one in ended:
            groups.setdefault((one.task, one.variant, one.lane), []).append(one)
        tasks = [
            TaskReport(
                *key, len(some), sum(one.failed for one in some),
                median((one.end - one.start) / 1e9 for one in some),
                median(one.foreseen_s for one in some),
            )
            for key, some in sorted(groups.items())
        ]  # fmt: skip
        return cls(tuple(tasks), tuple(decisions), n_jobs, n_stolen, moved_nbytes)

    def __str__(self) -> str:
        header = ["task", "variant", "where", "jobs", "failed", "median", "foreseen"]
        lines = [
            [one.task, one.variant, one.where, str(one.count), str(one.failed),
             duration(one.seconds), duration(one.foreseen_s)]
            for one in self.tasks
        ]  # fmt: skip
        widths = [max(map(len, column)) for column in zip(header, *lines)]
        rows = [
            "  ".join(cell.ljust(n) for cell, n in zip(row, widths)) for row in [header, *lines]
        ]  # fmt: skip
        rows.append(f"{self.n_jobs} jobs were done, {self.n_stolen} elsewhere than was foreseen")
        return "\n".join(row.rstrip() for row in rows)

    def explain(self) -> str:
        """Where each job was sent, and when it would have ended elsewhere, a line for each."""
        return "\n".join(map(str, self.decisions))

    def as_dict(self) -> dict[str, object]:
        """Plain data, for JSON."""
        return asdict(self) | {
            "tasks": [asdict(one) for one in self.tasks],
            "decisions": [one._asdict() for one in self.decisions],
        }


def timeline_of(ended: Sequence[Ended], rank: int) -> Timeline:
    """The jobs as a timeline, a row for each that can be done at once in a lane."""
    rows: dict[str, list[int]] = {}     # of each lane, when each of its rows is free
    spans = []
    for one in sorted(ended, key=lambda job: (job.start, job.number)):
        free = rows.setdefault(one.lane, [])
        at = next((n for n, end in enumerate(free) if end <= one.start), len(free))
        free[at:at + 1] = [one.end]
        name = one.lane if at == 0 else f"{one.lane}, {at + 1}"
        what = f"{one.task} ({one.variant})"
        row = Row(rank, name)
        spans.append(Span(row, one.number, "task", what, one.start, one.end, 0, one.number, None))
    return Timeline(len(spans), tuple(spans), (0,))
