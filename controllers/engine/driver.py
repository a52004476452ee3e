# SPDX-License-Identifier: MIT
"""The engine: replays a plan, all places of a process by one thread.

The thread enqueues what it can for every place, lets the devices start on it, then
finishes hand-overs as they become ready, so that waiting for one place stalls no other.
"""
from __future__ import annotations

import os
import time
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from itertools import chain

from controllers.device.event import Command, Enqueued
from controllers.engine.binding import Binder
from controllers.engine.course import Course
from controllers.engine.numbers import Numbers
from controllers.engine.place import PlaceRun
from controllers.engine.samples import Log, Samples, by_step
from controllers.engine.task import Awaited, Task
from controllers.executor.executor import Executor
from controllers.kernel.configuration import KernelUse
from controllers.memory.tile import Tile
from controllers.plan import ExchangeEnds, Operation, Plan, TileKey
from controllers.process.waiter import PATIENCE_S, Waiter
from hitmap.comm import Communicator

# How long to poll before giving the core away for longer.  A CPU device needs the cores more than
# we do; beside devices of their own, a late look costs more than a busy core.
SPIN_BESIDE_CPU_S = 200e-6
SPIN_S = 20e-3
SLEEP_S = 50e-6

Progress = Callable[[int, int], None]


class Engine:
    """Owns the tiles of the places of this rank, and runs steps on them."""

    def __init__(
        self, plan: Plan, executors: Mapping[int, Executor], comm: Communicator,
        tiles: Mapping[TileKey, Tile] | None = None,
    ) -> None:  # fmt: skip
        """`tiles`: those that are there already, of another engine."""
        self.plan = plan
        self.n_steps = 0        # time steps done since the fields were set
        self._n_done = 0        # steps of the plan done; tells which buffers hold what
        self._is_open = False   # halos are filled: fields have not been set since
        self._short: dict[int, dict[int, Command]] = {}     # launches of fewer steps, by number
        self._waiter = Waiter()
        self.torn = False       # places are at unlike steps
        self.course = Course(comm)
        self.numbers = Numbers(plan.program, comm)
        self._binder = Binder(plan, executors, comm, tiles)
        self._tasks = self._connected(plan.operations)
        self._opening = [self._connected(operations) for operations in plan.opening]
        self.places = {
            place: PlaceRun(
                [task for task in self._tasks if task.operation.place == place],
                [[t for t in tasks if t.operation.place == place] for tasks in self._opening],
                self.course,
                self.numbers.telling(self._binder.around[place]),
            )
            for place in plan.places
        }
        # without places, a rank takes part in what the others agree on
        told = self.numbers.telling(self._binder.surroundings())
        self._runs = [*self.places.values()] or [PlaceRun([], self._opening, self.course, told)]
        self.ends = ExchangeEnds(plan)
        self.samples = Samples(self.ends.launches.union(self.ends.arrivals))
        self._executors = list(dict.fromkeys(executors[place] for place in plan.places))
        on_cpu = any(executor.shares_host for executor in self._executors)
        self._spin_s = SPIN_BESIDE_CPU_S if on_cpu else SPIN_S

    @property
    def tiles(self) -> Mapping[TileKey, Tile]:
        """The tiles of this rank's places."""
        return self._binder.tiles

    @property
    def executors(self) -> Mapping[int, Executor]:
        """What the places of this rank are computed by."""
        return self._binder.executors

    def watch(self) -> None:
        """Keep what `activity` and `describe` (engine/state.py) need."""
        for place in self.places.values():
            place.watch()

    def newest(self, field: str, place: int) -> Tile:
        """The tile that holds the cells of `field` as they are now."""
        return self.tiles[self.plan.newest(field, self._n_done, place)]

    def to_set(self, field: str, place: int) -> list[Tile]:
        """The tiles in which the owned cells of `field` are set, the newest one first."""
        return [self.tiles[key] for key in self.plan.to_set(field, self._n_done, place)]

    def loaded(self, n_steps: int = 0) -> None:
        """The owned cells of a field, or of all, have been set: steps count from `n_steps`."""
        self.n_steps = n_steps
        self._n_done %= self.plan.n_phases      # the other fields stay where they are
        self._is_open = self.torn = False
        if n_steps == 0:
            self.numbers.restart()

    def clear(self) -> None:
        """All cells of all buffers become 0; steps count from 0."""
        for key, tile in self.tiles.items():
            self.executors[key.place].clear(tile)
        self.loaded()

    def run(
        self, n_steps: int, progress: Progress | None = None, log: Log | None = None
    ) -> None:
        """Run `n_steps` time steps, or fewer where the course ends; `log` is told what is started.

        Collective: all ranks run as many.  What is left over at the end, less than the steps of
        a launch, is one launch more.  Halos are filled once after fields were set, and by every
        step.  Returns when all commands of this rank are done.  After an exception places are at
        unlike steps: the engine is `torn`, until its fields are loaded.
        """
        if n_steps == 0:
            return
        first, per_launch = self._n_done, self.plan.steps_per_launch
        last = first + (n_steps - 1) // per_launch
        self._shorten(last, self.prepare(n_steps))
        logs = by_step([self.samples] if log is None else [self.samples, log], first, last)
        self.torn = True
        if self.plan.program.scalars:
            self._binder.tell(self.numbers.begin(first, last, self.n_steps))
        try:
            if not self._is_open:
                self._open(first, n_steps, logs)
            self.course.begin(first, last)
            for run in self._runs:
                run.begin(first, logs)
            self._replay(first, n_steps, progress)
            self._finish(task for task in self._tasks if task.operation.lane == "network")
            self.numbers.end()
        except BaseException:   # what is under way uses memory that must not be freed
            for executor in self._executors:
                executor.wait(PATIENCE_S, keep=self)
            raise
        for executor in self._executors:
            executor.wait(keep=self)
        self.torn = False
        n_launches, self._n_done = self.course.last + 1 - first, self.course.last + 1
        self.n_steps += min(n_steps, n_launches * per_launch)
        if progress is not None and self.course.last == last:
            progress(n_steps, n_steps)

    def _open(self, first: int, n_steps: int, logs: Mapping[int, Sequence[Log]]) -> None:
        """What the step `first` needs because fields were set, all of it before it begins."""
        self.course.hold(first - 1)
        for run in self._runs:
            run.begin(first, logs, opening=True)
        self._replay(first, n_steps, None)
        for executor in self._executors:
            executor.wait(keep=self)
        self._finish(self._opening[first % self.plan.n_phases])
        self._is_open = True

    def prepare(self, n_steps: int) -> Mapping[int, Command]:
        """Build and try what `run` needs for `n_steps` time steps: the launches of fewer steps.

        By number of the operation, none where `n_steps` are whole launches.
        """
        rest = n_steps % self.plan.steps_per_launch
        if rest and rest not in self._short:
            launches = [task.operation for task in self._tasks if task.launches]
            self._short[rest] = {o.number: self._binder.launch(o, rest) for o in launches}
            phase = self._n_done % self.plan.n_phases
            for operation in launches:      # they write what the next step overwrites
                if operation.phase == phase:
                    self._short[rest][operation.number](None)
            for executor in self._executors:
                executor.wait()
        return self._short.get(rest, {})

    def _shorten(self, step: int, commands: Mapping[int, Command]) -> None:
        for task in self._tasks:
            if task.launches:
                task.shorten(step, commands.get(task.operation.number))

    def configurations(self, *, largest: bool = False) -> list[KernelUse]:
        """How the kernels of this rank's controllers are built and launched.

        With `largest` only on the box with most cells, of each stage and controller.
        """
        plan = self.plan
        found: list[KernelUse] = []
        for executor in self._executors:
            for sweep in plan.sweeps:
                boxes = [
                    box
                    for place in plan.places
                    if self.executors[place] is executor
                    for box in plan.launched(sweep, place)
                ]
                if largest:
                    boxes = sorted(boxes, key=lambda placed: placed[0].n_cells)[-1:]
                found += executor.configurations(plan.program, sweep, boxes)
        return found

    def timed(self, number: int, n_launches: int) -> list[float]:
        """The seconds of so many launches of an operation as it would be bound now.

        They belong to no step, and what they write is lost: for fields that are not set yet.
        """
        (task,) = (task for task in self._tasks if task.operation.number == number)
        command = self._binder.launch(task.operation)
        events = [command(None) for _ in range(n_launches)]
        for executor in self._executors:
            executor.wait()
        return [(event.profile.end - event.profile.start) * 1e-9 for event in events]

    def rebind(self, numbers: Container[int]) -> None:
        """Bind these launches anew, between two runs: they are configured otherwise now."""
        self._short.clear()
        for task in self._tasks:
            if task.operation.number in numbers:
                task.rebind(self._binder.command(task.operation))

    def read_clocks(self, older_than_ns: int = 0) -> None:
        """Read the clocks of the devices that were not read for so long."""
        for executor in self._executors:
            if executor.clock.age_ns >= older_than_ns:
                executor.read_clock()

    def on_host_clock(self, operation: Operation, moment: int) -> int:
        """A time of the profile of `operation`, of this rank, on the host's clock."""
        if not operation.on_device:
            return moment
        return self.executors[operation.place].clock.here(moment)

    def close(self) -> None:
        """Give back what belongs to MPI; tiles go with the last reference to them."""
        self._binder.close()
        for task in (*self._tasks, *chain.from_iterable(self._opening)):
            task.disconnect()

    def _connected(self, operations: Sequence[Operation]) -> list[Task]:
        """The tasks of this rank, each with those that it waits for."""
        mine = [operation for operation in operations if operation.place in self.plan.places]
        tasks = {operation.number: self._task(operation) for operation in mine}
        for task in tasks.values():
            task.connect(tasks, self.plan.locations)
        return [*tasks.values()]

    def _task(self, operation: Operation) -> Task:
        return Task(operation, self._binder.command(operation))

    def _replay(self, first: int, n_steps: int, progress: Progress | None) -> None:
        """Advance every place until all their tasks have been started."""
        active, stuck = self._runs, 0
        while active:
            moved = False
            for place in active:
                moved = place.advance() or moved
            active = [place for place in active if not place.finished]
            if moved:
                for executor in self._executors:
                    executor.flush()
                if progress is not None and active:
                    done = max(0, min(place.step for place in active) - first)
                    progress(done * self.plan.steps_per_launch, n_steps)
            blockers = [b for place in active for b in place.blockers if b.event is not None]
            stuck = 0 if moved or blockers else stuck + 1
            assert stuck < 3, "a plan always has a task that can start or complete"
            if not moved:
                self._idle(blockers)

    def _finish(self, tasks: Iterable[Task]) -> None:
        """Wait for tasks that have been started; devices go on meanwhile."""
        pending: list[Awaited] = [task for task in tasks if not task.complete()]
        while pending:
            self._idle(pending)
            pending = [task for task in pending if not task.complete()]

    def _idle(self, blockers: Sequence[Awaited]) -> None:
        """Return when one of `blockers` is complete, at once if there is none.

        A device's only command is waited for; what can only be asked after (messages, several
        places) is polled, for a while without pause.
        """
        if not blockers:
            return
        event = blockers[0].event
        if len(set(map(id, blockers))) == 1 and blockers[0].blocks and event is not None:
            Enqueued(event, self._waiter).wait()
            blockers[0].complete()
            return
        start = time.perf_counter()
        while not any(blocker.complete() for blocker in blockers):
            if time.perf_counter() - start < self._spin_s:
                os.sched_yield()
            else:
                time.sleep(SLEEP_S)
