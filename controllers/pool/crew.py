# SPDX-License-Identifier: MIT
"""The threads of a pool: those of a lane do its jobs, and late ones of others."""
from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue

from controllers.pool.forecast import Forecast
from controllers.pool.job import READY, RUNNING, Job
from controllers.pool.lane import Bell, Lane
from controllers.pool.pieces import LEAST_TAKEN_S
from controllers.pool.share import Share
from controllers.pool.way import Way

REST_S = 0.005  # of a thread without work, until it looks whether others want what is leased
MOST_BESIDE = 0.6       # of what is left, that is started while another piece is done
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
        is_begun = self.begin(job, (job.placed,))
        self.attend(job.placed.lane)
        if not is_begun:
            self.push(job)

    def push(self, job: Job) -> None:
        """`job` is for threads of its lane, which are woken, else one of another lane, to look."""
        assert job.placed is not None, "the forecast has seen it"
        lane, woken = job.placed.lane, False
        if job.state != RUNNING:    # a piece of it
            job.state = READY
        lane.push(job)
        for _ in range(min(job.n_left, job.at_once)):
            if not self._has_room(lane) or not (lane.ring() or self._start(lane)):
                break
            woken = True
        if not woken and len(self._lanes) > 1:
            for way in job.may_run:
                other = way.lane
                if other is not lane and (other.ring() or self._start(other)):
                    break

    def begin(self, job: Job, ways: Sequence[Way]) -> bool:
        """Start a kernel where nothing has to be waited for, and nobody to be asked; if it was.

        There is one way, its device has nothing to do, and a thread of the lane has to `attend`.
        Of a job in pieces one is started, and the others are left to threads, if there are some.
        """
        if len(ways) != 1:
            return False
        way, lane = ways[0], ways[0].lane
        if not lane.bells or lane.device is None or lane.ready or lane.running:
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
        if lane.begun is not None:
            lane.ring()

    def soon(self, piece: Job, lane: Lane) -> Callable[[], None] | None:
        """For the thread that does a piece on a device: what to call before that is over."""
        return None if lane.device is None else lambda: self._begin_next(piece, lane)

    def _begin_next(self, job: Job, lane: Lane) -> None:
        """Start the next piece of the share, which has what `job` has, while that is not over.

        So a device does not wait for the host between them.  About as much is left for who is done
        before, since nobody can take over what was started.  Where it cannot be started yet, the
        thread does it next, and meets what was wrong again.
        """
        with self._lock:
            whole = job.whole
            if not lane.ready or lane.ready[0][2] is not whole or self._share.is_wanted():
                return
            piece: Job = whole.pieces.first()
            if piece.seconds > MOST_BESIDE * whole.pieces.left_s:
                return
            if whole.pieces.is_fixed:   # it sums, and reads that after what was enqueued by then
                return
            piece.way, lane.begun = job.way, piece
            lane.take(piece)
            self._run(piece, lane)
            with suppress(Exception):
                whole.pieces.fill(piece)
        with suppress(Exception):
            if piece.touches and lane.side.begin_beside(piece):
                piece.taken, job.taken = job.taken, None

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
            n_ready = sum(one[2].n_left for one in other.ready)
            for _ in range(min(lane.cores, n_ready) if other.device is None else 0):
                if not other.ring() and not self._start(other):
                    break

    def _is_busy(self) -> bool:
        return any(lane.ready or lane.running for lane in self._lanes)

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
        for victim in self._lanes:
            if victim is lane or not victim.ready:
                continue
            last: Job = victim.last
            way = next((one for one in last.may_run if one.lane is lane), None)
            if way is None or way.among:
                continue
            job = self._sooner(last, way, victim)
            if job is not None:
                victim.take(job)
                job.way = way
                self.n_stolen += 1
                return job
        return None

    def _sooner(self, job: Job, way: Way, victim: Lane) -> Job | None:
        """`job`, the last one of `victim`, or rows of it, if that is done sooner that way."""
        lane = way.lane
        estimate = self._forecast.seconds(way, job, job.cores)
        here_s = estimate.most_s + self._forecast.transfer_s(job, lane)
        if job.pieces is None:
            after_s = job.seconds * (1 - 1 / victim.n_threads)
            return job if here_s < _wait_s(victim) + after_s else None
        # of so many rows both lanes are done with theirs at the same time
        assert job.rows is not None, "a part of a task"
        row_s, n_idle = here_s / (job.rows[1] - job.rows[0]), lane.n_threads - len(lane.running)
        n_rows = _left_s(victim) / (row_s + n_idle * job.pieces.row_s / victim.n_threads)
        if n_rows * row_s < LEAST_TAKEN_S:
            return None
        found: Job | None = job.pieces.last(n_rows, row_s)
        return found


def _wait_s(lane: Lane) -> float:
    """Until a lane is done; what takes longer than foreseen takes twice that."""
    now_s = time.perf_counter()
    waits_s: float = sum(one[2].left_s for one in lane.ready)
    for one, since_s in lane.running.items():
        gone_s = now_s - since_s
        waits_s += one.seconds - gone_s if gone_s < one.seconds else gone_s
    return waits_s / lane.n_threads


def _left_s(lane: Lane) -> float:
    """Until a lane is done, as fast as it is with what it does now, which is about to end."""
    now_s, left_s, slower = time.perf_counter(), 0.0, 1.0
    for one, since_s in lane.running.items():
        gone_s = now_s - since_s
        left_s += max(0.0, one.seconds - gone_s)
        slower = max(slower, gone_s / one.seconds if one.seconds else 1.0)
    ready_s: float = sum(one[2].left_s for one in lane.ready)
    return (left_s + slower * ready_s) / lane.n_threads
