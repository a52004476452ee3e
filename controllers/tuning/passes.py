# SPDX-License-Identifier: MIT
"""Steps of a pass of chunks, found while passes run: each is a valid pass, however many it has.

COSP (Sabne, Sakdhnagool, Eigenmann 2013) tells loops by what takes longest.  Where copies do,
longer passes are tried; where kernels do, shorter ones; where neither does, both.  Of each length a
pass gets it going and some are timed; what that may take longer than the best known one is a small
share of the run.
"""
# docs/decisions/0070-chunks-are-tuned-while-they-run.md
from __future__ import annotations

from collections.abc import Callable, Sequence

from controllers.plan.pipeline import Kind
from controllers.report.pipeline import PipelineReport
from controllers.tuning.kept_pass import KeptPass
from hitmap.comm import Communicator

TIMED = 2           # passes of a trial, after one that is not timed
BETTER = 0.01       # of a step has to be saved to go on from there
SHARE, SHARE_OF_LONG, LONG_S = 0.03, 0.01, 60.0     # of a run, or of one over a minute
_WAYS: dict[Kind, Sequence[int]] = {"copy": (1,), "compute": (-1,), "neither": (1, -1)}


class PassChooser:
    """Says how many steps the next passes have, and learns how long they take.

    seconds: of a step, by the steps of a pass that were tried.
    """

    def __init__(
        self, spans: Sequence[int], first: int, comm: Communicator,
        look: Callable[[], PipelineReport | None], kept: KeptPass | None = None,
    ) -> None:  # fmt: skip
        """`spans`: rising, among them the `first`.  look: what was seen of the last passes."""
        self._spans, self._comm, self._look, self._kept = [*spans], comm, look, kept
        self.width, self.over = first, len(self._spans) < 2
        self._times: dict[int, float] = {}
        self._seen: dict[int, PipelineReport] = {}
        self._is_warm, self._rests = False, False
        self._run_s, self._lost_s, self._left = 0.0, 0.0, 0

    def until_decision(self, left: int) -> int:
        """How many of the `left` steps are to be run with this width: whole passes."""
        self._left = left
        if self.over or self._rests:
            return left
        return min(left, self.width * (TIMED if self._is_warm else 1))

    def ran(self, n_steps: int, seconds: float) -> None:
        """So many steps were run, in so many seconds on this rank; `width` is that of the next
        ones.  Collective.
        """
        if self.over or not n_steps:
            return
        everyone = self._comm.allgather((seconds, self._look()))
        seconds = max(one for one, _ in everyone)
        self._run_s, self._left = self._run_s + seconds, self._left - n_steps
        if self._times:
            self._lost_s += 0.0 if self._rests else max(0.0, seconds - n_steps * self._best_s)
        found = PipelineReport.of_ranks([one for _, one in everyone])
        if self._rests:         # more of the run is known
            self._next()
        elif not self._is_warm:
            self._is_warm = n_steps >= self.width
        elif found is not None and found.steps == self.width and found.passes >= TIMED:
            ends_s = found.pipeline.ends_s(found.chunks)
            self._times[self.width] = (found.seconds - ends_s) / found.passes / found.steps
            self._seen[self.width] = found
            self._next()

    @property
    def seconds(self) -> dict[int, float]:
        """How long a step takes with each number of steps that was tried."""
        return dict(sorted(self._times.items()))

    @property
    def _best(self) -> int:
        return min(self._times, key=self._times.__getitem__)

    @property
    def _best_s(self) -> float:
        return self._times[self._best]

    def _next(self) -> None:
        """Go on with what is tried next, where that is worth it; else with the best one."""
        best = self._best
        span = self._candidate(best)
        self._rests = span is not None and not self._pays(span)
        if span is None:
            self.over = True
            if self._kept is not None and self._comm.rank == 0:
                self._kept.store(best)
        self.width = best if span is None or self._rests else span
        self._is_warm = False

    def _candidate(self, best: int) -> int | None:
        """One notch on from the best one, in the ways that its type asks for."""
        at = self._spans.index(best)
        others = [time for span, time in self._times.items() if span != best]
        if others and self._best_s > (1 - BETTER) * min(others):
            return None     # as good as alike
        for way in _WAYS[self._seen[best].pipeline.kind]:
            if 0 <= at + way < len(self._spans) and self._spans[at + way] not in self._times:
                return self._spans[at + way]
        return None

    def _pays(self, span: int) -> bool:
        """Whether a trial that takes half as long again stays within its share of the run."""
        best_s = self._best_s
        run_s = self._run_s + max(0, self._left) * best_s
        share = SHARE if run_s < LONG_S else SHARE_OF_LONG
        return self._lost_s + (1 + TIMED) * span * best_s / 2 <= share * run_s
