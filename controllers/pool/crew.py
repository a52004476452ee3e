# SPDX-License-Identifier: MIT
"""The threads of a pool: those of a lane do its jobs, and late ones of others."""
from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue

from controllers.pool.forecast import Forecast
from controllers.pool.job import READY, RUNNING, Job
from controllers.pool.lane import Bell, Lane
from controllers.pool.next_launch import next_launch
from controllers.pool.share import Share
from controllers.pool.stealing import stolen
from controllers.pool.way import Way

REST_S = 0.005  # of a thread without work, until it looks whether others want what is leased
LOOK_S = 0.02   # most between two looks, also at jobs that wait elsewhere
POLLED_S = 2.5e-4       # of who waits for a kernel that is over soon, until a thread is to end it


class Crew:
    """Starts jobs that are ready: the most urgent one of a lane first.

    A thread that finds nothing takes the least urgent job of another lane, where even the upper end
    of what it may take here is sooner than what is foreseen there: estimates were wrong then.
    do: what does a job, or ends one that was begun, in one of the threads.  All but the threads
    hold the lock.
    """

    def __init__(
        self, lanes: Sequence[Lane], lock: threading.RLock | threading.Lock, forecast: Forecast,
        share: Share, do: Callable[[Job], None],
    ) -> None:  # fmt: skip
        self._lanes, self._lock, self._forecast = lanes, lock, forecast
        self._share, self._do = share, do
        self._threads: list[threading.Thread] = []
        self._ended = False
        self.n_stolen = 0

    def start(self, job: Job) -> None:
        """`job` is ready, and was placed: begin it, or else push it."""
        assert job.placed is not None, "the forecast has seen it"
        is_begun = self.begin(job, (job.placed,))
        self.attend(job.placed.lane)
        if not is_begun:
            self.push(job)

    def push(self, job: Job) -> None:
        """`job` is for threads of its lane, woken with those who are to help; else one of another.
        """
        assert job.placed is not None, "the forecast has seen it"
        lane, woken = job.placed.lane, False
        if job.state != RUNNING:    # a piece of it
            job.state = READY
        if job.pieces is not None:
            job.pieces.look_for_help()
        lane.push(job)
        for _ in range(min(job.n_left, job.at_once)):
            if not self._has_room(lane) or not (lane.ring() or self._start(lane)):
                break
            woken = True
        for other in job.helpers:
            woken = other.ring() or self._start(other) or woken
        for way in () if woken else job.may_run:
            if way.lane is not lane and (way.lane.ring() or self._start(way.lane)):
                break

    def begin(self, job: Job, ways: Sequence[Way]) -> bool:
        """Start a kernel where nothing has to be waited for, and nobody to be asked; if it was.

        There is one way, its device has nothing to do, and who calls this calls `attend` after it.
        Of a job in pieces one is started, and the others are left to threads, if there are some.
        """
        if len(ways) != 1:
            return False
        way, lane = ways[0], ways[0].lane
        if lane.device is None or lane.ready or lane.running or self._ended:
            return False
        taken = self._share.take_now(way)
        if taken is None:
            return False
        one: Job = job if job.pieces is None else job.pieces.first()
        one.way, one.taken, begun = way, taken, False
        try:
            if one.whole is not None:
                one.whole.pieces.fill(one)
            begun = lane.side.begin(one)
        except Exception:   # the thread will meet it again, and tell
            pass
        finally:
            if not begun:
                self._share.give(taken)
                one.taken = None
        if begun:
            lane.begun = one
            if one is not job:
                lane.take(one)
            self._run(one, lane)
        return begun and (one is job or not job.pieces.n_left)

    def attend(self, lane: Lane) -> None:
        """A thread of the lane is woken for what has begun there, if anything has, to end it."""
        if lane.begun is not None and not lane.ring():
            self._start(lane)

    def end_soon(self, job: Job) -> None:
        """For who waits for `job`, without the lock: end it, if it has begun and is over soon.

        A change of threads, with all that the other one finds in the caches of another core, takes
        longer than such a kernel.  But who looks, and submits the next one, keeps the interpreter's
        lock, which threads of other lanes may want.
        """
        launched = job.launched
        if launched is None or job.seconds > POLLED_S or job.waits:
            return
        assert job.way is not None, "a job that has begun"
        lane = job.way.lane
        if self._is_busy(but=lane) or not launched.ends_within(POLLED_S):
            return
        with self._lock:
            if lane.begun is not job:   # a thread has it
                return
            lane.begun = None
        try:
            self._do(job)
        finally:
            self._did(job, lane, math.inf)
            with self._lock:
                self.attend(lane)   # something may have begun meanwhile
                if lane.ready:
                    lane.ring()
                elif lane.begun is None:
                    self._leave_cores(lane)
        why = None if job.lost is None else job.lost.__cause__
        if isinstance(why, KeyboardInterrupt):  # it was meant for who waits
            raise why

    def soon(self, job: Job, lane: Lane) -> Callable[[], None] | None:
        """For the thread that does a job: what to call before that is over, if it is of use."""
        if lane.device is None or not (job.followers or job.whole or job.seconds > POLLED_S):
            return None
        return lambda: self._begin_next(job, lane)

    def _begin_next(self, job: Job, lane: Lane) -> None:
        """Start what the device does next, which has what `job` has, while that is not over.

        Where it cannot be started yet, the thread does it next, and meets what was wrong again.
        """
        if not (lane.ready or (job.whole or job).followers):
            return
        with self._lock:
            one = None if self._share.is_awaited() else next_launch(job, lane)
            if one is None:
                return
            one.way, lane.begun = one.placed, one
            if one.whole is not None:
                lane.take(one)
            self._run(one, lane)
            with suppress(Exception):
                if one.whole is not None:
                    one.whole.pieces.fill(one)
        with suppress(Exception):
            is_follower = one.whole is None or one.whole is not job.whole
            if one.touches and lane.side.begin_beside(one, in_turn=is_follower):
                one.taken, job.taken = job.taken, None

    def drop(self, job: Job) -> bool:
        """`job` is not done; whether it was ready."""
        if job.state == READY:
            assert job.placed is not None, "the forecast has seen it"
            job.placed.lane.remove(job)
        return job.state == READY

    def end(self) -> None:
        """Threads end when their jobs are over."""
        self._ended = True
        for lane in self._lanes:
            while lane.bells:
                lane.bells.pop().put(False)

    def join(self) -> None:
        """Block until they have; without the lock."""
        for thread in self._threads:
            thread.join()

    def _start(self, lane: Lane) -> bool:
        """One more thread of a lane, unless it has all."""
        if lane.n_started == lane.n_threads:
            return False
        lane.n_started += 1
        name = f"tasks of {lane.name}"
        thread = threading.Thread(target=self._serve, args=(lane,), name=name, daemon=True)
        self._threads.append(thread)
        thread.start()
        return True

    def _serve(self, lane: Lane) -> None:
        bell: Bell = SimpleQueue()
        rested, rest_s, since_s = False, REST_S, time.perf_counter()
        while True:
            with self._lock:
                job = self._next(lane) if self._has_room(lane) else None
                if job is None:
                    if self._ended and not lane.ready and lane.begun is None:
                        return
                    self._leave_cores(lane)
                    lane.bells.append(bell)
                    look_s = LOOK_S if any(other.ready for other in self._lanes) else None
                    if not rested:
                        look_s = rest_s
            if job is not None:
                self._do(job)
                since_s = self._did(job, lane, since_s)
                rested, rest_s = False, REST_S
                del job     # and what it holds, before the next one comes
                continue
            try:
                bell.get(timeout=look_s)
                is_rung = True
            except Empty:
                if not rested:
                    rested = self._share.rest(rest_s == LOOK_S and not self._is_busy())
                    rest_s = min(2 * rest_s, LOOK_S)
                with self._lock:
                    is_rung = bell not in lane.bells    # just now
                    if is_rung:
                        bell.get()
                    else:
                        lane.bells.remove(bell)
            if is_rung:     # by somebody who may end what it is for, and leave a lease idle
                rested, rest_s = False, REST_S
            since_s = time.perf_counter()

    def _did(self, job: Job, lane: Lane, since_s: float) -> float:
        """A job is over that a thread had since then, or since it was begun: now, in seconds."""
        now_s = time.perf_counter()
        with self._lock:
            since_s = min(since_s, lane.running.pop(job))
            if job.took_s:      # it has not failed
                lane.overheads.append(max(0.0, now_s - since_s - job.took_s))
        return now_s

    def _has_room(self, lane: Lane) -> bool:
        """Whether a thread of a lane may start a job, or end what has begun.

        On a device one at a time: what was begun beside another one is ended after that.  Of the
        host beside devices that need its cores: else functions would get in between the kernels of
        a device, which then do not end together.
        """
        if lane.device is not None:
            return len(lane.running) <= (lane.begun is not None)
        helpers = lane.ready[0][2].helpers if lane.ready else ()
        taken = sum(
            other.cores for other in self._lanes
            if other.ready or other.running or other in helpers
        )  # fmt: skip
        return len(lane.running) < max(1, lane.n_threads - taken)

    def _leave_cores(self, lane: Lane) -> None:
        """A lane has nothing to do: functions may have the cores of its device."""
        for other in self._lanes if lane.cores and not lane.running else ():
            n_ready = sum(one[2].n_left for one in other.ready)
            for _ in range(min(lane.cores, n_ready) if other.device is None else 0):
                if not other.ring() and not self._start(other):
                    break

    def _is_busy(self, but: Lane | None = None) -> bool:
        return any(lane.ready or lane.running for lane in self._lanes if lane is not but)

    def _next(self, lane: Lane) -> Job | None:
        job: Job | None
        if lane.begun is not None:
            job, lane.begun = lane.begun, None
            if lane.running[job] < lane.ended / 1e9:    # it was begun beside another one
                lane.running[job] = time.perf_counter()
            return job
        job = lane.first()
        if job is not None:
            job.way = job.placed
            lane.take(job)
        else:
            job = self._stolen(lane)
        if job is not None:
            self._run(job, lane)
        return job

    def _run(self, job: Job, lane: Lane) -> None:
        job.state = RUNNING
        if job.whole is not None:
            job.whole.state = RUNNING
        lane.running[job] = time.perf_counter()

    def _stolen(self, lane: Lane) -> Job | None:
        job = stolen(lane, self._lanes, self._forecast)
        self.n_stolen += job is not None
        return job
