# SPDX-License-Identifier: MIT
"""Where jobs are done: where they are foreseen to end first, transfers included.

Jobs are placed as they are submitted, on a clock of the forecast's own, which goes on where the
program waits for a result: so places follow from estimates and from the program, and not from when
jobs really end.  After HEFT, Topcuoglu, Hariri, Wu 2002, doi:10.1109/71.993206, but for jobs that
are not known yet.
"""
from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from controllers.estimates.estimate import Estimate
from controllers.estimates.estimates import Estimates
from controllers.estimates.task_key import Case, TaskKey
from controllers.pool.data import Touch
from controllers.pool.job import OVER, Job
from controllers.pool.lane import Lane
from controllers.pool.memories import Memories
from controllers.pool.newest import HOST_MEMORY, Move
from controllers.pool.way import Way

UNKNOWN_S = 1e-3    # of a task that nobody has seen
LINK_S, LINK_BYTES_S = 1e-5, 1e10   # of a transfer, until some were seen
MOST_BUFFERED = 8   # newest executions of a way that the estimator is told at once
MOST_FOUND = 4096   # estimates that are remembered
MOST_TOLD = 512     # decisions
MOST_RANKED = 64    # jobs that one more job after them makes more urgent


class Decision(NamedTuple):
    """Where a job was sent, and when it was foreseen to end there and elsewhere, in seconds."""

    number: int
    task: str
    way: str
    ends_s: tuple[tuple[str, float], ...]

    def __str__(self) -> str:
        """
        >>> print(Decision(3, "scale", "host on the host", (("host on the host", 0.002),)))
        3 scale: host on the host (ends at 2.000 ms)
        """
        ends = ", ".join(
            f"ends at {1e3 * end_s:.3f} ms" + (f" for {way}" if len(self.ends_s) > 1 else "")
            for way, end_s in self.ends_s
        )
        return f"{self.number} {self.task}: {self.way} ({ends})"


