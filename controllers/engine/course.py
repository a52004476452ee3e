# SPDX-License-Identifier: MIT
"""How far the places of all ranks may go: to the last step of a run, or to one they agree on.

Some steps of a run are gates.  The first place of a rank that comes to one looks whether anybody
wants to end; then the step is the last one of the run, for all places of all ranks: none has
opened it before.  Ranks ask each other by a vote that begins at the gate before, so that it has
long been counted when it is needed, and nobody waits.  Where somebody looks (engine/looks.py) is a
gate as well.
"""
# docs/decisions/0025-a-run-ends-at-a-step-that-all-share.md
from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from controllers.device.event import COMPLETE, UNDER_WAY, Noticed
from controllers.engine.task import Awaited
from hitmap.comm import Communicator
from hitmap.vote import Vote

ALONE = 16          # steps between two gates of one rank, which cost nothing
FEWEST = 4          # ... of several: a vote takes some rounds of messages
BETWEEN_S = 0.1     # ... which should come so often
GROWTH = 4          # how many times more steps than before, at most

_HELD = Awaited()   # what a look takes, which others wait for


class Course:
    """Where the runs of one engine end.  One rank may `ask` at any time, from any thread."""

    def __init__(self, comm: Communicator, now: Callable[[], float] = time.monotonic) -> None:
        self.last = self.until = -1     # of the run; the last step that may be opened as yet
        self.reason: str | None = None  # why this rank wants to end
        self._is_mild = False
        self.reasons: Sequence[str | None] = ()     # why all of them did, once all know
        self.looks = True       # whether anybody looks at folds after the last step
        self.first = self.look = 0      # of the run; the step after which somebody looks next
        self._hold = self._end = -1     # the last step to be opened before; of the run as it began
        self._comm = comm if comm.size > 1 else None
        self._now = now
        self._window = ALONE if self._comm is None else FEWEST
        self._gate = 0
        self._since = 0.0
        self._count: _Count | None = None

    @property
    def ended(self) -> bool:
        """Whether all ranks know that some rank wants to end."""
        return any(reason is not None for reason in self.reasons)

    def ask(self, reason: str, *, mildly: bool = False) -> None:
        """This rank wants the run to end; `mildly`: any other reason counts in place of this one.
        """
        if self.reason is None or (self._is_mild and not mildly):
            self.reason, self._is_mild = reason, mildly

    def insist(self, reason: str) -> None:
        """The same; what this rank has wanted before counts no more."""
        self.reason, self._is_mild = reason, False

    def settle(self, reasons: Sequence[str | None]) -> None:
        """What the ranks want, as all of them know by now."""
        self.reasons = reasons

    def forget(self) -> None:
        """Nobody wants to end: a new run begins."""
        self.reason, self.reasons, self._is_mild = None, (), False

    def begin(self, first: int, last: int) -> None:
        """Set out for the steps `first` to `last`, the same on all ranks."""
        self.last, self._gate, self._since, self._count = last, first, self._now(), None
        self.first, self.look, self._hold, self._end = first, last, last, last
        self._next_gate(self._window, self._window)

    def hold(self, step: int) -> None:
        """No step after `step` is opened until a run begins."""
        self.last = self.until = step

    def look_at(self, step: int, hold: int) -> None:
        """Somebody looks after `step`; until then no step after `hold` is opened."""
        self.look, self._hold = step, hold
        self._limit()

    def end_at_look(self) -> None:
        """The run ends where somebody looks, when what has been opened meanwhile is done.

        All ranks open as much: they must agree on which messages there are.
        """
        self.last = min(self.last, self._hold)
        self._limit()

    def stop(self, step: int) -> None:
        """`step` is the last one of the run, for all places of all ranks; none has gone beyond."""
        self.hold(step)

    @property
    def left(self) -> list[Awaited]:
        """The vote that a run has begun and never needed."""
        return [] if self._count is None else [self._count]

    def pass_gate(self) -> Awaited | None:
        """Let `until` grow, or what that has to wait for; `until` is not `last`."""
        if self.until == self._hold:
            return _HELD
        asked, window = self.reason is not None, self._window
        if self._count is not None:
            if not self._count.complete():
                return self._count
            least, window = self._count.result
            asked = least < 0
            self._count = None
        if asked:
            self.last = self._gate
            self._gate += 1
            self._limit()
        else:
            self._next_gate(window, self._wanted())
        return None

    def _next_gate(self, window: int, wanted: int) -> None:
        """The next gate is `window` steps further; the ranks vote on what to do there."""
        self._window = window
        self._gate += window
        self._limit()
        if self._comm is not None and self._gate <= self._end:
            self._count = _Count(Vote(self._comm, (-int(self.reason is not None), wanted)))

    def _limit(self) -> None:
        self.until = min(self.last, self._gate - 1, self._hold)

    def _wanted(self) -> int:
        """Steps that a window should have, by how long the last one took."""
        now = self._now()
        elapsed, self._since = now - self._since, now
        most = GROWTH * self._window
        return max(FEWEST, min(most, int(self._window * BETWEEN_S / max(elapsed, 1e-9))))


class _Count(Noticed, Awaited):
    """A vote as something that places wait for; its event is what it is asked by."""

    __slots__ = ("_vote",)

    def __init__(self, vote: Vote) -> None:
        super().__init__(blocks=False)
        self._vote = vote
        self.event = self

    @property
    def result(self) -> tuple[int, int]:
        """What was asked, and wanted, at least."""
        asked, wanted = self._vote.least
        return int(asked), int(wanted)

    @property
    def command_execution_status(self) -> int:
        return COMPLETE if self._vote.over else UNDER_WAY
