# SPDX-License-Identifier: MIT
"""Plans: all that happens in a step, at every place, with its dependencies.

A step of a plan is `steps_per_launch` time steps: one launch (two or more where borders are
computed first) and one exchange of halos.

A plan needs no device and no compiled kernel.  It is recorded once, over one rotation of
the time levels, and then executed, printed and tested as one and the same object.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property

from controllers.plan import exchange
from controllers.plan.memory import PlaceMemory, place_memories
from controllers.plan.operation import Access, Location, Operation, StagingKey, TileKey, Transfer
from controllers.plan.overlap import Overlap, pays
from controllers.plan.recorder import Recorder
from controllers.plan.text import describe
from controllers.program.program import Program, Stage
from controllers.program.steps import Steps, can_combine, offsets_read
from hitmap.border import split_border
from hitmap.halo import HaloPattern
from hitmap.layout import Layout
from hitmap.message import Message
from hitmap.shape import Shape
from hitmap.strided import Geometry

N_LEVELS = 2    # old and new: a step reads one time level of a field and writes the other


class Plan:
    """The operations of `n_phases` steps, after which the time levels are back in place.

    They are recorded when they are first asked for: what is known without them (messages, boxes,
    bytes) is cheap, also for thousands of places.  `locations` says where each place lives.  With
    `only_rank`, the lists of the places of other ranks stay empty: what a rank needs to run, at a
    cost that does not grow with the number of ranks.  Steps read level `step % 2` and write the
    other one.  ValueError where the program's steps cannot be combined in launches of several.
    """

    n_phases = N_LEVELS

    def __init__(
        self,
        program: Program,
        layout: Layout,
        periodic: tuple[bool, ...],
        locations: Sequence[Location],
        *,
        overlap: Overlap = "auto",
        only_rank: int | None = None,
        steps_per_launch: int = 1,
    ) -> None:
        if len(locations) != layout.n_places:
            raise ValueError(
                f"the layout has {layout.n_places} places but {len(locations)} locations are "
                f"given; give one per place"
            )
        if steps_per_launch > 1 and not can_combine(program):
            raise ValueError(
                f"launches of {steps_per_launch} steps are for programs of one stage that reads "
                f"the field it writes; {program.name!r} needs 1 step per launch"
            )
        self.program = program
        self.layout = layout
        self.steps_per_launch = steps_per_launch
        self.periodic = periodic
        self.locations = tuple(locations)
        self.overlap = overlap
        self.only_rank = only_rank
        self.patterns = {field.name: self._pattern(field.name) for field in program.fields}
        self.transfers = tuple(
            Transfer(number, field, message)
            for number, (field, message) in enumerate(
                (field, message)
                for field, pattern in self.patterns.items()
                for message in pattern.messages
            )
        )

    @property
    def step_name(self) -> str:
        """What a step of the plan is, for people."""
        return "step" if self.steps_per_launch == 1 else f"launch of {self.steps_per_launch} steps"

    @cached_property
    def operations(self) -> tuple[Operation, ...]:
        """The operations of all steps of the period, in an order that respects their edges."""
        recorder = Recorder()
        for step in range(2 * self.n_phases):
            recorder.step = step
            for number in range(len(self.program.stages)):
                self._record_stage(recorder, number, step % N_LEVELS)
        recorder.step += 1
        return recorder.second_half()

    def of_rank(self, rank: int | None) -> Plan:
        """The same plan with the operations of one rank alone, or of all."""
        part = copy(self)
        part.only_rank = rank
        for name in ("operations", "places", "_memories"):
            part.__dict__.pop(name, None)
        return part

    @cached_property
    def places(self) -> tuple[int, ...]:
        """The places that hold cells, of the ranks this plan is for."""
        return tuple(
            place
            for place, where in enumerate(self.locations)
            if self._here(place) and not self.layout.owned[place].empty
        )

    def geometry(self, field: str, place: int) -> Geometry:
        """How the tiles of `field` at `place` lie in memory: owned cells and halo.

        In host memory without padding, so that rows are one message; in a device's with rows
        that start at multiples of PITCH_MULTIPLE elements, as kernels read vectors there.
        """
        full = self.patterns[field].full(place)
        on_host = self.locations[place].shares_host
        return Geometry.dense(full) if on_host else Geometry.padded(full)

    def home(self, staging: StagingKey) -> int:
        """The place whose memory a staging memory is."""
        message = self.transfers[staging.message].message
        return message.source if staging.end == "border" else message.target

    def memory(self, place: int) -> PlaceMemory:
        """The bytes that `place`, of the ranks this plan is for, takes."""
        return self._memories.get(place, PlaceMemory())

    @cached_property
    def _memories(self) -> dict[int, PlaceMemory]:
        return place_memories(self)

    def updated(self, stage: Stage, place: int) -> Shape:
        """The cells that `stage` computes at `place`."""
        return self.layout.owned[place] & stage.updated(self.layout.domain, self.periodic)

    def boxes(self, stage: Stage, place: int) -> tuple[tuple[Shape, ...], Shape]:
        """What is launched at `place` before the borders are handed over, and what after."""
        updated = self.updated(stage, place)
        nothing = Shape(updated.lower, updated.lower)
        if updated.empty:
            return (), nothing
        leaving = self._leaving.get((stage.writes, place), [])
        boxes = [updated & box for message in leaving for box in message.border]
        first, inner = split_border(updated, boxes)
        if not leaving or inner.empty or not first:
            return (updated,), nothing
        if not pays(self.overlap, self.locations[place], self.program, first, inner, leaving):
            return (updated,), nothing
        return first, inner

    def launched(self, stage: Stage, place: int) -> Iterator[tuple[Shape, Mapping[str, Geometry]]]:
        """The boxes that are launched at `place`, and how the fields' tiles lie there."""
        first, inner = self.boxes(stage, place)
        geometries = {field.name: self.geometry(field.name, place) for field in self.program.fields}
        for box in (*first, inner):
            if not box.empty:
                yield box, geometries

    def level(self, n_steps: int) -> int:
        """The time level that holds the fields after `n_steps` steps of the plan."""
        return n_steps % N_LEVELS

    def time_steps(self, stage: Stage, count: int | None = None) -> Steps:
        """What a launch of `stage` advances: all it can, or fewer time steps."""
        count = self.steps_per_launch if count is None else count
        return Steps.of(stage, count, self.layout.domain, self.periodic)

    def _record_stage(self, recorder: Recorder, number: int, old: int) -> None:
        """Borders, then packing, so that it does not queue behind the inner part, then the rest."""
        stage = self.program.stages[number]
        level = (old + 1) % N_LEVELS
        boxes = {place: self.boxes(stage, place) for place in self.places}
        transfers = [
            exchange.Exchange(self, recorder, transfer, level, self._refreshes(number))
            for transfer in self.transfers
            if transfer.field == stage.writes
        ]
        for place, (first, _) in boxes.items():
            for over in first:
                self._launch(recorder, number, old, place, over)
        for transfer in transfers:
            transfer.pack()
        for place, (_, inner) in boxes.items():
            if not inner.empty:
                self._launch(recorder, number, old, place, inner)
        for transfer in transfers:
            transfer.copy()
        for transfer in transfers:
            transfer.receive()
        for transfer in transfers:
            transfer.leave()
        for transfer in transfers:
            transfer.arrive()

    def _launch(self, recorder: Recorder, number: int, old: int, place: int, over: Shape) -> None:
        stage = self.program.stages[number]
        steps = self.time_steps(stage)
        sources = [
            Access(
                TileKey(field, self._level_read(field, number, old), place),
                (steps.read(stage, field, over),),
            )
            for field in stage.fields_read
        ]
        target = Access(TileKey(stage.writes, (old + 1) % N_LEVELS, place), (over,))
        recorder.add(place, "launch", "compute", sources, [target], stage=number)

    def _level_read(self, field: str, number: int, old: int) -> int:
        """The newest level of `field` when stage `number` runs."""
        writers = [n for n, stage in enumerate(self.program.stages) if stage.writes == field]
        if not writers:
            return 0
        return (old + 1) % N_LEVELS if min(writers) < number else old

    @cached_property
    def _leaving(self) -> dict[tuple[str, int], list[Message]]:
        """What leaves the controller, by field and place."""
        leaving: dict[tuple[str, int], list[Message]] = {}
        for transfer in self.transfers:
            if not self._same_controller(transfer):
                key = transfer.field, transfer.message.source
                leaving.setdefault(key, []).append(transfer.message)
        return leaving

    def _refreshes(self, number: int) -> bool:
        """Whether the halos that stage `number` makes stale are not read before the step ends."""
        field = self.program.stages[number].writes
        return not any(field in stage.fields_read for stage in self.program.stages[number + 1 :])

    def _pattern(self, field: str) -> HaloPattern:
        boxes = [
            stage.updated(self.layout.domain, self.periodic)
            for stage in self.program.stages
            if field in stage.fields_read
        ]
        updated = boxes[0] if boxes else Shape.of_extent((0,) * self.program.n_axes)
        for box in boxes[1:]:
            updated = updated.hull(box)
        offsets = (
            self.program.offsets(field)
            if self.steps_per_launch == 1
            else offsets_read(self.program.stages[0], field, self.steps_per_launch)
        )
        return HaloPattern(self.layout, offsets, self.periodic, updated)

    def _same_controller(self, transfer: Transfer) -> bool:
        message = transfer.message
        return self.locations[message.source].same_controller(self.locations[message.target])

    def _here(self, place: int) -> bool:
        return self.only_rank is None or self.locations[place].rank == self.only_rank

    def __repr__(self) -> str:
        cells = " x ".join(map(str, self.layout.domain.extent))
        return (
            f"<Plan of {self.program.name}: {cells} cells, places: {self.layout.n_places}, "
            f"steps per launch: {self.steps_per_launch}>"
        )

    def __str__(self) -> str:
        return describe(self)
