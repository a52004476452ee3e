# SPDX-License-Identifier: MIT
"""A plan as one rank has it: tiles, tasks with their commands, places, and what ranks agree by."""
from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from itertools import chain
from typing import Protocol
from weakref import ReferenceType, WeakMethod, ref

from controllers.device.event import Command
from controllers.engine.backlog import Backlog, backlogs_of
from controllers.engine.binding import Binder
from controllers.engine.combination import Combining
from controllers.engine.course import Course
from controllers.engine.folds import Folds
from controllers.engine.network import PIECE_NBYTES
from controllers.engine.numbers import Numbers
from controllers.engine.patience import Patience
from controllers.engine.place import PlaceRun
from controllers.engine.receiving import Receiving
from controllers.engine.samples import Samples
from controllers.engine.task import Task
from controllers.executor.executor import Digesting, Executor
from controllers.memory.tile import Tile
from controllers.plan import ExchangeEnds, Operation, Plan, TileKey
from controllers.plan.folding import NOWHERE
from hitmap.comm import Communicator


class Configurable(Protocol):
    """Launches of a plan that can be configured otherwise between two runs."""

    @property
    def plan(self) -> Plan: ...
    @property
    def executors(self) -> Mapping[int, Executor]: ...
    def rebind(self, numbers: Container[int]) -> None: ...
    def steps_of(self, n_launches: int) -> int: ...
    def timed(self, number: int, n_launches: int) -> list[float]: ...


class NextLaunches(Protocol):
    """Other launches for the next step alone, if it is one of whole launches."""

    def begin(self, *, whole: bool) -> Mapping[int, Command]:
        """It is about to begin: their commands, by number of the operation; none if not `whole`."""


class Installation:
    """Owns the tiles of the places of this rank, and what is done with them in a step."""

    def __init__(
        self, plan: Plan, executors: Mapping[int, Executor], comm: Communicator,
        tiles: Mapping[TileKey, Tile] | None = None,
    ) -> None:  # fmt: skip
        """`tiles`: those that are there already, of another engine."""
        self.plan = plan
        self.n_steps = 0        # time steps done since the fields were set
        self._n_done = 0        # steps of the plan done; tells which buffers hold what
        self._is_open = False   # halos are filled: fields have not been set since
        self._begun = (0, 0)    # in which step a run has begun, after how many time steps
        self._whole: ReferenceType[Installation] | None = None
        self._short: dict[int, dict[int, Command]] = {}     # launches of fewer steps, by number
        self.next_launches: NextLaunches | None = None
        self.torn = False       # places are at unlike steps
        self.drains = True      # a run ends when all devices have nothing left to do
        self.counts: dict[str, int] = {}    # how often each repeat was done in the last step
        self.course = Course(comm)
        self.numbers = Numbers(plan.program, comm, self.course.stop)
        self.folds = Folds(plan.program, comm, self.numbers)
        self._binder = Binder(plan, executors, comm, tiles)
        operations, opening = self._recorded()
        self._tasks = self._connected(operations)
        self._opening = [self._connected(operations) for operations in opening]
        self._large = [
            task for task in chain(self._tasks, *self._opening) if self._is_large(task.operation)
        ]
        self._executors = list(dict.fromkeys(executors[place] for place in plan.places))
        backlogs = backlogs_of(self._executors, has_messages=bool(self._large))
        self.places = {
            place: self._place_run(place, executors[place], backlogs) for place in plan.places
        }
        # without places, a rank takes part in what the others agree on
        told = self.numbers.telling([self._binder.surroundings()]) if not plan.places else None
        everywhere = [task for task in self._tasks if task.operation.place == NOWHERE]
        self._runs = [*self.places.values()] or [
            PlaceRun(everywhere, [[] for _ in self._opening], self.course, told)
        ]
        self.numbers.watch([t for t in self._tasks if t.operation.verb == "combine"])
        self.ends = ExchangeEnds(plan)
        self.samples = Samples(self.ends.launches.union(self.ends.arrivals))
        self._patience = Patience(any(executor.shares_host for executor in self._executors))

    def _place_run(
        self, place: int, executor: Executor, backlogs: Mapping[Executor, Backlog]
    ) -> PlaceRun:
        def here(tasks: list[Task]) -> list[Task]:
            return [task for task in tasks if task.operation.place == place]

        return PlaceRun(
            here(self._tasks),
            [here(tasks) for tasks in self._opening],
            self.course,
            self.numbers.telling(self._binder.turns[place]),
            executor.time_commands,
            backlogs.get(executor),
        )

    @property
    def tiles(self) -> Mapping[TileKey, Tile]:
        """The tiles of this rank's places."""
        return self._binder.tiles

    @property
    def executors(self) -> Mapping[int, Executor]:
        """What the places of this rank are computed by."""
        return self._binder.executors

    @property
    def configurable(self) -> Sequence[Configurable]:
        """Whose launches can be configured otherwise."""
        return (self,)

    def steps_of(self, n_launches: int) -> int:
        """In how many time steps there are so many launches of an operation: one per round."""
        return n_launches * self.plan.halo_width

    @property
    def is_in_order(self) -> bool:
        """Whether one queue of one device does all that touches tiles, in the order of the calls.

        Then what another engine does with the same tiles need not be waited for.
        """
        tasks = (*self._tasks, *chain.from_iterable(self._opening))
        lanes = {task.operation.lane for task in tasks if task.operation.verb != "combine"}
        return len(self._executors) == 1 and lanes <= {"compute"}

    def digesting(self, operation: Operation, digest: Digesting) -> Command:
        """The command of a launch that takes the digest of the field that it updates, too."""
        return self._binder.launch(operation, folds=False, digesting=digest)

    def watch(self) -> None:
        """Keep what `activity` and `describe` (engine/state.py) need."""
        for place in self.places.values():
            place.watch()

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

    def release(self) -> None:
        """Close it, and give back all memory: it can run no more.  Not collective."""
        self.close()
        self._tasks, self._opening, self._runs, self._large = [], [], [], []
        self._short.clear()
        self.places.clear()
        self._binder.release()

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

    def _is_large(self, operation: Operation) -> bool:
        """Whether it is a message of several pieces, each of which somebody has to ask after."""
        if operation.bundle is None or operation.lane != "network":
            return False
        return self.plan.bundles[operation.bundle].nbytes > PIECE_NBYTES

    def _bring_messages(self) -> list[Task]:
        """One look at each large message; those that are under way."""
        return [task for task in self._large if not task.complete()]

    @property
    def whole(self) -> Installation | None:
        """Of which this computes a part of each step."""
        return self._whole() if self._whole is not None else None

    def be_part_of(self, whole: Installation) -> None:
        """This computes a part of each of its steps; it is not kept by that."""
        self._whole = ref(whole)

    def _time_step(self, step: int) -> int:
        """The first time step of a step of the plan, in the run under way; 1 is the first of all.

        Of a part of a step, the number of that one.
        """
        if (whole := self.whole) is not None:
            return whole.n_steps + 1 if whole.whole is None else whole._time_step(step)
        first, before = self._begun
        return before + (step - first) * self.plan.span + 1

    def _task(self, operation: Operation) -> Task:
        if operation.verb == "combine":
            combination = self._binder.combination(operation, self.folds.comm, self.folds.take)
            return Combining(operation, combination, combination)
        if operation.verb == "receive":
            received = self._binder.command(operation)
            return Receiving(operation, received, WeakMethod(self._time_step))
        folding = self._binder.folding_launch(operation)
        return Task(operation, self._binder.command(operation), folding)
