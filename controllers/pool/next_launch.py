# SPDX-License-Identifier: MIT
"""What a device is given to do next while it does something: so it does not wait for the host."""
# docs/decisions/0114-the-next-piece-is-begun-beside-the-last-one.md
# docs/decisions/0118-who-follows-is-enqueued-before-it-is-its-turn.md
from __future__ import annotations

from controllers.pool.job import Job
from controllers.pool.lane import Lane

MOST_BESIDE = 0.6       # of what is left, that is started while another piece is done


def next_launch(job: Job, lane: Lane) -> Job | None:
    """The next piece of the share that `job` is of, or else the job that waits for it alone.

    About as much of a share is left for who is done before, since nobody can take over what was
    started.  A job that waits is what the lane would do next, if it is the most urgent one of these
    and nothing else is ready.  It would change cells that are still to be sent to the host: none
    then.  For who holds the pool's lock.
    """
    share = job.whole or job
    if lane.ready:
        if lane.ready[0][2] is not share:
            return None
        piece: Job = share.pieces.first()
        return piece if piece.seconds <= MOST_BESIDE * share.pieces.left_s else None
    if job.sent or share.lost or (job.whole is not None and not share.pieces.is_last(job)):
        return None
    waiting = [one for one, _ in share.followers if _is_for(lane, one)]
    if not waiting:
        return None
    found = max(waiting, key=lambda one: (one.rank_s, -one.number))
    first: Job = found if found.pieces is None else found.pieces.first()
    return first


def _is_for(lane: Lane, job: Job) -> bool:
    """Whether it is for the lane as soon as one more job is over."""
    return (
        job.waits == 1 and job.placed is not None and job.placed.lane is lane
        and not job.joins and job.replicas is None and job.lost is None
    )  # fmt: skip
