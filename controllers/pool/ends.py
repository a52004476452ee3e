# SPDX-License-Identifier: MIT
"""What jobs of a pool came to: which of them are over, how long they took, and which failed."""
from __future__ import annotations

from collections import deque

from controllers.pool.forecast import Forecast
from controllers.pool.job import Job, TaskFuture, future_of
from controllers.pool.pool_report import Ended
from controllers.pool.task_error import TaskError

MOST_FAILED = 64    # futures of tasks that `wait` may raise the error of
MOST_ENDED = 4096   # jobs that the report and the timeline know of


class Ends:
    """For who holds the pool's lock.

    newest: of jobs, and of pieces of jobs.  n_over, n_left: jobs that were submitted.  any_lost:
    whether some were not done, or failed, so that cells that they were to write are spoilt.
    """

    def __init__(self, forecast: Forecast) -> None:
        self._forecast = forecast
        self.newest: deque[Ended] = deque(maxlen=MOST_ENDED)
        self._failed: list[TaskFuture] = []
        self.n_over = self.n_left = 0
        self.any_lost = False

    def add(
        self, job: Job, error: TaskError | None, seconds: float, when: tuple[int, int]
    ) -> TaskFuture | None:
        """A job, or a piece of one, was done: the future of what is over now, if a job is."""
        way = job.way
        assert way is not None, "a job that was done just now"
        lost = (job.whole or job).lost
        if lost is not None:    # it was begun before what it reads was there, which never was
            assert isinstance(lost, TaskError), "what has begun is not cancelled"
            error = error or lost
        if error is None:
            self._forecast.ended(job, way, seconds)
        self.newest.append(Ended(
            job.number, job.task.name, way.variant.name, job.where, job.cores, *when,
            job.seconds, error is not None,
        ))  # fmt: skip
        if job.whole is not None:
            piece, job = job, job.whole
            piece.let_go()
            pieces, (start, end) = job.pieces, when
            is_over, error = pieces.over(piece, start, error, seconds), pieces.error
            when = pieces.start, end
            if error is not None:   # no other piece is begun
                assert job.placed is not None, "whose pieces are done"
                job.placed.lane.remove(job)
            if not is_over:
                return None
            if error is None:
                self._learn(job, pieces.took_s)
        if error is None and job.outcome is not None:
            job.outcome.ended(*when)
        future = future_of(job)
        future.written = [touch for touch in job.touches if touch.writes]
        if error is not None:
            job.lost, self.any_lost = error, True
            self._failed += [future] if len(self._failed) < MOST_FAILED else []
        return future

    def _learn(self, share: Job, seconds: float) -> None:
        """What a share of a kernel took, piece by piece: one in one piece may be long ago."""
        way = share.placed
        if seconds and way is not None and way.lane.device is not None:
            self._forecast.ended(share, way, seconds)

    def passed(self, n: int) -> bool:
        """So many jobs are over, and who waits for them knows: whether all are."""
        self.n_over, self.n_left = self.n_over + n, self.n_left - n
        return not self.n_left

    def unseen(self) -> list[TaskFuture]:
        """Those that have failed since this was asked last, and nobody has seen that."""
        found = [future for future in self._failed if not future.seen]
        self._failed = []
        return found
