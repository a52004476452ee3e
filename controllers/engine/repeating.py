# SPDX-License-Identifier: MIT
"""The engine of programs whose steps have parts: repeats, as often as their results ask for.

Each part of a step, such as a repeat or what is between two, has a plan and an engine of its own,
on tiles that all share.  Where it leaves a field in another buffer the next one is bound to that,
once.
"""
# docs/decisions/0042-folds-are-operations-of-the-plan.md
from __future__ import annotations

import math
from collections.abc import Container, Hashable, Mapping, Sequence
from types import SimpleNamespace

import numpy as np

from controllers.engine.bound_part import BoundPart
from controllers.engine.chunked import ChunkEngine, Shorter
from controllers.engine.decision import decided
from controllers.engine.driver import Engine, Progress
from controllers.engine.installation import Configurable
from controllers.engine.looks import Looks, run_in_pieces
from controllers.engine.samples import RunLog
from controllers.executor.executor import Executor
from controllers.memory.tile import Tile
from controllers.plan import ChunkPlan, Operation, Plan, TileKey
from controllers.plan.folding import needed
from controllers.plan.plan import Part
from controllers.program.repeat import Repeat
from hitmap.comm import Communicator

TRIAL = 2       # times that a repeat is done before the first step, of which nobody asks anything


class RepeatingEngine(Engine):
    """Runs the parts of each step one after another; all ranks repeat as often."""

    def __init__(
        self, plan: Plan, executors: Mapping[int, Executor], comm: Communicator,
        tiles: Mapping[TileKey, Tile] | None = None, *, shorter: Shorter | None = None,
    ) -> None:  # fmt: skip
        """shorter: of parts that are passes of chunks, the passes that end them."""
        super().__init__(plan, executors, comm, tiles)
        self._comm, self._asks, self._shorter = comm, True, shorter
        self._is_asked = any(one.until is not None for one in plan.program.repeats)
        self._bound: dict[tuple[int, tuple[int, ...]], BoundPart] = {}
        self._active: Engine | None = None
        self._log: RunLog | None = None    # who is told of the step under way
        self._holding = self._first_holding

    @property
    def _first_holding(self) -> dict[str, int]:
        """Which buffer of each field is the newest one, before the first step."""
        return {name: self.plan.newest(name, 0, 0).buffer for name in self.plan.n_tiles}

    @property
    def phase(self) -> Hashable:
        return tuple(self._holding.values())

    @property
    def active(self) -> Engine:
        return self if self._active is None else self._active.active

    def left(self, field: str) -> int:
        return self._holding[field]

    def begin_anew(self, looks: bool) -> None:
        super().begin_anew(looks)
        self._holding = self._first_holding

    def newest(self, field: str, place: int) -> Tile:
        return self.tiles[TileKey(field, self._holding[field], place)]

    def to_set(self, field: str, place: int) -> list[Tile]:
        count = len(self.plan.to_set(field, 0, place))
        return [self.tiles[TileKey(field, n, place)] for n in self._buffers(field)[:count]]

    def warm(self, times: int = 1, log: RunLog | None = None) -> None:
        """Run some steps, each repeat of it a few times, before the fields are set.

        Not where chunks pass through: each pass takes all of the fields.
        """
        if self._shorter is not None:
            for number, part in enumerate(self.plan.parts):
                self._bind(number, part)[1].engine.warm()
            return
        self._asks, self.folds.is_trial = False, True
        self.run(times, log=log)
        self._asks, self.folds.is_trial = True, False

    def take_over(self, other: Engine) -> None:
        assert isinstance(other, RepeatingEngine), "the same program"
        self.loaded(other.n_steps)
        self._holding = {**other._holding}
        self.numbers.go_on_from(other.numbers)

    def run(
        self,
        n_steps: int,
        progress: Progress | None = None,
        log: RunLog | None = None,
        until: float = math.inf,
        looks: Looks | None = None,
    ) -> None:
        """Run `n_steps` time steps, or fewer where a rank wants to end.  Collective.

        `log` is told part by part what is started in the steps that it wants (`Log.within`).
        """
        if looks is not None:
            run_in_pieces(self, n_steps, progress, log, until, looks)
            return
        self.torn = True
        told = () if log is None else {*log.steps(self.n_steps, self.n_steps + n_steps - 1)}
        for done in range(n_steps):
            step = self.n_steps
            is_time = self.numbers.by_steps and self.numbers.time(step) >= until
            if is_time or (self.whole is None and self._wants_to_end()):
                break
            self._log = log if step in told else None
            self.numbers.begin(step, step, step, until)
            for number, part in enumerate(self.plan.parts):
                self._repeat(number, part, is_last=done + 1 == n_steps)
            self.numbers.pass_step(step)
            self.n_steps += 1
            if not self._is_asked:      # or the host would be ever further ahead
                self.finish()
            if progress is not None:
                progress(done + 1, n_steps)
            if self.numbers.by_steps and self.numbers.is_over(step + 1):
                break
        self.finish()
        self.course.hold(self.n_steps - 1)
        self.torn, self._active = False, None

    def close(self) -> None:
        for bound in self._bound.values():
            bound.engine.close()
        super().close()

    def release(self) -> None:
        super().release()
        self._bound.clear()

    def _recorded(self) -> tuple[Sequence[Operation], Sequence[Sequence[Operation]]]:
        return (), ((),)

    def _wants_to_end(self) -> bool:
        """Whether any rank wants to, as all of them know then."""
        mine = np.array([self.course.reason is not None], np.int8)
        every = np.zeros(self._comm.size, np.int8)
        self._comm.Allgather(mine, every)
        return bool(every.any())

    def _repeat(self, number: int, part: Part, *, is_last: bool) -> None:
        """A part, as often as it asks for."""
        repeat, folds = part.repeat, part.plan.program.folds
        feeds = not needed(self.plan.program).isdisjoint(folds)     # other parts compute with them
        if repeat is None:
            self._advance(number, part, 1, looks=is_last or feeds)
            return
        most = repeat.at_most if self._asks else min(TRIAL, repeat.at_most)
        asking = _Asking(self, repeat) if self._asks and repeat.until is not None else None
        looks = is_last or repeat.until is not None or feeds
        self.counts[repeat.name] = self._advance(number, part, most, looks=looks, asking=asking)

    def holds(self, repeat: Repeat) -> bool:
        """Whether the repeat that is under way has been done often enough.  Collective."""
        engine = self._active
        assert engine is not None, "a part is under way"
        self.folds.absorb(engine.folds)
        results = self.folds.results

        def holds() -> bool:
            time, count = self.numbers.time(self.n_steps), engine.n_steps
            return repeat.holds(
                SimpleNamespace(**results, step=self.n_steps, time=time, count=count)
            )

        return decided(self._comm, holds, f"until= of the repeat {repeat.name!r}")

    def _advance(
        self, number: int, part: Part, most: int, *, looks: bool, asking: _Asking | None = None
    ) -> int:
        """A part so many times in a row, from where its fields are now, or fewer; how many."""
        orders, bound = self._bind(number, part)
        bound.refresh()
        engine = self._active = bound.engine
        engine.folds.is_trial = self.folds.is_trial
        engine.numbers.stand_still(self.numbers, self.n_steps)
        engine.begin_anew(looks)
        log = None if self._log is None else self._log.within(engine, self.n_steps)
        engine.run(most, log=log, looks=asking)
        self.folds.know(engine.folds)
        for field, order in orders.items():
            self._holding[field] = order[engine.left(field)]
        return engine.n_steps

    def _bind(self, number: int, part: Part) -> tuple[dict[str, list[int]], BoundPart]:
        """A part on the tiles that hold its fields now; which these are by its own numbers."""
        orders = {field: self._order(field, part) for field in part.plan.n_tiles}
        key = number, tuple(self._holding[field] for field in orders)
        return orders, self._bound.get(key) or self._bound.setdefault(
            key, BoundPart(self, part, orders, self.part_engine)
        )

    @property
    def configurable(self) -> Sequence[Configurable]:
        return [_PartLaunches(self, number, part) for number, part in enumerate(self.plan.parts)]

    def bound(self, number: int) -> list[Engine]:
        """The engines of a part that there are by now."""
        return [one.engine for (of, _), one in self._bound.items() if of == number]

    def part_engine(self, part: Part, tiles: Mapping[TileKey, Tile]) -> Engine:
        """An engine for a part, on some of the tiles."""
        engine: Engine
        if part.plan.parts:
            engine = RepeatingEngine(
                part.plan, self.executors, self._comm, tiles, shorter=self._shorter
            )
        elif isinstance(part.plan, ChunkPlan):
            assert self._shorter is not None, "passes end with shorter ones"
            engine = ChunkEngine(
                part.plan, self.executors, self._comm, tiles, shorter=self._shorter
            )
        else:
            engine = Engine(part.plan, self.executors, self._comm, tiles)
        engine.be_part_of(self)
        engine.drains = self._comm.size > 1 or not engine.is_in_order
        return engine

    def _order(self, field: str, part: Part) -> list[int]:
        """By the number of a buffer in the plan of a part, which buffer it is."""
        first = part.plan.newest(field, 0, 0).buffer
        newest, *others = self._buffers(field)
        return [*others[:first], newest, *others[first:]]

    def _buffers(self, field: str) -> list[int]:
        """All buffers of a field, the newest one first."""
        newest = self._holding[field]
        return [newest, *(n for n in range(self.plan.n_tiles[field]) if n != newest)]


