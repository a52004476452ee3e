# SPDX-License-Identifier: MIT
"""Pools: `ct.tasks()` takes tasks, and does them on host cores and devices.

Collective are the opening and the end of a pool, where there are several ranks: they share the
devices and the cores of their node.  All else is each rank's own.
"""
# docs/decisions/0072-tasks-are-ordered-by-what-they-touch.md
from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import wait
from types import TracebackType
from typing import Any

from controllers.estimates.estimates import Estimates
from controllers.pool import order
from controllers.pool.chunks import by_rows, pairwise
from controllers.pool.crew import Crew
from controllers.pool.data import Touch
from controllers.pool.ends import Ends
from controllers.pool.forecast import Forecast
from controllers.pool.hybrid.composites import Composite, Composites
from controllers.pool.hybrid.hybrid import Hybrid, Replicated, Series
from controllers.pool.job import Entered, Job, Lost, TaskFuture, check_outside, future_of, tell
from controllers.pool.learning import learn_meanwhile
from controllers.pool.pool_report import PoolReport, timeline_of
from controllers.pool.side.opening import opened
from controllers.pool.submissions import Submissions
from controllers.pool.task import Task
from controllers.pool.task_error import TaskError
from controllers.pool.variant import Body
from controllers.report.trace_file import save_timeline
from controllers.settings.overrides import overrides
from hitmap.comm import Communicator, SerialCommunicator


