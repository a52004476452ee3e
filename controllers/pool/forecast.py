# SPDX-License-Identifier: MIT
"""Where jobs are done: where they are foreseen to end first, transfers included.

Jobs are placed as they are submitted, on a clock of the forecast's own, which goes on where the
program waits for a result: so places follow from estimates and from the program, and not from when
jobs really end.  After HEFT, Topcuoglu, Hariri, Wu 2002, doi:10.1109/71.993206, but for jobs that
are not known yet.
"""
from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter

from controllers.estimates.device_rates import guessed
from controllers.estimates.estimate import Estimate
from controllers.estimates.estimates import Estimates
from controllers.estimates.history import History
from controllers.estimates.task_key import Case, TaskKey, Work
from controllers.pool.data import Touch
from controllers.pool.decision import Choice, Decided, Decision
from controllers.pool.executions import Executions
from controllers.pool.job import OVER, Job
from controllers.pool.lane import Lane
from controllers.pool.memories import Memories
from controllers.pool.moves import Upto, foresee, moved_upto, moves_of, rows_of
from controllers.pool.newest import HOST_MEMORY, Move
from controllers.pool.transfers import Transfers
from controllers.pool.way import Way

UNKNOWN_S = 1e-3    # of a function that nobody has seen
_END_S = itemgetter(0)     # of a choice
MOST_TOLD = 512     # decisions
OVERDUE = 2         # times the executions after which they are looked at
MOST_RANKED = 64    # jobs that one more job after them makes more urgent


