# SPDX-License-Identifier: MIT
"""The engine: replays a plan, all places of a process by one thread.

The thread enqueues what it can for every place, lets the devices start on it, then
finishes hand-overs as they become ready, so that waiting for one place stalls no other.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Container, Hashable, Mapping, Sequence
from itertools import chain

from controllers.device.event import Command
from controllers.engine.binding import Binder
from controllers.engine.combination import Combining
from controllers.engine.course import Course
from controllers.engine.folds import Folds
from controllers.engine.numbers import Numbers
from controllers.engine.patience import Patience
from controllers.engine.place import PlaceRun
from controllers.engine.samples import Log, Samples, by_step
from controllers.engine.task import Task
from controllers.executor.executor import Executor
from controllers.memory.tile import Tile
from controllers.plan import ExchangeEnds, Operation, Plan, TileKey
from controllers.plan.folding import NOWHERE
from controllers.process.waiter import PATIENCE_S
from hitmap.comm import Communicator

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
        self.torn = False       # places are at unlike steps
        self.counts: dict[str, int] = {}    # how often each repeat was done in the last step
        self.course = Course(comm)
        self.numbers = Numbers(plan.program, comm, self.course.stop)
        self.folds = Folds(plan.program, comm, self.numbers)
        self._binder = Binder(plan, executors, comm, tiles)
        operations, opening = self._recorded()
        self._tasks = self._connected(operations)
        self._opening = [self._connected(operations) for operations in opening]
        self.places = {
            place: PlaceRun(
                [task for task in self._tasks if task.operation.place == place],
                [[t for t in tasks if t.operation.place == place] for tasks in self._opening],
                self.course,
                self.numbers.telling(self._binder.around[place]),
                executors[place].time_commands,
            )
            for place in plan.places
        }
        # without places, a rank takes part in what the others agree on
        told = self.numbers.telling(self._binder.surroundings()) if not plan.places else None
        everywhere = [task for task in self._tasks if task.operation.place == NOWHERE]
        self._runs = [*self.places.values()] or [
            PlaceRun(everywhere, [[] for _ in self._opening], self.course, told)
        ]
        self.numbers.watch([t for t in self._tasks if t.operation.verb == "combine"])
        self.ends = ExchangeEnds(plan)
        self.samples = Samples(self.ends.launches.union(self.ends.arrivals))
        self._executors = list(dict.fromkeys(executors[place] for place in plan.places))
        self._patience = Patience(any(executor.shares_host for executor in self._executors))

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

    @property
    def phase(self) -> Hashable:
        """What decides which tile of each field is the newest."""
        return self._n_done % self.plan.n_phases

    @property
    def active(self) -> Engine:
        """The engine whose tasks are under way."""
        return self

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
        self.folds.forget()

    def clear(self) -> None:
        """All cells of all buffers become 0; steps count from 0."""
        for key, tile in self.tiles.items():
            self.executors[key.place].clear(tile)
        self.loaded()

    def run(
        self,
        n_steps: int,
        progress: Progress | None = None,
        log: Log | None = None,
        until: float = math.inf,
    ) -> None:
        """Run `n_steps` time steps, or fewer where the course ends; `log` is told what is started.

        until: the time at which the course ends at the latest, where steps compute their own `dt`;
        the last of them is made so long.

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
            self._binder.tell(self.numbers.begin(first, last, self.n_steps, until))
        try:
            if not self._is_open:
                self._open(first, n_steps, logs)
            self.course.begin(first, last)
            for run in self._runs:
                run.begin(first, logs)
            self._replay(first, n_steps, progress)
            messages = (task for task in self._tasks if task.operation.lane == "network")
            self._patience.until_all(chain(messages, self.course.left))
            self.numbers.end(self.course.last)
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
        self._patience.until_all(self._opening[first % self.plan.n_phases])
        self._is_open = True

    def warm(self) -> None:
        """Run a period, before the fields are set, so that steps cost what they always will."""
        self.folds.is_trial = True
        self.run(self.plan.n_phases * self.plan.steps_per_launch)
        self.folds.is_trial = False

    def begin_anew(self, looks: bool) -> None:
        """The fields are where a period begins; whether anybody looks at folds after a run."""
        self._n_done, self._is_open, self.torn = 0, False, False
        self.course.looks = looks

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

    def timed(self, number: int, n_launches: int) -> list[float]:
        """The seconds of so many launches of an operation as it would be bound now.

        They belong to no step, and what they write is lost: for fields that are not set yet.
        """
        (task,) = (task for task in self._tasks if task.operation.number == number)
        command = self._binder.command(task.operation)
        events = [command(None) for _ in range(n_launches)]
        for executor in self._executors:
            executor.wait()
        return [(event.profile.end - event.profile.start) * 1e-9 for event in events]

    def rebind(self, numbers: Container[int]) -> None:
        """Bind these launches anew, between two runs: they are configured otherwise now."""
        self._short.clear()
        for task in self._tasks:
            if task.operation.number in numbers:
                operation = task.operation
                again = self._binder.command(operation), self._binder.folding_launch(operation)
                task.rebind(*again)

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
        self.folds.close()

    def _recorded(self) -> tuple[Sequence[Operation], Sequence[Sequence[Operation]]]:
        """The operations of its steps, and by phase those that open them."""
        return self.plan.operations, self.plan.opening

    def _connected(self, operations: Sequence[Operation]) -> list[Task]:
        """The tasks of this rank, each with those that it waits for."""
        places = {*self.plan.places, NOWHERE}
        mine = [operation for operation in operations if operation.place in places]
        tasks = {operation.number: self._task(operation) for operation in mine}
        for task in tasks.values():
            task.connect(tasks, self.plan.locations)
        return [*tasks.values()]

    def _task(self, operation: Operation) -> Task:
        if operation.verb == "combine":
            combination = self._binder.combination(operation, self.folds.comm, self.folds.take)
            return Combining(operation, combination, combination)
        folding = self._binder.folding_launch(operation)
        return Task(operation, self._binder.command(operation), folding)

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
                self._patience.until_any(blockers)
