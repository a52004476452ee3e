# SPDX-License-Identifier: MIT
"""Functions of items done for the arrays of a workspace, where their rows lie."""
from __future__ import annotations

import gc
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from controllers.array.arrays import Arrays
from controllers.array.lazy import Distributed
from controllers.array.local_rows import SplitRows, split_rows, stated
from controllers.array.mapped import MappedRun, Placed
from controllers.array.owner import Owner
from controllers.array.source import ArraySource
from controllers.array.stream_run import StreamRun
from controllers.array.streams import Streams
from controllers.calls.array_calls import ArrayCalls
from controllers.calls.call import Calls, refuse_together
from controllers.calls.state import State
from controllers.executor.executor import Executor
from controllers.language.each import Each
from controllers.memory.ledger import MemoryCapError
from controllers.placement.placement import failing_together
from controllers.placement.relocation import CHUNK_CELLS
from controllers.plan import Location
from controllers.program.items import ArrayKind, ItemProgram, ItemUse
from controllers.space.meter import Meter
from controllers.space.whole_array import WholeArray
from controllers.space.whole_tiles import WholeStore, WholeTiles, as_rows, rows_of
from hitmap.comm import Communicator
from hitmap.layout import Layout
from hitmap.strided import consecutive

MOST_BOUND = 64     # functions on arrays


class Space(Protocol):
    """What functions of items ask of a workspace."""

    @property
    def comm(self) -> Communicator: ...
    @property
    def messages(self) -> Communicator: ...
    @property
    def owner(self) -> Owner: ...
    @property
    def executors(self) -> Mapping[int, Executor]: ...
    @property
    def streams(self) -> Streams: ...
    @property
    def locations(self) -> tuple[Location, ...]: ...
    def finish(self) -> None: ...
    def layout_of(self, extent: tuple[int, ...]) -> Layout: ...
    def array(
        self, values: npt.ArrayLike, split: int | None = 0, dtype: npt.DTypeLike | None = None
    ) -> Any: ...
    def split_array(self, shape: tuple[int, ...], dtype: str) -> Any: ...


@dataclass(frozen=True, eq=False)
class _Given:
    """An array as a function is given it.

    keep: what holds its tiles.  stale: whose copies are valid afterwards.
    """

    key: object
    kind: ArrayKind
    placed: Placed
    keep: object
    arrays: Arrays | None = None
    stale: tuple[ArraySource, WholeTiles] | None = None