class Forecast:
    """When lanes and cores are free, by estimates; for who holds the pool's lock."""

    def __init__(
        self, estimates: Estimates, n_cores: int, lanes: Sequence[Lane], memories: Memories
    ) -> None:
        self.clock_s = 0.0
        self._decided: deque[Decided] = deque(maxlen=MOST_TOLD)
        self._estimates, self._memories, self._lanes = estimates, memories, list(lanes)
        self.n_cores, self._cores = n_cores, [0.0] * n_cores    # when they are free, in order
        self._free_s = dict.fromkeys(lanes, 0.0)
        self._executions: dict[TaskKey, Executions] = {}
        self.due: dict[Executions, None] = {}       # for `refresh`, ...
        self.is_overdue = False     # ... which nobody had time for while many more have ended
        self.transfers = Transfers(lanes, memories, self._of_key)
        self.when_learnt: list[Callable[[], None]] = []     # called after each `refresh`

    def place(self, job: Job, befores: Sequence[Job]) -> None:
        """Choose among the ways of `job`, which waits for the others."""
        ready_s, ways = self.clock_s, job.may_run
        for other in befores:
            ready_s = max(ready_s, other.end_s)
        if job.joins:
            job.start_s = job.end_s = ready_s
            return
        for way in ways:
            if not (way.tried or self._of(way).is_known):
                ways = [way]
                break
        choices: list[Choice] = []
        for way in ways:
            if way.among or not way.choices:    # else they are always the same
                way.choices = self._choices(way)
            for n, lanes, units in way.choices:
                choices.append(self._choice(job, way, n, lanes, units, ready_s))
        end_s, start_s, way, n, lanes = min(choices, key=_END_S) if choices[1:] else choices[0]
        way.tried = True
        job.placed, job.cores, job.lanes = way, n, lanes
        job.start_s, job.end_s, job.seconds = start_s, end_s, end_s - start_s
        job.rank_s = job.seconds
        self._take(way.lane, n * job.at_once, lanes, end_s)
        if self._memories.any:
            foresee(job.touches, way.lane.memory, replica=job.replicas is not None)
        if job.before:
            self._rank(job)
        self._decided.append((job.number, job.task.name, way, lanes, choices))

    @property
    def decisions(self) -> list[Decision]:
        """Where the newest jobs were sent, and why."""
        return [Decision.of(one) for one in self._decided]

    def go_on(self, until_s: float) -> None:
        """The program knows that what ends by then is over."""
        self.clock_s = max(self.clock_s, until_s)

    def go_on_to_end(self) -> None:
        """All jobs are over."""
        self.go_on(self._end_s)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is left to do, as far as the program knows."""
        return self.clock_s >= self._end_s

    @property
    def _end_s(self) -> float:
        return max((*self._cores, *self._free_s.values()))

    def ended(self, job: Job, way: Way, seconds: float) -> None:
        """A job, or a piece of one, has taken so long."""
        job.took_s, units = seconds + job.moved_s, way.units(job.cores, len(job.lanes))
        of, one = way.executions or self._of(way), (job.size, units, seconds, job.work(way))
        on_host, is_piece = way.lane.device is None, job.whole is not None
        if of.add(one) if on_host else of.add_of_kernel(one, is_piece=is_piece):
            self.due[of] = None
            self.is_overdue |= of.n >= OVERDUE * of.looks_at

    def refresh(self) -> None:
        """Learn from what has ended, while there is time: it would delay the next job."""
        self.is_overdue = False
        while self.due:
            self.due.popitem()[0].refresh()
        for tell in self.when_learnt:
            tell()

    def learn(self, key: TaskKey, case: Case, seconds: float, work: Work | None = None) -> None:
        """An execution of what is kept under a key has taken so long."""
        self._of_key(key).add((case.size, case.units, seconds, work))

    def seconds(self, way: Way, job: Job, cores: int, n_devices: int = 0) -> Estimate:
        """How long a job will take so; a kernel that nobody has seen by the bytes that it moves."""
        units = way.units(cores, n_devices)
        return self._of(way).estimate(job.size, units) or self._guess(way, job, units)

    def _guess(self, way: Way, job: Job, units: int) -> Estimate:
        """The same where nothing is known."""
        work, found = job.work(way), None
        if work is not None and way.lane.device is not None:
            self._tell_all()
            guess = guessed(way.lane.device)
            found = self._estimates.estimate(way.key, Case(job.size, units), work, guess)
        return found or Estimate.about(UNKNOWN_S, 1.0, "class")

    def known_s(self, way: Way, size: float, cores: int) -> float | None:
        """How long a job will take so; None where nothing is known."""
        found = self.known(way, size, cores)
        return None if found is None else found.seconds

    def known(self, way: Way, size: float, cores: int) -> Estimate | None:
        """The same, with how sure that is."""
        return self._of(way).estimate(size, way.units(cores, 0))

    def history(self, key: TaskKey) -> History:
        """All that is known of executions."""
        return self._of_key(key).history()

    def is_new(self, way: Way) -> bool:
        """Whether it was executed so few times that all of them may have been disturbed."""
        return self._of(way).is_new

    def known_as(self, way: Way) -> tuple[int, float]:
        """The number of what is usual of a way, and how many times as long it takes just now."""
        of = self._of(way)
        return of.stamp, of.factor

    def _of(self, way: Way) -> Executions:
        if way.executions is None:
            way.executions = self._of_key(way.key)
        return way.executions

    def _of_key(self, key: TaskKey) -> Executions:
        found = self._executions.get(key)
        if found is None:
            found = self._executions[key] = Executions(self._estimates, key)
        return found

    def start_s(self, lane: Lane, cores: int, ready_s: float, taken: int = 0) -> float:
        """When a job that is ready by then starts there, on so many cores of the host.

        taken: cores that others take before.
        """
        start_s = ready_s if lane.device is None else max(ready_s, self._free_s[lane])
        wanted = cores if lane.device is None else lane.cores
        last = min(taken + wanted, self.n_cores) - 1
        return max(start_s, self._cores[last]) if wanted else start_s

    def back_s(self, lane: Lane, nbytes: int) -> float:
        """How long bytes are on their way from a lane to the host's memory."""
        return self.transfers.seconds(lane.memory, nbytes, to_device=False)

    def there_s(self, lane: Lane, nbytes: int) -> float:
        """How long bytes are on their way from the host's memory to a lane."""
        return self.transfers.seconds(lane.memory, nbytes, to_device=True)

    def transfer_s(self, job: Job, lane: Lane) -> float:
        """How long what the job reads is on its way to a lane, by where it is foreseen to be."""
        return self.moves_s(job.touches, lane, replica=job.replicas is not None)

    def moves_s(self, touches: Iterable[Touch], lane: Lane, *, replica: bool = False) -> float:
        """The same of what touches read; of a replica the host is brought all before."""
        if not self._memories.any:
            return 0.0
        self.transfers.learn()
        return sum(
            self._moved_s(touch, move)
            for touch in touches for move in moves_of(touch, lane.memory, replica=replica)
        )  # fmt: skip

    def moves_upto(self, touches: Iterable[Touch], lane: Lane, n: int) -> Upto:
        """The same for the first 0, 1 ... n of n parts of the rows of what is read."""
        if not self._memories.any:
            return moved_upto((), n)
        self.transfers.learn()
        moves = [
            (self._moved_s(touch, move), move[2], rows_of(touch))
            for touch in touches for move in moves_of(touch, lane.memory, replica=False)
        ]  # fmt: skip
        return moved_upto(tuple(moves), n)

    def _moved_s(self, touch: Touch, move: Move) -> float:
        source, target, cells = move
        nbytes = cells.n_cells * touch.datum.dtype.itemsize
        return self.transfers.seconds(max(source, target), nbytes, to_device=target > HOST_MEMORY)

    def keep(self) -> None:
        """Write what was learnt, for other programs."""
        self.transfers.learn()
        for one in self._executions.values():
            one.add_first()
        self._tell_all()
        self._estimates.keep()

    def _choices(self, way: Way) -> list[tuple[int, tuple[Lane, ...], int]]:
        """Of how many cores, and of which devices, a job there may make use; as how many units."""
        return [
            (n, lanes, way.units(n, len(lanes)))
            for lanes in self._lanes_of(way) for n in self._core_counts(way, lanes)
        ]  # fmt: skip

    def _lanes_of(self, way: Way) -> Iterator[tuple[Lane, ...]]:
        """Whose devices a function may be given: those that are free first, by their numbers."""
        if not way.among:
            yield ()
            return
        first = sorted(way.among, key=lambda lane: (self._free_s[lane], lane.number))
        least, most = way.variant.devices
        for n in range(least, min(most, len(first)) + 1):
            yield tuple(first[:n])

    def _core_counts(self, way: Way, lanes: Sequence[Lane]) -> Iterator[int]:
        """Of how many cores a job there may make use, with the devices of these lanes."""
        variant, all_of_them = way.variant, len(self._cores)
        if way.lane.device is not None:
            yield 1
            return
        of_devices = sum(lane.cores for lane in lanes) if lanes else 0
        n = min(max(variant.least, of_devices), all_of_them)
        most = min(max(variant.most, of_devices), all_of_them)
        while n < most:
            yield n
            n *= 2
        yield most

    def _choice(
        self, job: Job, way: Way, n: int, lanes: tuple[Lane, ...], units: int, ready_s: float
    ) -> Choice:
        """When it would end and start there."""
        lane = way.lane
        if lanes:
            ready_s = max(ready_s, *(self._free_s[one] for one in lanes))
        start_s = self.start_s(lane, n * job.at_once, ready_s)
        found = (way.executions or self._of(way)).estimate(job.size / job.at_once, units)
        took_s = (found or self._guess(way, job, units)).seconds
        if self._memories.any:
            took_s += self.transfer_s(job, lane)
        return start_s + took_s, start_s, way, n, lanes

    def _take(self, lane: Lane, n: int, lanes: Sequence[Lane], end_s: float) -> None:
        taken = n if lane.device is None else lane.cores
        for one in lanes:
            self._free_s[one] = end_s
        if taken:
            self._cores[:taken] = [end_s] * min(taken, len(self._cores))
            self._cores.sort()
        if lane.device is not None:
            self._free_s[lane] = end_s

    def _rank(self, job: Job) -> None:
        """How long it is from the start of jobs to the end of what follows, as far as is known."""
        left, n = [job], 0
        while left and n < MOST_RANKED:
            one = left.pop()
            n += 1
            for other in one.before:
                if other.state != OVER and other.rank_s < other.seconds + one.rank_s:
                    other.rank_s = other.seconds + one.rank_s
                    left.append(other)

    def _tell_all(self) -> None:
        for one in self._executions.values():
            one.tell()