class Forecast:
    """When lanes and cores are free, by estimates; for who holds the pool's lock."""

    def __init__(
        self, estimates: Estimates, n_cores: int, lanes: Sequence[Lane], memories: Memories
    ) -> None:
        self.clock_s = 0.0
        self.decisions: deque[Decision] = deque(maxlen=MOST_TOLD)
        self._estimates, self._memories, self._lanes = estimates, memories, list(lanes)
        self.n_cores, self._cores = n_cores, [0.0] * n_cores
        self._free_s = dict.fromkeys(lanes, 0.0)
        self._found: dict[tuple[TaskKey, Case], tuple[Estimate | None, int]] = {}
        self._counts: dict[TaskKey, int] = {}
        self._next: dict[TaskKey, int] = {}     # count at which the estimator is told
        self._untold: dict[TaskKey, list[tuple[Case, float]]] = {}

    def place(self, job: Job, befores: Sequence[Job]) -> None:
        """Choose among the ways of `job`, which waits for the others."""
        ready_s = max((self.clock_s, *(other.end_s for other in befores)))
        untried = [way for way in job.may_run if not self._known(way)]
        ways = untried[:1] or job.may_run
        choices = [
            (*self._times(job, way, n, ready_s), way, n)
            for way in ways for n in self._core_counts(way)
        ]  # fmt: skip
        end_s, start_s, way, n = min(choices, key=lambda one: one[0])
        way.tried = True
        job.placed, job.cores, job.start_s, job.end_s = way, n, start_s, end_s
        job.seconds = end_s - start_s
        self._take(way.lane, n, end_s)
        if self._memories.any:
            self._foresee(job, way.lane.memory)
        self._rank(job)
        self.decisions.append(Decision(
            job.number, job.task.name, str(way),
            tuple((f"{other} x {k}" if k > 1 else str(other), end) for end, _, other, k in choices),
        ))  # fmt: skip

    def go_on(self, until_s: float) -> None:
        """The program knows that what ends by then is over."""
        self.clock_s = max(self.clock_s, until_s)

    def go_on_to_end(self) -> None:
        """All jobs are over."""
        self.go_on(max((*self._cores, *self._free_s.values())))

    def learn(self, key: TaskKey, case: Case, seconds: float) -> None:
        """An execution has taken so long."""
        self._counts[key] = self._counts.get(key, 0) + 1
        untold = self._untold.setdefault(key, [])
        untold.append((case, seconds))
        del untold[:-MOST_BUFFERED]

    def seconds(self, way: Way, size: float, cores: int) -> Estimate:
        """How long a job will take so, and whether that is known at all."""
        found = self._estimate(way.key, Case(size, self._units(way, cores)))
        return Estimate.about(UNKNOWN_S, 1.0, "class") if found is None else found

    def known_s(self, way: Way, size: float, cores: int) -> float | None:
        """How long a job will take so; None where nothing is known."""
        found = self._estimate(way.key, Case(size, self._units(way, cores)))
        return None if found is None else found.seconds

    def n_known(self, way: Way) -> int:
        """Another number when what is known of a way has changed."""
        count = self._counts.get(way.key, 0)
        return self._next.get(way.key, 1) if count < self._next.get(way.key, 1) else -count

    def start_s(self, lane: Lane, cores: int, ready_s: float, taken: int = 0) -> float:
        """When a job that is ready by then starts there, on so many cores of the host.

        taken: cores that others take before.
        """
        start_s = ready_s if lane.device is None else max(ready_s, self._free_s[lane])
        wanted = cores if lane.device is None else lane.cores
        last = min(taken + wanted, self.n_cores) - 1
        return max(start_s, sorted(self._cores)[last]) if wanted else start_s

    def back_s(self, lane: Lane, nbytes: int) -> float:
        """How long bytes are on their way from a lane to the host's memory."""
        return 0.0 if lane.memory == HOST_MEMORY else self._move_s(lane.memory, False, nbytes)

    def there_s(self, lane: Lane, nbytes: int) -> float:
        """How long bytes are on their way from the host's memory to a lane."""
        return 0.0 if lane.memory == HOST_MEMORY else self._move_s(lane.memory, True, nbytes)

    def transfer_s(self, job: Job, lane: Lane) -> float:
        """How long what the job reads is on its way to a lane, by where it is foreseen to be."""
        return self.moves_s(job.touches, lane, replica=job.replicas is not None)

    def moves_s(self, touches: Iterable[Touch], lane: Lane, *, replica: bool = False) -> float:
        """The same of what touches read; of a replica the host is brought all before."""
        if not self._memories.any:
            return 0.0
        self._learn_moves()
        total_s = 0.0
        for touch in touches:
            for source, target, cells in _moves(touch, lane.memory, replica=replica):
                nbytes = cells.n_cells * touch.datum.dtype.itemsize
                total_s += self._move_s(max(source, target), target > 0, nbytes)
        return total_s

    def keep(self) -> None:
        """Write what was learnt, for other programs."""
        self._learn_moves()
        for key in list(self._untold):
            self._tell(key)
        self._estimates.keep()

    def _known(self, way: Way) -> bool:
        return way.tried or self._estimates.knows(way.key)

    def _core_counts(self, way: Way) -> Iterator[int]:
        """Of how many cores a job there may make use."""
        variant, most = way.variant, len(self._cores)
        if way.lane.device is not None:
            yield 1
            return
        n = min(variant.least, most)
        while n < min(variant.most, most):
            yield n
            n *= 2
        yield min(variant.most, most)

    def _units(self, way: Way, cores: int) -> int:
        return cores if way.lane.device is None else max(1, way.lane.cores)

    def _times(self, job: Job, way: Way, n: int, ready_s: float) -> tuple[float, float]:
        """When it would end and start there."""
        lane = way.lane
        start_s = self.start_s(lane, n, ready_s)
        took_s = self.transfer_s(job, lane) + self.seconds(way, job.size, n).seconds
        return start_s + took_s, start_s

    def _take(self, lane: Lane, n: int, end_s: float) -> None:
        taken = n if lane.device is None else lane.cores
        first = sorted(range(len(self._cores)), key=lambda core: (self._cores[core], core))
        for core in first[:taken]:
            self._cores[core] = end_s
        if lane.device is not None:
            self._free_s[lane] = end_s

    def _foresee(self, job: Job, memory: int) -> None:
        replica = job.replicas is not None
        for touch in job.touches:
            for _, target, cells in _moves(touch, memory, replica=replica):
                touch.datum.foreseen.brought(target, cells)
        for touch in job.touches:
            if touch.writes and replica and memory != HOST_MEMORY:
                touch.datum.foreseen.spoilt(memory, touch.box)  # until the host has written it
            elif touch.writes:
                touch.datum.foreseen.wrote(memory, touch.box)

    def _rank(self, job: Job) -> None:
        """How long it is from the start of jobs to the end of what follows, as far as is known."""
        job.rank_s = job.seconds
        left, n = [job], 0
        while left and n < MOST_RANKED:
            one = left.pop()
            n += 1
            for other in one.before:
                if other.state != OVER and other.rank_s < other.seconds + one.rank_s:
                    other.rank_s = other.seconds + one.rank_s
                    left.append(other)

    def _estimate(self, key: TaskKey, case: Case) -> Estimate | None:
        """By the estimator, which is told of executions when there are a quarter more of them.

        It looks for how times grow with sizes then, which takes milliseconds.
        """
        count = self._counts.get(key, 0)
        if count >= self._next.get(key, 1):
            self._next[key] = count + max(1, count // 4)
            self._tell(key)
        known = self._found.get((key, case))
        if known is not None and known[1] == self._next.get(key, 1):
            return known[0]
        found = self._estimates.estimate(key, case)
        if len(self._found) >= MOST_FOUND:
            self._found.clear()
        self._found[key, case] = found, self._next.get(key, 1)
        return found

    def _tell(self, key: TaskKey) -> None:
        for case, seconds in self._untold.pop(key, ()):
            self._estimates.add(key, case, seconds)

    def _move_key(self, memory: int, to_device: bool) -> TaskKey | None:
        for lane in self._lanes:
            if lane.memory == memory != HOST_MEMORY and lane.device is not None:
                return TaskKey.of("a transfer", "to it" if to_device else "from it", lane.device)
        return None

    def _learn_moves(self) -> None:
        moved = self._memories.moved
        while moved:
            memory, to_device, nbytes, seconds = moved.popleft()
            key = self._move_key(memory, to_device)
            if key is not None and nbytes:
                self.learn(key, Case(_rounded(nbytes)), seconds)

    def _move_s(self, memory: int, to_device: bool, nbytes: int) -> float:
        key = self._move_key(memory, to_device)
        found = None if key is None else self._estimate(key, Case(_rounded(nbytes)))
        return LINK_S + nbytes / LINK_BYTES_S if found is None else found.seconds


def _moves(touch: Touch, memory: int, *, replica: bool) -> list[Move]:
    """What is moved before a job that computes there, as far as is foreseen (`Memories.before`)."""
    foreseen = touch.datum.foreseen
    there = foreseen.moves(memory, touch.box) if touch.reads else []
    if not replica or memory == HOST_MEMORY:
        return there
    to_host = foreseen.moves(HOST_MEMORY, touch.box)
    return [*to_host, *(move for move in there if move[1] == memory)]


def _rounded(nbytes: int) -> float:
    """To an eighth, so that there are few unlike sizes.

    >>> _rounded(1000), _rounded(1001)
    (960.0, 960.0)
    """
    step = 1 << max(0, nbytes.bit_length() - 4)
    return float(nbytes // step * step)
