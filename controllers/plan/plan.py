# SPDX-License-Identifier: MIT
"""Plans: all that happens in a step, at every place, with its dependencies.

A step of a plan is `steps_per_launch` time steps: one launch per sweep (two or more where borders
are computed first) and one exchange of each halo that it makes stale.

A plan needs no device and no compiled kernel.  It is recorded once, over the period after which
all versions are in their first buffers again, and then executed, printed and tested as one and the
same object.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property

from controllers.plan.memory import PlaceMemory, PlanMemory, place_memories, plan_memories
from controllers.plan.operation import Operation
from controllers.plan.outline import Outline
from controllers.plan.recorder import Recorder
from controllers.plan.recording import record_opening, record_step
from controllers.plan.text import describe
from controllers.plan.way import ExchangeWay
from controllers.program.program import Program
from controllers.program.repeat import Repeat
from controllers.program.segments import leaves, segments

_RECORDED = ("operations", "opening", "places", "memories", "_memories", "parts")


@dataclass(frozen=True)
class Part:
    """A part of the step of a program that repeats stages: what is done, and what repeats it."""

    plan: Plan
    repeat: Repeat | None


class Plan(Outline):
    """The operations of `n_phases` steps, after which versions are back in their first buffers.

    They are recorded when they are first asked for.  With `only_rank`, the lists of the places of
    other ranks stay empty: what a rank needs to run, at a cost that does not grow with the number
    of ranks.
    """

    @cached_property
    def operations(self) -> tuple[Operation, ...]:
        """The operations of all steps of the period, in an order that respects their edges."""
        recorder = Recorder()
        for step in range(2 * self.n_phases):
            recorder.step, recorder.launch = step, 0
            self._record_step(recorder, step % self.n_phases)
        recorder.step += 1
        return recorder.second_half()

    @property
    def computed_operations(self) -> Sequence[Operation]:
        """The operations of all steps of which each place computes something else."""
        if not self.computes_alike:
            return self.operations
        return self.operations[: len(self.operations) // self.n_phases]

    @cached_property
    def opening(self) -> tuple[tuple[Operation, ...], ...]:
        """By the phase of the step that follows, what must be done once after fields were set.

        It fills the halos that the step, and later ones, read but no step before has filled.
        """
        found: list[tuple[Operation, ...]] = []
        first = len(self.operations)
        for phase in range(self.n_phases):
            recorder = Recorder()
            self._record_opening(recorder, phase)
            found.append(recorder.numbered_from(first, phase))
            first += len(found[-1])
        return tuple(found)

    def _record_step(self, recorder: Recorder, phase: int) -> None:
        record_step(self, recorder, phase)

    def _record_opening(self, recorder: Recorder, phase: int) -> None:
        record_opening(self, recorder, phase)

    def of_rank(self, rank: int | None) -> Plan:
        """The same plan with the operations of one rank alone, or of all."""
        part = copy(self)
        part.only_rank = rank
        return part._anew()

    def by_way(self, way: ExchangeWay) -> Plan:
        """The same plan, on the same tiles, exchanged in another way."""
        other = copy(self)
        other.way = way
        return other._anew("bundles", "settled")

    def with_room(self, room: int) -> Plan:
        """The same plan on tiles that have so much room.  Its operations know nothing of that."""
        other = copy(self)
        other.room = room
        return other._without("memories", "_memories", "parts")

    def _anew(self, *also: str) -> Plan:
        """Forget what was recorded."""
        return self._without(*_RECORDED, *also)

    def _without(self, *names: str) -> Plan:
        for name in names:
            self.__dict__.pop(name, None)
        return self

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The parts of a step, where some are repeated, each as a plan of its own; else none.

        Their fields are in the tiles of this plan.
        """
        if not self.program.repeats:
            return ()
        return tuple(
            Part(self._part(program, repeat), repeat) for program, repeat in segments(self.program)
        )

    def _part(self, program: Program, repeat: Repeat | None) -> Plan:
        """The plan of a part."""
        return self._of_stages(Plan, program)

    def _of_stages(self, kind: Callable[..., Plan], program: Program, **more: int) -> Plan:
        """A plan of some stages, in the tiles of this one."""
        return kind(
            program, self.layout, self.periodic, self.locations, way=self.way,
            only_rank=self.only_rank, in_place=self.in_place, tiles_of=self, **more,
        )  # fmt: skip

    @cached_property
    def n_buffers(self) -> Mapping[str, int]:
        """How many buffers of each field there are; as many as the part needs that needs most."""
        found = dict(self.liveness.n_buffers)
        for part in self.parts:
            for field, count in part.plan.n_buffers.items():
                found[field] = max(found[field], count)
        return found

    @cached_property
    def n_rooms(self) -> Mapping[str, int]:
        """The same where chunks pass through: of what any part has, those at folds too."""
        parts = [*leaves(self.program)]
        found = {} if len(parts) > 1 else dict(self.n_buffers)
        for program in parts if len(parts) > 1 else ():
            for pool, count in self._of_stages(Plan, program).n_buffers.items():
                found[pool] = max(found.get(pool, 0), count)
        return found

    @property
    def n_tiles(self) -> Mapping[str, int]:
        """By field, or pool of them, how many tiles of a place hold it in turn."""
        return self.n_buffers

    @property
    def folds_apart(self) -> bool:
        """Whether folds are those of launches of one step, where others compute several."""
        return self.steps_per_launch > 1 and bool(self.program.folds)

    @cached_property
    def keeps_fields(self) -> bool:
        """Whether no step writes on the tiles that hold the fields as it begins."""
        made = {u.version for sweep in self.sweeps for u in sweep.updates}
        names = [field.name for field in self.program.fields]
        return not self.host_tasks and all(
            {self.tile(version, phase, 0) for version in made}.isdisjoint(
                self.newest(name, phase, 0) for name in names
            )
            for phase in range(self.n_phases)
        )

    @cached_property
    def memories(self) -> tuple[PlanMemory, ...]:
        """All that the places need, of the ranks this plan is for."""
        return tuple(plan_memories(self))

    def memory(self, place: int) -> PlaceMemory:
        """The bytes that `place`, of the ranks this plan is for, takes."""
        return self._memories.get(place, PlaceMemory())

    @cached_property
    def _memories(self) -> Mapping[int, PlaceMemory]:
        return place_memories(self.memories)

    def __str__(self) -> str:
        return describe(self, self.operations)
