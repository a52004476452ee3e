# SPDX-License-Identifier: MIT
"""What is known of a plan before its operations are recorded: sweeps, messages, boxes, tiles.

It is cheap, also for thousands of places.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from controllers.plan.bundle import Bundle, bundles
from controllers.plan.cadence import Cadence
from controllers.plan.host_task import check_host_tasks
from controllers.plan.operation import HostTask, Location, StagingKey, TileKey, Transfer
from controllers.plan.overlap import Overlap, launch_nbytes, pays
from controllers.plan.tile_boxes import TileBoxes
from controllers.plan.way import ExchangeWay
from controllers.program.following import as_launched
from controllers.program.liveness import Liveness, is_near
from controllers.program.program import Program
from controllers.program.schedule import lowered, sweeps
from controllers.program.sweep import Sweep, Version
from hitmap.border import split_border
from hitmap.layout import Layout
from hitmap.message import Message
from hitmap.shape import Shape
from hitmap.strided import Geometry


class Outline(Cadence, TileBoxes):
    """A program on places: where its versions lie, what is launched and what is sent.

    `locations` says where each place lives.  With `only_rank` only the places of that rank are
    `places`.  halo_capacity, room, tiles_of: as `TileBoxes` has them.  `host_tasks` end each step.
    in_place: as `Liveness` has it.  way: how halos are exchanged; without it `overlap` alone says
    that.
    ValueError where the program cannot be planned: that is so on all ranks.
    """

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
        halo_capacity: Sequence[tuple[int, int]] = (),
        room: int = 0,
        host_tasks: Sequence[HostTask] = (),
        in_place: bool = True,
        way: ExchangeWay | None = None,
        tiles_of: TileBoxes | None = None,
    ) -> None:
        if len(locations) != layout.n_places:
            raise ValueError(
                f"the layout has {layout.n_places} places but {len(locations)} locations are "
                f"given; give one per place"
            )
        program = as_launched(program, steps_per_launch)
        super().__init__(program, layout, periodic)
        self.steps_per_launch = steps_per_launch
        self.locations = tuple(locations)
        self.way = ExchangeWay(overlap) if way is None else way
        self.halo_capacity = tuple(halo_capacity) or ((0, 0),) * program.n_axes
        self.only_rank, self.tiles_of, self.room = only_rank, tiles_of, room
        self.host_tasks, self.in_place = tuple(host_tasks), in_place
        self.launch_nbytes = launch_nbytes(self.locations)
        self.schedule = lowered(
            program, layout.domain, self.periodic, steps_per_launch, self.launch_nbytes
        )
        domains = {field: self.layout_of(field).domain for field in program.dtypes}
        self.liveness = Liveness(domains, self._lowered(), program.renames, in_place=in_place)
        self.sweeps = self.liveness.sweeps
        self.n_phases = self.liveness.period
        names = [field.name for field in program.fields]
        check_host_tasks(self.host_tasks, names, self.locations, self._is_plain)
        self.patterns, self.exchanges = self._patterns([*domains])
        self.transfers = tuple(
            Transfer(number, version, message, program.itemsize(version.field))
            for number, (version, message) in enumerate(
                (version, message)
                for version, pattern in self.exchanges.items()
                for message in pattern.messages
            )
        )

    def _lowered(self) -> list[Sweep]:
        """The sweeps of a step."""
        return [*sweeps(self.schedule)]

    @property
    def n_buffers(self) -> Mapping[str, int]:
        """How many buffers there are of what, fields or pools of them."""
        return self.liveness.n_buffers

    def sweep_at(self, number: int, launch: int, place: int) -> Sweep:
        """The sweep of a number in a launch of a round: of as many time steps as the place has."""
        return self.sweeps[number]

    def sweeps_of(self, places: Sequence[int]) -> Sequence[Sweep]:
        """What is launched at some places; sweeps of unlike numbers of time steps each apart."""
        return self.sweeps

    def cells_before(self, sweep: Sweep, place: int) -> int:
        """How many cells a sweep computes in the launches of a round before the last one."""
        return 0

    @cached_property
    def places(self) -> tuple[int, ...]:
        """The places that hold cells, of the ranks this plan is for."""
        return tuple(
            place
            for place, where in enumerate(self.locations)
            if self._here(place) and not self.layout.owned[place].empty
        )

    def tile(self, version: Version, phase: int, place: int) -> TileKey:
        """The tile that holds `version` in a step of the period."""
        pool = self.liveness.pools[version.field]
        return TileKey(pool, self.liveness.buffer(version, phase), place)

    def handed(self, version: Version, phase: int, place: int) -> TileKey:
        """The tile of what is exchanged in a step of the period."""
        return self.tile(version, phase, place)

    def newest(self, field: str, n_done: int, place: int) -> TileKey:
        """The tile that holds `field` after `n_done` steps of the plan."""
        return self.tile(Version(field, 0), n_done, place)

    def to_set(self, field: str, n_done: int, place: int) -> tuple[TileKey, ...]:
        """The tiles that hold `field` when it is set after `n_done` steps, the newest one first.

        All of its own: cells that no step computes are read from any of them.
        """
        newest = self.newest(field, n_done, place)
        if self.liveness.shares(field):
            return (newest,)
        buffers = range(self.liveness.n_buffers[field])
        return (newest, *(TileKey(field, n, place) for n in buffers if n != newest.buffer))

    def home(self, staging: StagingKey) -> int:
        """The place whose memory a staging memory is."""
        bundle = self.bundles[staging.bundle]
        return bundle.source if staging.end == "border" else bundle.target

    @cached_property
    def bundles(self) -> tuple[Bundle, ...]:
        """What goes to one neighbour in one message: all transfers, each once."""
        return bundles(
            self.transfers, self.sent_after, self.program, self._is_alone, self._first_reader
        )

    def sent_after(self, version: Version) -> int:
        """The sweep after which a version can be sent; -1 of what is sent once it is set alone."""
        return self.liveness.maker(version)

    def begun_as(self, version: Version) -> Version:
        """What is sent in place of a version as a step opens, when fields were set."""
        return Version(version.field, 0)

    def _first_reader(self, version: Version) -> int | None:
        """The sweep that is the first to read what is exchanged; None of what never changes."""
        return self.liveness.first_near(version) if version.number else None

    @cached_property
    def settled(self) -> tuple[tuple[Version, ...], ...]:
        """By sweep, the versions that it makes and that are exchanged by its end."""
        made = (update.version for sweep in self.sweeps for update in sweep.updates)
        after = {version: self.liveness.maker(version) for version in made}
        for bundle in self.bundles:
            for transfer in bundle.transfers:
                after[transfer.version] = max(bundle.after, after.get(transfer.version, -1))
        return tuple(
            tuple(version for version, last in after.items() if last == number)
            for number in range(len(self.sweeps))
        )

    def computed(self, number: int, phase: int, place: int) -> Shape:
        """The cells that a sweep computes at a place in a step of the period."""
        return self.updated(self.sweeps[number], place)

    def boxes(self, sweep: Sweep, place: int) -> tuple[tuple[Shape, ...], Shape]:
        """What is launched at `place` before the borders are handed over, and what after."""
        return self._split(sweep, self.updated(sweep, place), place)

    def parts_of(
        self, number: int, phase: int, place: int
    ) -> tuple[list[tuple[Shape, bool]], Shape]:
        """The boxes of a sweep in a step of the period, as `boxes`; and whether each may fold."""
        first, rest = self.boxes(self.sweeps[number], place)
        return [(box, True) for box in first], rest

    def _split(self, sweep: Sweep, updated: Shape, place: int) -> tuple[tuple[Shape, ...], Shape]:
        """A box that a sweep computes at a place: what comes first of it, and the rest."""
        nothing = Shape(updated.lower, updated.lower)
        if updated.empty:
            return (), nothing
        made = (update.version for update in sweep.updates)
        leaving = [m for version in made for m in self._leaving.get((version, place), ())]
        boxes = [updated & box for message in leaving for box in message.border]
        first, inner = split_border(updated, boxes)
        if not leaving or inner.empty or not first or sweep.completes:
            return (updated,), nothing
        if not pays(self.way.overlap, self.locations[place], self.program, first, inner, leaving):
            return (updated,), nothing
        return first, inner

    def launched(self, sweep: Sweep, place: int) -> Iterator[tuple[Shape, Mapping[str, Geometry]]]:
        """The boxes that are launched at `place`, and how the fields' tiles lie there."""
        first, inner = self.boxes(sweep, place)
        geometries = {field: self.geometry(field, place) for field in self.program.dtypes}
        for box in (*first, inner):
            if not box.empty:
                yield box, geometries

    def folded(self, sweep: Sweep, place: int) -> Iterator[tuple[Shape, Mapping[str, Geometry]]]:
        """Those that fold, in the order of their parts."""
        return self.launched(sweep, place)

    def shortened(self, sweep: Sweep, count: int) -> Sweep:
        """The same sweep of `count` time steps."""
        if count == sweep.count:
            return sweep
        domain, boundaries = self.layout.domain, self.program.boundaries
        return Sweep.over(sweep.whole, domain, self.periodic, count, boundaries)

    @cached_property
    def _leaving(self) -> dict[tuple[Version, int], list[Message]]:
        """What leaves the controller, by version and place."""
        leaving: dict[tuple[Version, int], list[Message]] = {}
        for transfer in self.transfers:
            message = transfer.message
            one, other = self.locations[message.source], self.locations[message.target]
            if not one.same_controller(other):
                leaving.setdefault((transfer.version, message.source), []).append(message)
        return leaving

    def _is_plain(self, field: str) -> bool:
        """Whether a field has one buffer, and no halo."""
        return self.liveness.n_buffers.get(field) == 1 and not is_near(self._all_uses(field))

    def _is_alone(self, message: Message) -> bool:
        """Whether fields travel apart: as they do where one copy brings them, without staging."""
        one, other = self.locations[message.source], self.locations[message.target]
        on_host = one.rank == other.rank and one.shares_host and other.shares_host
        return not self.way.together or on_host or one.same_controller(other)

    def _here(self, place: int) -> bool:
        return self.only_rank is None or self.locations[place].rank == self.only_rank

    def __repr__(self) -> str:
        cells, n_places = " x ".join(map(str, self.layout.domain.extent)), self.layout.n_places
        steps = f"steps per launch: {self.steps_per_launch}"
        return f"<Plan of {self.program.name}: {cells} cells, places: {n_places}, {steps}>"
