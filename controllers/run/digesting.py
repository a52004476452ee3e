# SPDX-License-Identifier: MIT
"""Digests of the fields of a run, when somebody asks, and after every so many steps."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from controllers.calls.call import collective
from controllers.integrity.digest import Digest
from controllers.integrity.digests import Digests, Underway
from controllers.integrity.message_error import MessageError
from controllers.report.digest_report import DigestReport
from controllers.run.assembly import Draft
from controllers.run.exchanging import Exchanging
from controllers.run.results import Results
from controllers.settings.request import Request
from hitmap.agreement import on_all_ranks
from hitmap.redistribute import Redistribution


class Digested:
    """Who looks after every so many steps, and keeps the digests of all fields."""

    of_fields = True

    def __init__(self, every: int, begin: Callable[[], Underway]) -> None:
        self.every = every
        self._begin = begin
        self._underway: tuple[int, Underway] | None = None  # the last ones, after a step
        self._taken: list[tuple[int, Mapping[str, Digest]]] = []

    def left(self, step: int) -> int:
        """Steps from `step` to the next one."""
        return self.every - step % self.every

    def look(self, now: Results) -> bool:
        """Begin to take them; the run goes on.  Collective."""
        self.settle()
        self._underway = now.step, self._begin()
        if not self._underway[1].waits:
            self.settle()
        return False

    def settle(self) -> None:
        """All ranks know the last ones.  Collective."""
        if self._underway is not None:
            step, underway = self._underway
            underway.arrive()
            self._taken.append((step, underway.all()))
            self._underway = None

    def fail(self, *, torn: bool) -> None:
        """The run ends with an error: what is under way arrives, unless fields are `torn`."""
        if torn:
            self._underway = None
        elif self._underway is not None:
            self._underway[1].arrive()

    def cut(self, step: int) -> None:
        """Drop those of steps after this one.  Collective."""
        self.settle()
        self._taken = [one for one in self._taken if one[0] <= step]

    @property
    def report(self) -> DigestReport:
        """All of them.  Collective."""
        self.settle()
        return DigestReport(self.every, tuple(self._taken))

    @property
    def plain(self) -> list[Any]:
        """All of them, as `go_on` takes them.  Collective."""
        self.settle()
        return [[step, plain_digests(taken)] for step, taken in self._taken]

    def go_on(self, taken: Sequence[Any]) -> None:
        """These have been taken before."""
        self._underway = None
        self._taken = [(step, digests_of_plain(digests)) for step, digests in taken]


class Digesting(Exchanging):
    """Makes digests of all fields."""

    _digests: Digests | None = None
    _digested: Digested | None = None

    @collective(use="reads")
    def digest(self) -> dict[str, Digest]:
        """The digest of each field, the same on all ranks: one number of 64 bits, and its NaNs.

        It has the same value whatever the ranks, places and devices; another value of any one cell
        changes it, and so do two cells that are swapped (docs/integrity.md).
        """
        return self._digest()

    def _digest(self) -> dict[str, Digest]:
        """The same, as a part of another call.  Collective."""
        return self._digests_now().take()

    @contextmanager
    def _digested_after(self) -> Iterator[None]:
        """After some steps no digest is under way.  Collective."""
        digested = self._digested
        if digested is None:
            yield
            return
        try:
            yield
        except BaseException:
            digested.fail(torn=self._engine.torn)
            raise
        digested.settle()

    def _digests_now(self) -> Digests:
        engine = self._engine
        if self._digests is None or self._digests.engine is not engine:
            self._digests = Digests(engine, self.comm)
        return self._digests

    def _divide(self, request: Request, draft: Draft) -> Redistribution:
        verified = self._request.execution.verify_messages and self.comm.size > 1
        if self._digested is not None:
            self._digested.settle()
        before = self._digest() if verified else None
        self._digests = None        # it holds what the fields leave
        moves = super()._divide(request, draft)
        if before is not None:
            self._compare(before, self._digest())
        return moves

    def _compare(self, before: Mapping[str, Digest], after: Mapping[str, Digest]) -> None:
        """MessageError on all ranks where fields are not what they were before they moved."""
        altered = [name for name, one in before.items() if after[name] != one]
        if altered:
            self._engine.torn = True
            self.state.tear("redistribute", self.fields)
            raise on_all_ranks(MessageError(
                f"cells of {', '.join(altered)} have arrived otherwise than they were sent, as the "
                f"field was divided anew after step {self.step}: the digests before and after "
                f"differ; set the fields anew, or run the program again, from a checkpoint if "
                f"there is one"
            ))  # fmt: skip


def plain_digests(digests: Mapping[str, Digest]) -> dict[str, Any]:
    """As they are in JSON."""
    return {name: one.plain for name, one in digests.items()}


def digests_of_plain(found: Mapping[str, Any]) -> dict[str, Digest]:
    """What `plain_digests` has given."""
    return {name: Digest.of_plain(one) for name, one in found.items()}
