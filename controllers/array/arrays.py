# SPDX-License-Identifier: MIT
"""The array expressions of one computation: bound ones, held values, and who may look at them.

Expressions hold versions: what is not computed yet is computed before a field that it reads
changes, into tiles of its own.  All is collective: every rank makes the same expressions, in the
same order.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from controllers.array.bound import Bound
from controllers.array.living import Expression, Holder, Living
from controllers.array.lowering import Setting, walls_of
from controllers.array.one_off import OneOff, specialised
from controllers.array.operand import Frame
from controllers.array.owner import Owner
from controllers.array.pending import Pending
from controllers.array.promotion import converted
from controllers.array.source import ArraySource, FieldSource, Source
from controllers.array.store import Store, section_at
from controllers.array.streamed_one_off import StreamedOneOff
from controllers.array.streams import Streams
from controllers.array.term import Apply, Leaf, Term, anchor
from controllers.engine import Engine
from controllers.program.accumulator import NUMBERED
from controllers.program.dtypes import CONDITION, stores
from controllers.program.fold import FoldKind
from controllers.program.stage_check import Math
from hitmap.agreement import on_all_ranks
from hitmap.comm import Communicator
from hitmap.layout import Layout
from hitmap.section import Section


class Arrays:
    """Where the array expressions of a computation are computed.

    messages: a duplicate of `comm`, for engines alone.  streams: of a workspace.
    """

    def __init__(
        self, engine: Engine, comm: Communicator, messages: Communicator, math: Math, owner: Owner,
        streams: Streams | None = None,
    ) -> None:  # fmt: skip
        self.math: Math = math
        self.owner = owner
        self.comm, self._messages, self._streams = comm, messages, streams
        self.living = Living(comm)
        self.is_closed = False
        self._begin(engine)

    def _begin(self, engine: Engine) -> None:
        self._engine, program = engine, engine.plan.program
        self._setting = Setting(engine.plan.periodic, self.math)
        none, here = (False,) * program.n_axes, (0,) * program.n_axes
        self.fields: dict[str, FieldSource | ArraySource] = {
            field.name: FieldSource(field.name, field.dtype, field.half or none)
            for field in program.fields
        }
        extents = {name: engine.plan.layout_of(name).domain.extent for name in self.fields}
        frames = {extent: Frame(extent, none) for extent in extents.values()}   # fields share them
        self._whole = {
            name: (Leaf(source, here), frames[extents[name]])
            for name, source in self.fields.items()
        }
        self._walls = {name: walls_of(engine.plan, name) for name in self.fields}
        self._executors = {place: specialised(one) for place, one in engine.executors.items()}
        self.pending = Pending(self._executors.values())
        some = self._executors, self._messages
        self._bound = Bound(engine, *some, self.pending, self._streams)
        self._is_watched = type(engine) is not Engine
        self.store = Store(engine, *some, self._streams)
        if self._streams is not None:
            self._streams.join(self)
            self.forget, self.to_host = self._bound.close, self.store.to_host

    def gathered(self, name: str, section: Section) -> npt.NDArray[Any]:
        """The cells of a section of a field on every rank, no axis left out.  Collective."""
        self.pending.finish()
        return self.store.gathered(self.fields[name], section)

    def whole(self, name: str) -> tuple[Leaf, Frame]:
        """A field as it is now."""
        return self._whole[name]

    def added(self, dtype: str, like: str) -> ArraySource:
        """An array beside the fields, which lies as one of them does, by its name among them.

        What it holds is undefined.  Collective.
        """
        source = cast(ArraySource, self.store.take(dtype, self.fields[like], ArraySource))
        leaf, frame = self._whole[like]
        self.fields[source.name] = source
        self._whole[source.name] = Leaf(source, leaf.start), frame
        self._walls[source.name] = []
        return source

    def dropped(self, name: str) -> None:
        """Nobody can assign such an array any more; expressions may still read it."""
        for known in (self.fields, self._whole, self._walls):
            del known[name]

    def explain(self) -> str:
        """The expressions that are bound, for people; "" where there is none."""
        return str(self._bound)

    def check_grid(self, other: Arrays) -> None:
        """ValueError where the fields of another computation lie on another grid."""
        one, two = (each._engine.plan.program.grid for each in (self, other))
        if one is not None and two is not None and one != two:
            raise ValueError(
                f"the operands live on unlike grids, {one} and {two}; take the array of one first, "
                f"by np.asarray"
            )

    @property
    def has_living(self) -> bool:
        """Whether this rank has expressions, which a change of fields may concern."""
        return bool(self.living.mine(lambda one: True))

    def settle(
        self, fields: Iterable[str], *, views: bool = False, agreed: bool = True
    ) -> None:
        """Compute what reads fields that are about to change.  Collective.

        views: slices, too, which see what is assigned.  Unless that is `agreed`, nothing is said
        to other ranks where there is nothing to compute.
        """
        if self.living.is_alone():
            return
        sources = {self.fields[name] for name in fields}
        self._hold(self.living.those(lambda one: one.reads(sources, views), agreed=agreed))

    def _hold(self, found: Sequence[Holder]) -> None:
        for lazy in found:
            lazy.hold()
        if found:       # what changes them may not be a command
            self.pending.finish()

    def assign(
        self,
        name: str,
        start: tuple[int, ...],
        frame: Frame,
        term: Term,
        lazy: Expression | None = None,
    ) -> None:
        """The cells from `start` on of a field become `term`, which is that of `lazy`.  Collective.

        TypeError on all ranks where the field does not hold such values.
        """
        target = self.fields[name]
        of_target, own = {target}, cast(object, lazy)
        found = {} if self.living.is_alone(lazy) else self.living.mine(
            lambda one: one is not own and one.reads(of_target, False)
        )
        everyone = self.owner.begin("write", lambda: {
            "cells": repr((name, start, frame.extent)), "expression": repr(term.key),
            "numbers": term.numbers,
        }, self.living.told(found))  # fmt: skip
        fits = term.kind.dtype == target.dtype or term.kind == CONDITION
        if not fits and not stores(term.kind, target.dtype):
            raise on_all_ranks(TypeError(
                f"{name} holds {target.dtype} and cannot be given values of {term.kind.dtype}, "
                f"which are of another kind; convert them, as w.astype({target.dtype!r})"
            ))  # fmt: skip
        if frame.is_empty:
            return
        if found:
            self._hold(self.living.common(found, everyone))
        rebound = lazy is not None and target in term.sources
        if rebound and (term.kind.dtype != target.dtype or self._walls[name]):
            assert lazy is not None
            term, rebound = lazy.hold(), False
        passes = self._streams is not None and self._streams.is_on
        if passes and self._setting.reads_elsewhere(term, target, frame.cells(start)):
            term, rebound = self.held(term, frame), False
        one = self._assigning(target, start, frame, term)
        try:
            self._do(one, term.numbers)
        except BaseException:
            self.owner.tear("write", (name,))
            raise
        self._engine.loaded(self._engine.n_steps)
        target.assigned()
        if rebound and lazy is not None:
            lazy.term = Leaf(target, start)

    def held(self, term: Term, frame: Frame) -> Term:
        """The values of a term, in tiles of their own.  Collective."""
        found = anchor(term)
        assert found is not None, "an expression of fields"
        home, start = found
        source = self.store.take("uint8" if term.kind == CONDITION else term.kind.dtype, home)
        if not frame.is_empty:
            self._do(self._assigning(source, start, frame, term), term.numbers)
        return converted(Leaf(source, start), term.kind.dtype)

    def held_array(self, array: npt.NDArray[Any], frame: Frame, like: Term) -> Term:
        """The values of an array, of rank 0, over the positions of a term.  Collective."""
        found = anchor(like)
        assert found is not None, "an expression of fields"
        home, start = found
        self.pending.finish()
        source = self.store.spread(array.reshape(frame.extent), start, home)
        return converted(Leaf(source, start), np.dtype(array.dtype).name)

    def read(self, term: Term, frame: Frame) -> npt.NDArray[Any]:
        """The values of a term on every rank.  Collective."""
        self.owner.begin(
            "read", lambda: {"expression": repr(term.key), "numbers": term.numbers}
        )
        return self.values(term, frame)

    def values(self, term: Term, frame: Frame) -> npt.NDArray[Any]:
        """The same as a part of another call."""
        leaf = self.leaf(term, frame)
        self.pending.finish()
        whole = self.store.gathered(leaf.source, section_at(leaf.start, frame.extent))
        found = whole.reshape(frame.shape)
        return found.astype(np.bool_) if term.kind == CONDITION else found

    def leaf(self, term: Term, frame: Frame) -> Leaf:
        """Tiles that hold the values of a term; those of conditions are 0 and 1.  Collective."""
        leaf = term if isinstance(term, Leaf) else self.held(term, frame)
        if isinstance(leaf, Apply):
            (leaf, _) = leaf.operands   # of x != 0
        assert isinstance(leaf, Leaf)
        return leaf

    def layout_of(self, source: Source) -> Layout:
        """Which cells of a source each place has."""
        return self._engine.plan.layout_of(source.home)

    def fold(self, kind: FoldKind, term: Term, frame: Frame, over: Term | None = None) -> Any:
        """A reduction of the values of a term, where a condition holds, on every rank.  Collective.

        ValueError on all ranks where a least or a greatest one of no cells is asked for.
        """
        numbers = term.numbers if over is None else term.numbers + over.numbers
        key = (kind, frame.extent, term.key, None if over is None else over.key)
        self.owner.begin(kind, lambda: {"expression": repr(key), "numbers": numbers})
        found = anchor(term)
        assert found is not None, "an expression of fields"
        home, start = found
        one = self._bound.get((*key, start, self._engine.phase), lambda: self._setting.folding(
            kind, term, over, frame.cells(start)
        ))  # fmt: skip
        self._do(one, numbers)
        self.pending.finish()
        value = one.result
        if kind in NUMBERED:
            extent = self._engine.plan.layout_of(home.home).domain.extent
            at = np.unravel_index(int(value), extent)
            return int(np.ravel_multi_index([a - b for a, b in zip(at, start)], frame.extent))
        return value.item() if isinstance(value, np.generic) else value

    def _assigning(
        self, target: Source, start: tuple[int, ...], frame: Frame, term: Term
    ) -> OneOff | StreamedOneOff:
        key = (target.key, start, frame.extent, term.key, self._engine.phase)
        walls = self._walls[target.name] if isinstance(target, FieldSource) else ()
        return self._bound.get(
            key, lambda: self._setting.assignment(term, target, frame.cells(start), walls)
        )

    def _do(self, one: OneOff | StreamedOneOff, numbers: tuple[float, ...]) -> None:
        if not one.is_light:
            self.pending.finish()
        self.pending.add(one.run(numbers))
        if self._is_watched:    # who looks at tiles as soon as they are set
            self.pending.finish()

    def moves(self) -> None:
        """The fields are about to be divided otherwise: what is held goes to the host.  Collective.
        """
        for lazy in self.living.those(lambda one: True):
            lazy.bring()
        self._bound.close()

    def moved(self, engine: Engine) -> None:
        """... and are divided otherwise now."""
        self._begin(engine)

    def close(self) -> None:
        """The computation ends: what somebody may still look at goes to the host.  Collective."""
        for one in self.living.those(lambda one: True):
            try:
                one.outlive()
            except (MemoryError, RuntimeError, ValueError):     # on all ranks alike
                one.lose()
        self._bound.close()
        self.is_closed = True
