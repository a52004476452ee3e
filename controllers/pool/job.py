# SPDX-License-Identifier: MIT
"""A job: a task with the arguments that it was submitted with, until it is over."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from typing import Any, Protocol, TypeAlias

from controllers.arbiter.held import of_task
from controllers.estimates.task_key import Work
from controllers.pool.data import Touch
from controllers.pool.lane import Lane
from controllers.pool.launched import Launched
from controllers.pool.share import Taken
from controllers.pool.task import Task
from controllers.pool.task_error import TaskError
from controllers.pool.variant import Variant
from controllers.pool.way import Way, with_devices

WAITING, READY, RUNNING, OVER = range(4)


class Owner(Protocol):
    """What futures ask of their pool."""

    def cancel(self, job: Job) -> bool: ...
    def note_end(self, job: Job) -> None: ...
    def wait_for(self, future: TaskFuture) -> None: ...
    def bring_home(self, future: TaskFuture, timeout: float | None) -> None: ...


class TaskFuture(Future[Any]):
    """What becomes of a job: as a future of `concurrent.futures`.

    `result` and `exception` wait, not longer than `timeout` seconds, and raise TimeoutError, or
    CancelledError; `result` raises the TaskError of a job that failed.  When `result` returns, the
    arrays that the job has written hold what tasks submitted by then make of them.
    """

    def __init__(self, owner: Owner, job: Job) -> None:
        super().__init__()
        self.owner, self.job = owner, job
        self.written: list[Touch] = []      # by its job, when that is done
        self.parts: list[TaskFuture] = []   # whose end this one is
        self.seen = False   # somebody has asked how it ended

    def __repr__(self) -> str:
        return f"<future of task {self.job.task.name!r}, number {self.job.number}>"

    def running(self) -> bool:
        """Whether it has started, and is not over."""
        return self.job.state == RUNNING and not self.done()

    def cancel(self) -> bool:
        """Have it not done, and what reads what it was to give; False where it has started."""
        return self.owner.cancel(self.job)

    def note_cancelled(self) -> None:
        """Tell who waits; it has not started, and never will."""
        super().cancel()
        self.set_running_or_notify_cancel()

    def result(self, timeout: float | None = None) -> Any:
        """What the function has returned; None of a kernel."""
        self._wait_for(timeout)
        found = super().result(timeout)
        self.owner.note_end(self.job)
        self.owner.bring_home(self, timeout)
        return found

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """The TaskError, or None where it went well."""
        self._wait_for(timeout)
        found = super().exception(timeout)
        self.owner.note_end(self.job)
        return found

    def _wait_for(self, timeout: float | None) -> None:
        if not self.done() and timeout != 0:
            check_outside(f"to wait for {self!r}")
            if timeout is None:
                self.owner.wait_for(self)
        for future in (self, *self.parts):
            future.seen = True


class Job:
    """One submission.

    waits_for_values: the jobs whose results are among its arguments.  waits: how many jobs have to
    be over before it starts.  followers: those that wait for it, and whether they read what it
    gives.  lost: why it will never be done.  before: unfinished jobs that
    it waits for.  size: how much it has to do.  rows: of a part of a task, from the first one
    to before the last one.  cores, lanes: those that it has, and those whose devices it has as a
    function, foreseen before it starts.  pieces: in which it is done, `at_once` of them
    at the same time by its lane.  whole: of which it is a piece, which knows who waits for it, and
    in which ways it may be done.  replicas: where devices do what the host does, too.
    sent: whether the host has to have what it writes at once.  joins: it does nothing, and is over
    with those that it waits for.  took_s: how long it took, with what was moved before, moved_s.
    outcome: of the task that it is a part of.
    call: that was looked at for it before.
    taken, launched: of a kernel what it has, and its launch, if it was begun by who submitted it.
    start_s, end_s: foreseen, on the clock of the forecast; rank_s: from its start to the end of
    all that follows from it.
    """

    state = WAITING
    waits = 0
    lost: TaskError | CancelledError | None = None
    future: TaskFuture | None = None
    way: Way | None = None
    placed: Way | None = None
    cores = 1
    lanes: tuple[Lane, ...] = ()
    rows: tuple[int, int] | None = None
    at_once = 1
    pieces: Any = None      # of controllers.pool.pieces, which knows of jobs
    whole: Job | None = None
    replicas: dict[Any, Any] | None = None
    sent = joins = False
    outcome: Any = None     # of controllers.pool.hybrid.outcome, which knows of jobs
    taken: Taken | None = None
    launched: Launched | None = None
    moved_s = took_s = seconds = start_s = end_s = rank_s = 0.0

    def __init__(
        self, number: int, task: Task, args: Sequence[Any], kwargs: Mapping[str, Any],
        touches: list[Touch], owner: Owner, may_run: Sequence[Way] = (), size: float = 0.0,
        waits_for_values: Sequence[Job] = (), call: Any = None,
    ) -> None:  # fmt: skip
        self.number, self.task, self.touches = number, task, touches
        self.args, self.kwargs = args, kwargs
        self.may_run, self.size = may_run, size
        self.waits_for_values = waits_for_values
        self.call = call    # of controllers.pool.calls, which knows of jobs
        self.owner: Owner | None = owner
        self.followers: list[tuple[Job, bool]] = []
        self.before: list[Job] = []

    @property
    def left_s(self) -> float:
        """What is foreseen for what nobody has begun of it."""
        return self.seconds if self.pieces is None else float(self.pieces.left_s)

    @property
    def n_left(self) -> int:
        """Pieces of it that nobody has begun; a job that is not done in pieces is one."""
        return self.state < RUNNING if self.pieces is None else int(self.pieces.n_left)

    @property
    def helpers(self) -> list[Lane]:
        """Other lanes that are to do a part of it, as its share was a guess."""
        if self.pieces is None or self.placed is None or not self.pieces.awaits_help:
            return []
        return [way.lane for way in self.may_run if way.lane is not self.placed.lane]

    def __repr__(self) -> str:
        return f"<job {self.number} of {self.task.name!r}>"

    @property
    def variant(self) -> Variant:
        assert self.way is not None, "a job that was placed"
        return self.way.variant

    @property
    def where(self) -> str:
        """Where it is done, for people."""
        assert self.way is not None, "a job that was placed"
        name = self.way.lane.name
        return with_devices(name, [lane.name for lane in self.lanes]) if self.lanes else name

    def work(self, way: Way) -> Work | None:
        """What it does there, as far as that is known without doing it."""
        if self.call is None or self.rows is not None:
            return way.work(self.touches, self.rows)
        works: dict[Way, Work | None] = self.call.works
        if way not in works:
            works[way] = way.work(self.touches)
        return works[way]

    def give(self, args: Sequence[Any], touches: list[Touch]) -> None:
        """Have it done with other arguments, which touch this, and before it waits with them."""
        self.args, self.touches, self.call = args, touches, None
        self.waits_for_values = [one.job for one in args if isinstance(one, TaskFuture)]

    def let_go(self) -> None:
        """Of what it was given, as it is over; or what it touched would be kept by its history."""
        self.future, self.owner, self.call, self.waits_for_values = None, None, None, ()
        self.args, self.kwargs, self.touches = [], {}, []
        self.before, self.may_run, self.replicas, self.pieces = [], [], None, None


def future_of(job: Job) -> TaskFuture:
    """The future of a job that is not over, made when it is first asked for.

    For who holds the pool's lock.
    """
    if job.future is None:
        assert job.owner is not None, "a job that is not over"
        job.future = TaskFuture(job.owner, job)
    return job.future


# What is over and was not done, and why; None of what only waits for others, which were done.
Lost: TypeAlias = "tuple[TaskFuture, TaskError | CancelledError | None]"
# The future of a job that was submitted, and what is over with it.
Entered: TypeAlias = "tuple[TaskFuture, list[Lost]]"


def tell(lost: Iterable[Lost]) -> None:
    """Let those know who wait for these futures; without the pool's lock, as they call back."""
    for future, why in lost:
        if future.done():   # cancelled
            continue
        if why is None:
            future.set_result(None)
        elif isinstance(why, TaskError):
            future.set_exception(why)
        else:
            future.note_cancelled()


def check_outside(what: str) -> None:
    """RuntimeError in a task: what it waits for may need the cores that it holds."""
    if of_task() is not None:
        raise RuntimeError(
            f"{what} is not possible within a task, whose cores that may need; give the future to "
            f"submit as an argument, and the task is started when it is done"
        )