class Applying:
    """What a workspace does with functions of items."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self.meter = Meter(space.executors, space.finish)
        self._wholes = WholeStore(space.streams)
        self._bound: OrderedDict[object, tuple[ItemProgram, MappedRun | StreamRun]] = OrderedDict()
        space.streams.join(self)

    def __call__(
        self, function: Each, arrays: Mapping[str, Any], numbers: Mapping[str, float]
    ) -> Any:
        """The results as arrays of the workspace, one or by name.  Collective."""
        space = self._space
        space.owner.begin("each", lambda: {
            "function": function.__name__, "numbers": dict(numbers),
            **{f"argument {name}": stated(one) for name, one in arrays.items()},
        })  # fmt: skip
        ready = self._ready(function, arrays)
        if ready is None:
            gc.collect()    # what was given before is not to stay on the devices
            ready = self._ready(function, arrays)
        assert ready is not None, "arrays go to the host once"
        made, given, results, run = ready
        involved = dict.fromkeys(one.arrays for one in given.values() if one.arrays is not None)
        if not run.is_light:
            space.finish()
        events = self.meter.run(id(run), run, numbers)
        for some in involved:
            some.pending.add(events)
        for one in given.values():
            if one.stale is not None:
                one.stale[0].copies = one.stale[1]
        found = {**results, **(made.summed(run.folds) if made.sums else {})}
        return made.returned(found)

    def _ready(
        self, function: Each, arrays: Mapping[str, Any]
    ) -> tuple[ItemProgram, dict[str, _Given], dict[str, Any], MappedRun | StreamRun] | None:
        """What a call does, the arrays that it is given, its results, and how it is run.

        None where all arrays have gone to the host meanwhile, so that they are given otherwise.
        """
        streams = self._space.streams
        passes = streams.is_on
        given = {
            name: self._row(arrays[name]) if use == "row" else self._all(arrays[name], use)
            for name, use in function.parameters.uses.items()
        }
        made = refuse_together(
            self._space.comm, lambda: function.lowered({n: one.kind for n, one in given.items()})
        )
        results = {
            name: self._space.split_array(kind.shape, kind.dtype)
            for name, kind in made.results.items()
        }
        if passes == streams.is_on:
            given |= {name: self._row(array) for name, array in results.items()}
            try:
                return made, given, results, self._run(made, given)
            except MemoryCapError as error:
                if passes:
                    raise
                streams.begin(error)
        return None

    def _row(self, array: Any) -> _Given:
        """An array split by rows; one of NumPy's is split first."""
        rows = self._rows_of(array)
        if rows is None:
            values = np.asarray(array)
            return self._row(self._space.array(values, dtype=values.dtype))
        kind = ArrayKind(rows.layout.domain.extent, rows.source.dtype)
        tiles = {place: as_rows(rows.arrays.store.tile(rows.source, place))
                 for place in rows.arrays.store.places}  # fmt: skip
        return _Given(
            rows.source.key, kind, Placed(self._layout(kind), tiles), rows.source, rows.arrays
        )

    def _rows_of(self, array: Any) -> SplitRows | None:
        """Those of an array of this workspace; of others NumPy's array is taken."""
        if isinstance(array, Distributed) and array.arrays.owner is self._space.owner:
            return split_rows(array)
        return None

    def _all(self, array: Any, use: ItemUse) -> _Given:
        """An array with room for the whole at each place.

        Where copies are stale, the function's plan gathers what it reads.
        """
        rows = self._rows_of(array)
        if rows is None:
            return self._everywhere(array)
        if self._space.streams.is_on:
            return self._brought(rows)
        split = self._row(array)
        source = rows.source if isinstance(rows.source, ArraySource) else None
        if source is not None and isinstance(source.copies, WholeTiles):
            kind, known = replace(split.kind, copied=True), source.copies
            placed = Placed(split.placed.layout, known.tiles)
            return _Given(known.key, kind, placed, known, split.arrays)
        wholes = self._wholes.take(split.kind.extent, split.kind.dtype)
        placed = Placed(split.placed.layout, wholes.tiles, own=split.placed.tiles)
        return _Given(
            (split.key, wholes.key), split.kind, placed, (split.keep, wholes), split.arrays,
            None if source is None or use != "all" else (source, wholes),
        )  # fmt: skip

    def _brought(self, rows: SplitRows) -> _Given:
        """An array of the host, whole on each device: each place has sent its rows."""
        space, store = self._space, rows.arrays.store
        shape = rows.layout.domain.extent
        kind = ArrayKind(shape, rows.source.dtype, copied=True)
        source = rows.source if isinstance(rows.source, ArraySource) else None
        known = None if source is None else source.copies
        if not isinstance(known, WholeTiles):
            known = self._wholes.take(kind.extent, kind.dtype)
            rows.arrays.pending.finish()
            targets = {space.executors[place]: tile for place, tile in known.tiles.items()}
            for place, owned in enumerate(rows.layout.owned):
                for box in consecutive(owned, CHUNK_CELLS):
                    mine = store.part(rows.source, place, box) if place in store.places else None
                    cells = space.comm.bcast(mine, space.locations[place].rank)
                    assert cells is not None, "of the rank that has the place"
                    there = rows_of(box)
                    for executor, tile in targets.items():
                        executor.move_to(tile, there, cells.reshape(there.extent))
        if source is not None:
            source.copies = known
        return _Given(known.key, kind, Placed(self._layout(kind), known.tiles), known)

    def _everywhere(self, array: Any) -> _Given:
        """An array that every rank has; that of rank 0 counts."""
        own = isinstance(array, WholeArray) and array.owner is self._space.owner
        known = array.copies if own else None
        if known is None:
            values = self._space.comm.bcast(np.asarray(array))
            extent = ArrayKind(values.shape, values.dtype.name).extent
            known = self._wholes.take(extent, values.dtype.name)
            self._space.finish()    # somebody may still read the tiles
            for place, tile in known.tiles.items():
                self._space.executors[place].move_to(
                    tile, tile.geometry.box, values.reshape(extent)
                )
        if own:
            array.copies = known
        kind = ArrayKind(np.shape(array), np.asarray(array).dtype.name, copied=True)
        return _Given(known.key, kind, Placed(self._layout(kind), known.tiles), known)

    def _layout(self, kind: ArrayKind) -> Layout:
        return self._space.layout_of(kind.extent)

    def _run(self, made: ItemProgram, given: Mapping[str, _Given]) -> MappedRun | StreamRun:
        """The function bound to these tiles, now where that is the first use."""
        key = id(made), *(one.key for one in given.values())
        found = self._bound.get(key)
        if found is not None:
            self._bound.move_to_end(key)
            return found[1]
        space = self._space
        with failing_together(space.comm):
            run = self._made(made, given)
        self._bound[key] = made, run
        if len(self._bound) > MOST_BOUND:
            space.finish()
            self._bound.popitem(last=False)[1][1].close()
        return run

    def _made(self, made: ItemProgram, given: Mapping[str, _Given]) -> MappedRun | StreamRun:
        space, placed = self._space, {name: one.placed for name, one in given.items()}
        if not space.streams.is_on:
            return MappedRun(made, placed, space.executors, space.locations, space.messages)
        layout = placed[made.program.stages[0].home].layout
        wholes = [name for name, one in given.items() if one.kind.copied]
        return StreamRun(
            made.program, placed, layout, space.streams, space.messages, wholes=wholes
        )

    def forget(self) -> None:
        """Let go of what is bound."""
        self._space.finish()
        self.close()

    def to_host(self) -> None:
        """It has no values of its own."""

    def close(self) -> None:
        """Give back what belongs to MPI, when nothing is under way any more."""
        for _, run in self._bound.values():
            run.close()
        self._bound.clear()


class SpaceCalls(ArrayCalls):
    """What a workspace does around each call of array expressions."""

    def __init__(self, calls: Calls, state: State, apply: Applying) -> None:
        super().__init__(calls, state)
        self._apply = apply

    def apply_each(
        self, function: Each, arrays: Mapping[str, Any], numbers: Mapping[str, float]
    ) -> Any:
        return self._apply(function, arrays, numbers)
