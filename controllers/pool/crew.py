# SPDX-License-Identifier: MIT
"""The threads of a pool: those of a lane do its jobs, and late ones of others."""
from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue

from controllers.pool.forecast import Forecast
from controllers.pool.job import READY, RUNNING, Job
from controllers.pool.lane import Bell, Lane
from controllers.pool.share import Share
from controllers.pool.way import Way

REST_S = 0.005  # of a thread without work, until it looks whether others want what is leased
LOOK_S = 0.02   # most between two looks, also at jobs that wait elsewhere


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
        if not self.begin(job, job.placed):
            self.push(job)

    def push(self, job: Job) -> None:
        """`job` is for a thread of its lane, which is woken, else one of another lane, to look."""
        assert job.placed is not None, "the forecast has seen it"
        job.state, lane = READY, job.placed.lane
        lane.push(job)
        woken = self._has_room(lane) and (lane.ring() or self._start(lane))
        if not woken and len(self._lanes) > 1:
            for way in job.may_run:
                other = way.lane
                if other is not lane and (other.ring() or self._start(other)):
                    break

    def begin(self, job: Job, way: Way) -> bool:
        """Start a kernel where nothing has to be waited for, and nobody to be asked; if it was.

        Its device has nothing to do, and a thread of the lane is woken, and waits for its end.
        """
        lane = way.lane
        if not lane.bells or lane.device is None or lane.ready or lane.running:
            return False
        taken = self._share.take_now(way)
        if taken is None:
            return False
        job.way, job.taken, begun = way, taken, False
        try:
            begun = lane.side.begin(job)
        except Exception:   # the thread will meet it again, and tell
            pass
        finally:
            if not begun:
                self._share.give(taken)
                job.taken = None
        if begun:
            lane.begun = job
            self._run(job, lane)
            lane.ring()
        return begun

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
        name = f"tasks of {lane.name}"
        if sum(thread.name == name for thread in self._threads) == lane.n_threads:
            return False
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
                now_s = time.perf_counter()
                with self._lock:
                    since_s = min(since_s, lane.running.pop(job))
                    if job.took_s:      # it has not failed
                        lane.overheads.append(max(0.0, now_s - since_s - job.took_s))
                rested, rest_s, since_s = False, REST_S, now_s
                del job     # and what it holds, before the next one comes
                continue
            try:
                bell.get(timeout=look_s)
            except Empty:
                if not rested:
                    rested = self._share.rest(rest_s == LOOK_S and not self._is_busy())
                    rest_s = min(2 * rest_s, LOOK_S)
                with self._lock:
                    if bell in lane.bells:
                        lane.bells.remove(bell)
                    else:
                        bell.get()      # somebody has rung just now
            since_s = time.perf_counter()

    def _has_room(self, lane: Lane) -> bool:
        """Whether a job more of a lane may start: of the host, beside devices that need its cores.

        Else functions would get in between the kernels of a device, which then do not end together.
        """
        if lane.device is not None:
            return True
        taken = sum(other.cores for other in self._lanes if other.ready or other.running)
        return len(lane.running) < max(1, lane.n_threads - taken)

    def _leave_cores(self, lane: Lane) -> None:
        """A lane has nothing to do: functions may have the cores of its device."""
        for other in self._lanes if lane.cores and not lane.running else ():
            for _ in range(min(lane.cores, len(other.ready)) if other.device is None else 0):
                if not other.ring() and not self._start(other):
                    break

    def _is_busy(self) -> bool:
        return any(lane.ready or lane.running for lane in self._lanes)

    def _next(self, lane: Lane) -> Job | None:
        job: Job | None
        if lane.begun is not None:
            job, lane.begun = lane.begun, None
            return job
        job = lane.pop()
        if job is not None:
            job.way = job.placed
        else:
            job = self._stolen(lane)
        if job is not None:
            self._run(job, lane)
        return job

    def _run(self, job: Job, lane: Lane) -> None:
        job.state = RUNNING
        lane.running[job] = time.perf_counter()

    def _stolen(self, lane: Lane) -> Job | None:
        for victim in self._lanes:
            if victim is lane or not victim.ready:
                continue
            job: Job = max(victim.ready)[2]
            way = next((one for one in job.may_run if one.lane is lane), None)
            if way is not None and not way.among and self._sooner(job, way, victim):
                victim.remove(job)
                job.way = way
                self.n_stolen += 1
                return job
        return None

    def _sooner(self, job: Job, way: Way, victim: Lane) -> bool:
        """Whether `job`, the last one of `victim`, is done sooner here."""
        estimate = self._forecast.seconds(way, job, job.cores)
        here_s = estimate.most_s + self._forecast.transfer_s(job, way.lane)
        return here_s < self._wait_s(victim) + job.seconds

    def _wait_s(self, lane: Lane) -> float:
        """Until the last job of a lane starts; what takes longer than foreseen takes twice that."""
        now_s = time.perf_counter()
        waits_s: float = -max(lane.ready)[2].seconds
        for one, since_s in lane.running.items():
            gone_s = now_s - since_s
            waits_s += one.seconds - gone_s if gone_s < one.seconds else gone_s
        waits_s += sum(one[2].seconds for one in lane.ready)
        return waits_s / lane.n_threads
