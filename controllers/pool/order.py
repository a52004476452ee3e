# SPDX-License-Identifier: MIT
"""In which order jobs are done: by what they touch, in the order of their submission.

A job waits for those that write what it touches, and where it writes, for those that read it.
Only those whose values it *reads* can spoil it: if they fail or are cancelled, it is not done.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import CancelledError

from controllers.pool.data import LEAST_LOOKS, Datum, Touch
from controllers.pool.job import OVER, RUNNING, Job, Lost, future_of
from controllers.pool.task_error import TaskError

MOST_REMEMBERED = 256   # entries of one datum's history that are over, for the forecast


def befores_of(job: Job, touches: Sequence[Touch] | None = None) -> dict[Job, bool]:
    """The jobs that come before one that touches this, and whether it reads what they give."""
    befores: dict[Job, bool] = dict.fromkeys(job.waits_for_values, True)
    for touch in job.touches if touches is None else touches:
        history, cells = touch.datum.history, (touch.box,)
        reads = touch.reads
        for other in history.before_read(cells):
            befores[other] = reads or befores.get(other, False)
        for other in history.readers(cells) if touch.writes else ():
            befores.setdefault(other, False)
    return befores


def follow(job: Job, touches: Sequence[Touch]) -> list[Job]:
    """Let it wait for what comes before it; returns those whose end its start is foreseen by.

    touches: what it is ordered by.
    """
    befores = befores_of(job, touches)
    for other, reads in befores.items():
        if other.state != OVER:
            other.followers.append((job, reads))
            job.before.append(other)
            job.waits += 1
        if reads and other.lost is not None:
            lose(job, other)
    return list(befores)


def enter(job: Job, touches: Sequence[Touch], clock_s: float) -> None:
    """Let those that touch this come after it, from now on."""
    for touch in touches:
        history, cells = touch.datum.history, (touch.box,)
        (history.wrote if touch.writes else history.read)(cells, job)
        touch.datum.uses += 1
        if touch.datum.uses % LEAST_LOOKS == 0:
            _tidy(touch.datum, clock_s)


def _tidy(datum: Datum, clock_s: float) -> None:
    """Forget what is over, but not what has failed: its cells are spoilt.

    What the forecast believes to be under way is remembered, so that it does not depend on when
    jobs end; but not too much of that.
    """
    over = [one for one in datum.history.pending() if one.state == OVER and one.lost is None]
    old = {one for one in over if one.end_s <= clock_s}
    if len(over) - len(old) > MOST_REMEMBERED:
        old = set(over)
    datum.history.forget(old.__contains__)


def lose(job: Job, other: Job) -> None:
    """`job` will not be done, since `other` is not, which it reads from."""
    if job.lost is None and isinstance(other.lost, TaskError):
        job.lost = TaskError.after(other.lost, job.task.name)
    elif job.lost is None and other.lost is not None:
        job.lost = CancelledError()


def cancel(job: Job) -> list[Job] | None:
    """Those that will not be done now, with parts of it; None where it has started or is over."""
    parts = [] if job.future is None else [one.job for one in job.future.parts]
    if any(one.state in (RUNNING, OVER) for one in parts):
        return None
    found = _cancelled(job)
    for part in parts if found else ():
        found = [*(found or []), *(_cancelled(part) or [])]
    return found


def _cancelled(job: Job) -> list[Job] | None:
    if job.state in (RUNNING, OVER) or isinstance(job.lost, TaskError):
        return [] if isinstance(job.lost, CancelledError) else None
    if job.lost is not None:
        return []
    job.lost, found, at = CancelledError(), [job], 0
    while at < len(found):
        for follower, reads in found[at].followers:
            if reads and follower.lost is None:
                lose(follower, found[at])
                found.append(follower)
        at += 1
    return found


def finish(jobs: Iterable[Job]) -> tuple[list[Job], list[Lost]]:
    """These are over; which can start now, and which are over with them, or lost."""
    ready: list[Job] = []
    lost: list[Lost] = []
    left = list(jobs)
    while left:
        job = left.pop()
        job.state = OVER
        for follower, reads in job.followers:
            if reads:
                lose(follower, job)
            follower.waits -= 1
            if follower.waits:
                continue
            if follower.state == RUNNING:   # it was begun before; lost, it ends with its launch
                ready += [follower] if follower.n_left and follower.lost is None else []
                continue
            if follower.joins or follower.lost is not None:
                lost.append((future_of(follower), follower.lost))
                left.append(follower)
            else:
                ready.append(follower)
        job.followers = []
        job.let_go()
    return sorted(ready, key=lambda one: one.number), lost
