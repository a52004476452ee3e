# SPDX-License-Identifier: MIT
"""Jobs that a lane with nothing to do takes from another one: estimates were wrong there."""
from __future__ import annotations

from collections.abc import Sequence

from controllers.pool.forecast import Forecast
from controllers.pool.job import Job
from controllers.pool.lane import Lane
from controllers.pool.pieces import LEAST_TAKEN_S
from controllers.pool.way import Way

MOST_UNSURE = 2.0   # times what is foreseen: little may be known of a lane that has little to do


def stolen(lane: Lane, lanes: Sequence[Lane], forecast: Forecast) -> Job | None:
    """The least urgent job of another lane, or a part of it, if it is done sooner by `lane`.

    The other lane has it no more.  For who holds the pool's lock.
    """
    for victim in lanes:
        if victim is lane or not victim.ready:
            continue
        last: Job = victim.last
        way = next((one for one in last.may_run if one.lane is lane), None)
        if way is None or way.among:
            continue
        job = _sooner(last, way, victim, forecast)
        if job is not None:
            victim.take(job)
            job.way = way
            return job
    return None


def _sooner(job: Job, way: Way, victim: Lane, forecast: Forecast) -> Job | None:
    """`job`, the last one of `victim`, or rows of it, if that is done sooner that way."""
    lane = way.lane
    estimate = forecast.seconds(way, job, job.cores)
    most_s = min(estimate.most_s, MOST_UNSURE * estimate.seconds)
    here_s = most_s + forecast.transfer_s(job, lane)
    if job.pieces is None:
        after_s = job.seconds * (1 - 1 / victim.n_threads)
        return job if here_s < victim.wait_s() + after_s else None
    # of so many rows both lanes are done with theirs at the same time
    assert job.rows is not None, "a part of a task"
    row_s, n_idle = here_s / (job.rows[1] - job.rows[0]), lane.n_threads - len(lane.running)
    n_rows = victim.left_s() / (row_s + n_idle * job.pieces.row_s / victim.n_threads)
    if n_rows * row_s < LEAST_TAKEN_S:
        return None
    found: Job | None = job.pieces.last(n_rows, row_s)
    return found
