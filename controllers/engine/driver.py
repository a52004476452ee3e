# SPDX-License-Identifier: MIT
"""The engine: replays a plan, all places of a process by one thread.

The thread enqueues what it can for every place, lets the devices start on it, then
finishes hand-overs as they become ready, so that waiting for one place stalls no other.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Generator, Hashable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TypeAlias

from controllers.device.event import Command
from controllers.engine.installation import Installation
from controllers.engine.looks import Lookout, Looks, run_in_pieces
from controllers.engine.samples import Log, RunLog, by_step
from controllers.engine.task import Task
from controllers.memory.tile import Tile
from controllers.plan.course import RunLaunches
from controllers.plan.rounds.turned import taken_over
from controllers.process.waiter import PATIENCE_S

Progress = Callable[[int, int], None]
Pausing: TypeAlias = "Generator[None, bool, None]"      # is told whether the run ends there


class Engine(Installation):
    """Owns the tiles of the places of this rank, and runs steps on them."""

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

    def left(self, field: str) -> int:
        """Which of the tiles of `field` at a place holds it now."""
        return self.plan.newest(field, self._n_done, 0).buffer

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

    def take_over(self, other: Engine) -> None:
        """The tiles, which are also those of `other`, are as it has left them; steps go on here."""
        self._n_done, apart = taken_over(self.plan, other.plan, other._n_done)
        for source, target in apart:
            box = self.plan.owned(source.field, source.place)
            before, after = self.tiles[source], self.tiles[target]
            self.executors[source.place].copy_command(
                before.linear, after.linear, before.dtype.itemsize,
                (before.strided(box), after.strided(box)),
            )(None)
        if apart:
            self.finish()
        self.loaded(other.n_steps)
        self.numbers.go_on_from(other.numbers)

    def clear(self) -> None:
        """All cells of all buffers become 0, before any is set; steps count from 0."""
        for key, tile in self.tiles.items():
            if tile.part is None:       # files are made of zeros, as is room that nobody has used
                self.executors[key.place].clear(tile, self.plan.without_room(key))
        self.loaded()

    def run(
        self,
        n_steps: int,
        progress: Progress | None = None,
        log: RunLog | None = None,
        until: float = math.inf,
        looks: Looks | None = None,
    ) -> None:
        """Run `n_steps` time steps, or fewer where the course ends; `log` is told what is started.

        until: the time at which the course ends at the latest, where steps compute their own `dt`;
        the last of them is made so long.  looks: who looks on the way, and may end the run.

        Collective: all ranks run as many.  What is left over at the end, less than the steps of
        a launch, is one launch more, and so is a last step that folds.  Halos are filled once after
        fields were set, and by every step.  Returns when all commands of this rank are done.  After
        an exception places are at unlike steps: the engine is `torn`, until its fields are loaded;
        not after those of `looks`.
        """
        if looks is not None and self.plan.span > 1:
            run_in_pieces(self, n_steps, progress, log, until, looks)
        elif n_steps > 0:
            for _ in self._run(n_steps, progress, log, until, looks):
                raise AssertionError("nobody pauses in such a run")

    @property
    def can_pause(self) -> bool:
        """Whether a run can stand still where somebody looks, with all that it has begun."""
        return type(self) is Engine and self.plan.span == 1

    def pausing(self, n_steps: int, progress: Progress | None, looks: Looks) -> PausingRun:
        """The same, of 1 step or more, which stands still where `looks` say so.  Collective."""
        return PausingRun(self, self._run(n_steps, progress, None, math.inf, looks))

    def _run(
        self, n_steps: int, progress: Progress | None, log: RunLog | None, until: float,
        looks: Looks | None,
    ) -> Pausing:  # fmt: skip
        first, before, launches = self._n_done, self.n_steps, RunLaunches.of(self.plan, n_steps)
        last = first + launches.count - 1
        self._replace(first, launches, self.prepare(n_steps))
        lookout = None if looks is None else Lookout(
            looks, self.plan, self.course, self._runs, self._tasks, self._reach
        )  # fmt: skip
        self.torn = True
        try:
            self._begin(first, last, n_steps, log, until)
            if lookout is not None:
                lookout.begin(before, last)
            yield from self._replay(first, n_steps, progress, lookout)
            self._patience.until_all(chain(self._beside_devices, self.course.left))
            if lookout is not None:
                lookout.end()
            self.numbers.end(self._last_turn(self.course.last))
        except BaseException:   # what is under way uses memory that must not be freed
            for executor in self._executors:
                executor.wait(PATIENCE_S, keep=self)
            raise
        if self.drains:
            self.finish()
        self.torn = False
        self._n_done = self.course.last + 1
        self.n_steps = before + launches.steps(self._n_done - first)
        if lookout is not None and lookout.error is not None:
            raise lookout.error
        if progress is not None and self.course.last == last:
            progress(n_steps, n_steps)

    def _begin(self, first: int, last: int, n_steps: int, log: RunLog | None, until: float) -> None:
        """All that places need before they set out for the steps `first` to `last`."""
        self._begun = first, self.n_steps
        logs = by_step([self.samples] if log is None else [self.samples, log], first, last)
        if self.plan.program.scalars:
            begin, end = first * self.plan.n_turns, self._last_turn(last)
            self._binder.tell(self.numbers.begin(begin, end, self.n_steps, until))
        if not self._is_open:
            self._open(first, n_steps, logs)
        self.course.begin(first, last)
        for run in self._runs:
            run.begin(first, logs)

    def _reach(self, step: int, n_steps: int, whole: bool) -> None:
        """Somebody looks at the engine as it is after a step; at fields, where they are `whole`."""
        self._n_done, self.n_steps = step + 1, n_steps
        self.numbers.reach(self._last_turn(step))
        if whole:
            self._patience.until_all(self._beside_devices)
            self.finish()

    def _last_turn(self, step: int) -> int:
        """By the number of steps whose scalars there are, the last one of a step of the plan."""
        return (step + 1) * self.plan.n_turns - 1

    def finish(self) -> None:
        """Wait until the devices have nothing left to do."""
        for executor in self._executors:
            executor.wait(keep=self)

    def _flush(self) -> None:
        for executor in self._executors:
            executor.flush()

    @property
    def _beside_devices(self) -> Iterator[Task]:    # messages, and what threads of the host do
        return (task for task in self._tasks if task.operation.lane in ("network", "host"))

    def _open(self, first: int, n_steps: int, logs: Mapping[int, Sequence[Log]]) -> None:
        """What the step `first` needs because fields were set, all of it before it begins."""
        opening = self._opening[first % self.plan.n_phases]
        if opening:
            self.course.hold(first - 1)
            for run in self._runs:
                run.begin(first, logs, opening=True)
            for _ in self._replay(first, n_steps, None):
                raise AssertionError("nobody looks before the first step")
            if self.drains:
                self.finish()
                self._patience.until_all(opening)
        self._is_open = True

    def warm(self, times: int = 1, log: RunLog | None = None) -> None:
        """Run some periods, before the fields are set, so that steps cost what they always will."""
        self.folds.is_trial = True
        launched = times * self.plan.n_phases * self.plan.span
        self.run(launched + self.plan.folds_apart, log=log)
        self.folds.is_trial = False

    def begin_anew(self, looks: bool) -> None:
        """The fields are where a period begins; whether anybody looks at folds after a run."""
        self._n_done, self.n_steps, self._is_open, self.torn = 0, 0, False, False
        self.course.looks = looks

    def prepare(self, n_steps: int) -> Mapping[int, Command]:
        """Build and try what `run` needs for `n_steps` time steps: the launches of fewer steps.

        By number of the operation, none where `n_steps` are whole launches.
        """
        rest = RunLaunches.of(self.plan, n_steps).rest
        if rest and rest not in self._short:
            launches = [task.operation for task in self._tasks if task.launches]
            self._short[rest] = {
                o.number: self._binder.launch(o, rest, folds=False) for o in launches
            }
            phase = self._n_done % self.plan.n_phases
            for operation in launches:      # they write what the next step overwrites
                if operation.phase == phase:
                    self._short[rest][operation.number](None)
            for executor in self._executors:
                executor.wait()
        return self._short.get(rest, {})

    def _replace(self, first: int, launches: RunLaunches, short: Mapping[int, Command]) -> None:
        """The first launches of a run may be others, and those of its rest are `short`."""
        ahead, self.next_launches = self.next_launches, None
        begun = {} if ahead is None else ahead.begin(whole=launches.whole > 0)
        steps = (first, begun), (first + launches.whole, short)
        for task in self._tasks:
            if task.launches:
                number = task.operation.number
                task.replace({step: each[number] for step, each in steps if number in each})

    def _replay(
        self, first: int, n_steps: int, progress: Progress | None, lookout: Lookout | None = None
    ) -> Pausing:
        """Advance every place until all their tasks have been started, and all have looked."""
        active, stuck, launches = self._runs, 0, RunLaunches.of(self.plan, n_steps)
        while active or (lookout is not None and lookout.is_open):
            moved = False
            for place in active:
                moved = place.advance() or moved
            if lookout is not None:
                moved = lookout.advance() or moved
                if lookout.is_paused:
                    self._flush()
                    self.torn = False
                    lookout.go_on((yield))
                    self.torn = True
            active = [place for place in active if not place.finished]
            if moved:
                self._flush()
                if progress is not None and active:
                    done = max(0, min(place.step for place in active) - first)
                    progress(launches.steps(done), n_steps)
            blockers = [b for place in active for b in place.blockers if b.event is not None]
            blockers += [] if lookout is None else lookout.blockers
            stuck = 0 if moved or blockers else stuck + 1
            assert stuck < 3, "a plan always has a task that can start or complete"
            if not moved:
                self._patience.until_any(blockers, self._bring_messages())


class PausingRun:
    """A run that stands still at some looks; all others go on meanwhile, as far as they may."""

    def __init__(self, engine: Engine, run: Pausing) -> None:
        self.is_over = False
        self._engine, self._run = engine, run
        self._answer: bool | None = None    # None begins

    def go_on(self) -> None:
        """To the next pause, or to the end."""
        self._send(self._answer)

    def end(self) -> None:
        """The run ends where it stands."""
        self._send(True)

    def stand(self) -> None:
        """The cells of fields can be read from now on; the run stays where it is."""
        self._engine.finish()

    def _send(self, ends: bool | None) -> None:
        self._answer = False
        try:
            self._run.send(ends)    # type: ignore[arg-type]
        except StopIteration:
            self.is_over = True
