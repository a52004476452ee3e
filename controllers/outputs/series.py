# SPDX-License-Identifier: MIT
"""The moments of one output, taken while steps run and written beside them.

A moment is copied into memory of its own, of the device first if it has any, and a thread writes
the copy while steps go on; at most two are on the host at a time.  The thread sends no messages:
ranks tell each other how far theirs are where the next moment is taken, or the run ends, and rank 0
lists what all have written.
"""
# docs/decisions/0074-output-lists-what-is-complete.md
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeAlias

from controllers.engine import Engine
from controllers.outputs.copies import Copies
from controllers.outputs.moment import Facts, Moment, Store
from controllers.outputs.timing import Timing
from controllers.outputs.variable import Part, Variable, parts_of
from controllers.outputs.writer import Writer
from controllers.process.errand import errand
from controllers.settings.every import Every
from hitmap.agreement import on_all_ranks
from hitmap.comm import Communicator
from hitmap.shape import Shape

SLABS = 4       # rows of chunks that are in the host's memory at a time, where nothing is copied
Variables: TypeAlias = "tuple[Variable, ...]"


class Series:
    """The moments of a store.  All methods are collective but `left` and `abandon`.

    facts: what the run is of, as it is now.  engine: gives the engine, which is another one after a
    division.  limit: after which step the run goes on from a checkpoint, or -1: moments that are
    there up to it stay.  beside: whether cells are copied, and written while steps go on.
    """

    of_fields = True

    def __init__(
        self, store: Store, variables: Variables, facts: Callable[[], Facts],
        engine: Callable[[], Engine], comm: Communicator, name: str,
        *, beside: bool = True,
    ) -> None:  # fmt: skip
        self.name, self.limit = name, -1
        self._store, self._variables, self._facts = store, variables, facts
        self._engine, self._comm = engine, comm
        self._timing, self._beside = Timing(None, engine, comm), beside
        self._moments: list[Moment] = []
        self._n_listed = 0
        self._is_open = False
        self._writer: Writer | None = None
        self._copies = Copies()
        self._n_before = 0          # moments that there were before the writer was

    def begin(self, every: Every | None, *, goes_on: bool) -> None:
        """A run begins; its first moment is written, unless it goes on from a checkpoint."""
        now = self._now
        self._timing = Timing(every, self._engine, self._comm)
        self._timing.begin(now.step)
        if not goes_on:
            self.take()
        elif self._is_open:
            self.cut(now.step)

    def left(self, step: int) -> int:
        """Steps to the next look."""
        return self._timing.left(step)

    def look(self, now: object) -> bool:
        """Take the moment if it is due; the run goes on."""
        if self._timing.is_due(*self._now):
            self.take()
        return False

    def take(self, *, at_once: bool = False) -> None:
        """Write the fields as they are now, unless this moment is written already.

        OSError on all ranks where an earlier one could not be written on one.  at_once: it is
        written when this returns.
        """
        now = self._now
        with errand(f"the writing of {self.name}"):
            self._open()
            self.cut(now.step)
            self._settle()
            if [one.step for one in self._moments[-1:]] == [now.step]:
                return
            number, engine = len(self._moments), self._engine()
            self._moments.append(now)
            boxes = self._variables[0].boxes(engine)
            if self._beside and not at_once:
                self._own_writer.make_room()
                copies = self._copies.taken(self._variables, engine)
                self._own_writer.put(partial(self._write_copies, number, now, boxes, copies))
            else:
                most = SLABS if self._store.takes_slabs else None
                parts = parts_of(self._variables, engine, most)
                self._own_writer.do(partial(self._write, number, now, boxes, parts))

    def end(self) -> None:
        """The run has ended: its last moment is written, and all are listed."""
        if not self._is_open and self.limit == self._now.step:
            there = self._together(self._store.moments)     # perhaps a later run has gone on in it
            if self._now.step in [one.step for one in there]:
                return
        self.take()
        self.flush()

    def flush(self) -> None:
        """All moments that were taken are written, and listed."""
        if self._writer is not None:
            with errand(f"the writing of {self.name}"):
                self._writer.wait()
                self._settle()
                self._copies.clear()

    def cut(self, step: int) -> None:
        """Drop the moments after this step."""
        if self._moments and self._moments[-1].step > step:
            self.flush()
            self._begin(step)

    def close(self) -> None:
        """All is listed, and the thread ends."""
        try:
            self.flush()
        finally:
            self.abandon()

    def abandon(self) -> None:
        """The thread ends with what it is writing.  Not collective."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
            self._copies.clear()

    @property
    def _now(self) -> Moment:
        engine = self._engine()
        return Moment(engine.n_steps, engine.numbers.time(engine.n_steps))

    @property
    def _is_alone(self) -> bool:
        """Whether the thread lists what it has written, as nobody else has to be heard."""
        return self._comm.size == 1

    @property
    def _own_writer(self) -> Writer:
        if self._writer is None:
            self._writer = Writer(f"writer of {self.name}")
            self._n_before = len(self._moments) - 1     # the newest one is for it
        return self._writer

    def _open(self) -> None:
        if not self._is_open:
            self._begin(self.limit)
            self._is_open = True

    def _begin(self, step: int) -> None:
        """The store has the moments up to this step."""
        self.abandon()
        found = self._together(lambda: self._store.begin(step, self._facts()))
        self._moments, self._n_listed = found, len(found)

    def _write(
        self, number: int, now: Moment, boxes: Sequence[Shape], parts: Iterable[Part]
    ) -> None:
        self._store.write(number, now, boxes, parts)
        if self._is_alone and self._own_writer.is_last:
            self._store.show(self._moments[: number + 1], self._facts())

    def _write_copies(
        self, number: int, now: Moment, boxes: Sequence[Shape], copies: Sequence[Part]
    ) -> None:
        self._write(number, now, boxes, (copy.arrived() for copy in copies))
        for copy in copies:
            copy.give()

    def _settle(self) -> None:
        """List what all ranks have written; OSError on all of them after an error of one."""
        writer = self._writer
        mine = (0, None) if writer is None else (self._n_before + writer.n_done, writer.error)
        said = self._comm.allgather((mine[0], None if mine[1] is None else told(mine[1])))
        errors = [
            f"rank {rank}: {error}" if len(said) > 1 else error
            for rank, (_, error) in enumerate(said) if error is not None
        ]  # fmt: skip
        if errors:
            self.abandon()
            raise on_all_ranks(OSError(
                f"{self.name}: writing has failed: {'; '.join(errors)}; what is listed there is "
                f"complete, and the fields are those of the last step"
            )) from mine[1]  # fmt: skip
        n_done = min(n for n, _ in said)
        if n_done > self._n_listed and not self._is_alone:
            self._together(lambda: self._store.show(self._moments[:n_done], self._facts()))
            self._n_listed = n_done

    def _together(self, work: Callable[[], Any]) -> Any:
        """What `work` returns on rank 0, on all ranks; its errors, too.  Collective."""
        found = error = None
        if self._comm.rank == 0:
            try:
                found = work()
            except (OSError, ValueError) as own:
                error = own
        found, kind, text = self._comm.bcast(
            (found, type(error) is ValueError, None if error is None else told(error))
        )
        if text is not None:
            if kind:
                raise on_all_ranks(ValueError(text)) from error
            raise on_all_ranks(OSError(f"{self.name}: cannot be written: {text}")) from error
        return found


def told(error: BaseException) -> str:
    """An error in one line."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}" + (f" ({error.filename})" if error.filename else "")
    return f"{error}" if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