class _PartLaunches:
    """The launches of a part, by whichever of its engines."""

    def __init__(self, whole: RepeatingEngine, number: int, part: Part) -> None:
        self.plan, self.executors = part.plan, whole.executors
        self._whole, self._number, self._repeat = whole, number, part.repeat

    def rebind(self, numbers: Container[int]) -> None:
        """Bind these anew: they are configured otherwise now."""
        for engine in self._whole.bound(self._number):
            engine.rebind(numbers)

    def steps_of(self, n_launches: int) -> int:
        """In how many steps there may be so many, one in a round; 1 of what is not repeated."""
        n_rounds = 0 if self._repeat is None else -(-self._repeat.at_most // self.plan.halo_width)
        return -(-n_launches // n_rounds) if n_rounds else 1

    def timed(self, number: int, n_launches: int) -> list[float]:
        """See `Installation.timed`."""
        return self._whole.bound(self._number)[0].timed(number, n_launches)


class _Asking:
    """Looks at a repeat, as often as it wants to be asked."""

    pauses = False

    def __init__(self, whole: RepeatingEngine, repeat: Repeat) -> None:
        self._whole, self._repeat = whole, repeat

    def left(self, n_steps: int) -> int:
        """How often the repeat is done after `n_steps` times, until it is asked."""
        every, most = self._repeat.check_every, self._repeat.at_most
        left = every - n_steps % every
        return min(left, most - n_steps) if n_steps < most else left

    def of_fields(self, n_steps: int) -> bool:
        """It is asked with results alone."""
        return False

    def look(self) -> bool:
        """Ask."""
        return self._whole.holds(self._repeat)
