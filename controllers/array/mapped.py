# SPDX-License-Identifier: MIT
"""Functions of items bound to tiles: each place computes the items whose rows it owns.

The plan has the gathers of whole arrays that are stale; each place must have room for all of one.
"""
# docs/decisions/0062-one-function-per-item.md
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from controllers.array.one_off import OneOffEngine
from controllers.device.event import Command, Event
from controllers.engine import RunLog
from controllers.executor.executor import Executor
from controllers.memory.tile import Tile
from controllers.plan import Plan, TileKey
from controllers.plan.operation import Location
from controllers.program.accumulator import Result
from controllers.program.items import ItemProgram
from hitmap.comm import Communicator
from hitmap.layout import Layout
from hitmap.shape import Shape
from hitmap.strided import Geometry


@dataclass(frozen=True, eq=False)
class Placed:
    """An array on places, as rows by columns.

    layout: whose rows are where.  tiles: of the places of this rank that own rows of any array;
    those of an array that is given whole have all rows.  own: tiles with the newest owned rows,
    which are copied to those before.
    """

    layout: Layout
    tiles: Mapping[int, Tile]
    own: Mapping[int, Tile] | None = None


class MappedPlan(Plan):
    """The plan of a function of items, whose arrays lie as they are given."""

    def __init__(
        self, made: ItemProgram, given: Mapping[str, Placed], locations: Sequence[Location],
        only_rank: int | None = None,
    ) -> None:  # fmt: skip
        self._given = given
        layout = given[made.program.stages[0].home].layout
        super().__init__(
            made.program, layout, (False,) * layout.domain.n_axes, locations, overlap="off",
            only_rank=only_rank,
        )  # fmt: skip

    @cached_property
    def places(self) -> tuple[int, ...]:
        """Those of this plan's ranks that own rows of anything."""
        return tuple(
            place
            for place in range(len(self.locations))
            if self._here(place)
            and any(not one.layout.owned[place].empty for one in self._given.values())
        )

    def layout_apart(self, field: str, domain: Shape) -> Layout:
        """That of the array as it is given."""
        layout = self._given[field].layout
        assert layout.domain == domain, f"{field} is given as {layout.domain}, not {domain}"
        return layout

    def geometry(self, field: str, place: int) -> Geometry:
        """That of the tiles that are given, where they are of this rank."""
        tiles = self._given[field].tiles
        return tiles[place].geometry if place in tiles else super().geometry(field, place)


class MappedRun:
    """A function of items on the tiles of arrays, to be done again and again.

    given: the arrays and the results, by name; they are cut into rows alike, but for those that are
    given whole.  What each place owns of a result has no halo.
    """

    def __init__(
        self,
        made: ItemProgram,
        given: Mapping[str, Placed],
        executors: Mapping[int, Executor],
        locations: Sequence[Location],
        comm: Communicator,
    ) -> None:
        self.plan = MappedPlan(made, given, locations, comm.rank)
        tiles = {
            TileKey(name, 0, place): one.tiles[place]
            for name, one in given.items() for place in self.plan.places if place in one.tiles
        }  # fmt: skip
        self._executors = list(dict.fromkeys(executors[place] for place in self.plan.places))
        self._engine = OneOffEngine(self.plan, executors, comm, tiles)
        self._before = [
            _copied(executors[place], one.own[place], one.tiles[place], one.layout.owned[place])
            for one in given.values() if one.own is not None
            for place in self.plan.places if not one.layout.owned[place].empty
        ]  # fmt: skip
        gathers = any(pattern.messages for pattern in self.plan.exchanges.values())
        self._commands = None if gathers else self._engine.launches()

    def __str__(self) -> str:
        """What is done, for people."""
        return str(self.plan)

    @property
    def is_light(self) -> bool:
        """Whether it is nothing but commands in the queues of its devices."""
        return self._commands is not None

    @property
    def folds(self) -> Mapping[str, Result]:
        """What the last run has folded, on every rank."""
        return self._engine.folds.results

    @property
    def places(self) -> list[int]:
        """Those of the last events of a run that `is_light`, in order."""
        return self._engine.launched

    def run(self, numbers: Mapping[str, float], log: RunLog | None = None) -> list[Event]:
        """Do it with these numbers; what is under way then.  Collective.

        Unless it `is_light`, nothing may be under way before, and `log` is told what is started.
        """
        events = [command(None) for command in self._before]
        if self._commands is not None:
            if numbers:
                self._engine.tell(numbers)
            events += [command(None) for command in self._commands]
        else:
            for executor in self._executors if self._before else ():
                executor.wait(keep=self)
            self._engine.once(numbers, log)
            events = []
        for executor in self._executors:
            executor.flush()
        return events

    def close(self) -> None:
        """Give back what belongs to MPI."""
        self._engine.close()


def _copied(executor: Executor, source: Tile, target: Tile, box: Shape) -> Command:
    itemsize = np.dtype(target.dtype).itemsize
    return executor.copy_command(
        source.linear, target.linear, itemsize, (source.strided(box), target.strided(box))
    )