class Pool:
    """Cores and devices that do tasks; made by `ct.tasks`, to be used in a `with` block.

    Its methods may be called by several threads, and `submit` by tasks, too.
    """

    def __init__(
        self, devices: str | Sequence[str] | None, cores: int | None, zero_copy: bool,
        memory_cap: str | int | None, exclusive: bool, estimates: Estimates, comm: Communicator,
    ) -> None:  # fmt: skip
        self.comm = comm
        self._lanes, self._share, self._memories = opened(
            comm, devices, cores, zero_copy, memory_cap, exclusive
        )
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._forecast = Forecast(estimates, self._share.n, self._lanes, self._memories)
        self._crew = Crew(self._lanes, self._lock, self._forecast, self._share, self._do)
        self._submissions = Submissions(self._lanes)
        how = self._memories, self._share, (self._begin, self._noted), self._lock
        self._composites = Composites(self, self._submissions, self._forecast, *how)
        self._ends, self._closed = Ends(self._forecast), False

    def __repr__(self) -> str:
        return f"<pool of {self._share.n} cores{''.join(f', {x.name}' for x in self._lanes[1:])}>"

    def submit(self, task: Task | Body | Composite, /, *args: Any, **kwargs: Any) -> TaskFuture:
        """Have `task` done with these arguments, after all that it has to follow; at once back.

        task: made by `ct.task`, `ct.hybrid` ..., or a function, for one core.  Arrays are read,
        unless the task says otherwise, or the call: `ct.writing(array)`, `ct.updating(array)`.
        Until `wait`, or the result of what writes it, tasks alone look at an array and change it.
        A future stands for its result.  TypeError for arguments that the task does not take,
        ValueError where no variant can be done here, or an array cannot be written or ordered.
        """
        with self._lock:
            if self._closed:
                raise RuntimeError("the pool is closed, and takes no tasks; open another one")
            if isinstance(task, (Hybrid, Replicated, Series)):
                future, lost = self._composites.submitted(task, args, kwargs)
            else:
                job = self._submissions.job(task, args, kwargs, self)
                future, lost = self._noted(job, job.touches, *self._begin(job, job.touches))
            if self._forecast.is_overdue:
                self._forecast.refresh()
        tell(lost)
        return future

    def _begin(self, job: Job, touches: Sequence[Touch]) -> tuple[list[Job], bool]:
        """Let a job wait for what comes before it: that, and whether it, a kernel, has begun."""
        is_first = not (self._ends.n_left or self._ends.any_lost or job.waits_for_values)
        self._ends.n_left += 1
        begun = is_first and self._crew.begin(job, job.may_run)     # it has nobody to follow
        befores = order.follow(job, touches)
        if not (is_first or job.waits or job.lost):
            begun = self._crew.begin(job, job.may_run)
        return befores, begun

    def _noted(
        self, job: Job, touches: Sequence[Touch], befores: Sequence[Job], begun: bool
    ) -> Entered:
        """Have later ones wait for a job, and place it; unless it has begun it is for threads."""
        if is_placed := len(job.may_run) == 1:
            self._crew.attend(job.may_run[0].lane)
        order.enter(job, touches, self._forecast.clock_s)
        self._forecast.place(job, befores)
        if job.pieces is not None:
            job.pieces.place()
        future = future_of(job)
        if job.waits == 0 and (job.joins or job.lost is not None):
            return future, [(future, job.lost), *self._pass_on([job])]
        if job.waits == 0 and not begun:
            (self._crew.push if is_placed else self._crew.start)(job)
        return future, []

    def map(
        self, task: Task | Body, /, *iterables: Any, rows: int | None = None,
        timeout: float | None = None,
    ) -> Iterator[Any]:  # fmt: skip
        """The results of `task` with the items of `iterables`, in order; all are submitted now.

        rows: cut the arrays among `iterables`, which have as many rows, into parts of so many
            rows, the items; what is no array is given to all.  timeout: of each result, in seconds.
        """
        futures = [self.submit(task, *given) for given in by_rows(iterables, rows)]
        return (future.result(timeout) for future in futures)

    def map_reduce(
        self, task: Task | Body, combine: Task | Body, /, *iterables: Any, rows: int | None = None
    ) -> TaskFuture:
        """The future of the results of `map`, combined: `combine(a, b)` of neighbours, pairwise.

        The order is the same whatever is done when and where.  ValueError without an item.
        """
        futures = [self.submit(task, *given) for given in by_rows(iterables, rows)]
        return pairwise(futures, lambda a, b: self.submit(combine, a, b))

    def wait(self, timeout: float | None = None) -> None:
        """Block until all tasks are over; arrays then hold what these made of them.

        Raises the first TaskError that nobody has seen, TimeoutError after `timeout` seconds.
        """
        check_outside("to wait for all tasks")
        with self._changed:
            def is_over(within_s: float | None) -> bool:
                return self._changed.wait_for(lambda: not self._ends.n_left, within_s)

            learn_meanwhile(self._forecast, self._lock, is_over)
            if not is_over(timeout):
                n = self._ends.n_left
                raise TimeoutError(f"{n} tasks are not over after {timeout} s; wait longer")
            self._settle()
            unseen = self._ends.unseen()
        for future in unseen[:1]:
            raise future.exception() or RuntimeError("a failed future has an error")

    def report(self) -> PoolReport:
        """What was done where, of the newest tasks, and why there; `str` of it is a table."""
        with self._lock:
            return PoolReport.of(
                self._ends.newest, self._forecast.decisions, self._ends.n_over,
                self._crew.n_stolen, self._memories.moved_nbytes,
            )  # fmt: skip

    def save_timeline(self, path: str | os.PathLike[str]) -> None:
        """Write when each of the newest tasks of this rank was done, for ui.perfetto.dev."""
        with self._lock:
            timeline = timeline_of(self._ends.newest, self.comm.rank)
        save_timeline(timeline, path, SerialCommunicator())

    def close(self) -> None:
        """`wait`, and give back the devices; raises what `wait` raises."""
        if not self._closed:
            try:
                self.wait()
                overrides().tasks_over(self)
            finally:
                self._end()

    def __enter__(self) -> Pool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:  # fmt: skip
        if error is None:
            self.close()
        elif not self._closed:  # which is the one to report
            with self._lock:
                for job in [entry[2] for lane in self._lanes for entry in lane.ready]:
                    self.cancel(job)
            self._end()

    def cancel(self, job: Job) -> bool:
        """Of a future: have it not done; False where it has started or is over."""
        with self._lock:
            found = order.cancel(job)
            if found is None:
                return False
            self._ends.any_lost = True
            futures = [future_of(one) for one in found]
            lost = self._pass_on([one for one in found if self._crew.drop(one)])
        for future in futures:
            future.note_cancelled()
        tell(lost)
        return True

    def wait_for(self, future: TaskFuture) -> None:
        """Of a future: somebody is going to wait for it."""
        self._crew.end_soon(future.job)
        learn_meanwhile(self._forecast, self._lock, lambda s: bool(wait([future], s).done))

    def note_end(self, job: Job) -> None:
        """Of a future: the program knows that its job is over."""
        with self._lock:
            self._forecast.go_on(job.end_s)

    def bring_home(self, future: TaskFuture, timeout: float | None) -> None:
        """Of a future: bring what its job has written to the host, as tasks so far leave it."""
        with self._lock:
            if not self._memories.any or self._closed:
                return
            jobs = (future, *future.parts)
            if not (stale := self._memories.away(t for one in jobs for t in one.written)):
                return
            home = self.submit(_HOME, *(touch.view for touch in stale))
        home.exception(timeout)

    def _do(self, job: Job) -> None:
        """In a thread: do a job that is ready, or the rest of one that was begun."""
        way, value, error, seconds = job.way, None, None, 0.0
        assert way is not None, "a job that was placed"
        start = end = time.perf_counter_ns()
        try:
            if job.whole is not None:
                with self._lock:
                    job.whole.pieces.fill(job)
            job.taken = job.taken or self._share.take(way, job.lanes, job.task.name)
            job.cores, job.lanes = job.taken.found
            start = time.perf_counter_ns()
            if job.launched is not None:
                start = job.launched.start = max(job.launched.start, way.lane.ended)
            try:
                value, seconds = way.lane.side.run(job, self._crew.soon(job, way.lane))
            finally:
                end = way.lane.ended = time.perf_counter_ns()
                if job.taken is not None:       # else the next piece has it
                    self._share.give(job.taken)
        except BaseException as found:
            error = TaskError.of(found, job.task.name, way.variant.name, job.where)
        self._over(job, value, error, seconds, (start, end))

    def _over(
        self, one: Job, value: Any, error: TaskError | None, seconds: float, when: tuple[int, int]
    ) -> None:
        with self._lock:
            future = self._ends.add(one, error, seconds, when)
            if future is None:      # other pieces of it are not over
                return
        job = future.job
        if job.lost is None:    # before those start that read it
            future.set_result(value)
        else:
            future.set_exception(job.lost)
        with self._lock:
            lost = self._pass_on([job])
        tell(lost)

    def _pass_on(self, jobs: list[Job]) -> list[Lost]:
        """These are over: start what is ready; what will not be done is returned."""
        ready, lost = order.finish(jobs)
        for one in ready:
            self._crew.start(one)
        if self._ends.passed(len(jobs) + len(lost)):
            self._changed.notify_all()
        return lost

    def _settle(self) -> None:
        """All is over: the host has all cells, and who has touched them is forgotten."""
        self._forecast.go_on_to_end()
        self._submissions.data.settle(self._memories.forget)
        self._ends.any_lost = False

    def _end(self) -> None:
        """Wait for what has started, and give back threads and devices."""
        with self._lock:
            self._closed = True
            self._crew.end()
        self._crew.join()
        with self._lock:
            self._settle()
            self._forecast.keep()
        for lane in self._lanes:
            lane.side.close()
        self._share.close()


_HOME = Task("to the host")
_HOME.variant(lambda *arrays: None)
