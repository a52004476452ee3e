# SPDX-License-Identifier: MIT
"""Digests of the fields of a run, when somebody asks, and after every so many steps."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from controllers.calls.call import collective
from controllers.integrity.digest import Digest
from controllers.integrity.digests import Digests
from controllers.report.digest_report import DigestReport
from controllers.run.exchanging import Exchanging
from controllers.run.results import Results


class Digested:
    """Who looks after every so many steps, and keeps the digests of all fields."""

    of_fields = True

    def __init__(self, every: int, take: Callable[[], Mapping[str, Digest]]) -> None:
        self.every = every
        self._take = take
        self._taken: list[tuple[int, Mapping[str, Digest]]] = []

    def left(self, step: int) -> int:
        """Steps from `step` to the next one."""
        return self.every - step % self.every

    def look(self, now: Results) -> bool:
        """Take them; the run goes on.  Collective."""
        self._taken.append((now.step, self._take()))
        return False

    def cut(self, step: int) -> None:
        """Drop those of steps after this one."""
        self._taken = [one for one in self._taken if one[0] <= step]

    @property
    def report(self) -> DigestReport:
        """All of them."""
        return DigestReport(self.every, tuple(self._taken))

    @property
    def plain(self) -> list[Any]:
        """All of them, as `go_on` takes them."""
        return [[step, plain_digests(taken)] for step, taken in self._taken]

    def go_on(self, taken: Sequence[Any]) -> None:
        """These have been taken before."""
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
        engine = self._engine
        if self._digests is None or self._digests.engine is not engine:
            self._digests = Digests(engine, self.comm)
        return self._digests.take()


def plain_digests(digests: Mapping[str, Digest]) -> dict[str, Any]:
    """As they are in JSON."""
    return {name: one.plain for name, one in digests.items()}


def digests_of_plain(found: Mapping[str, Any]) -> dict[str, Digest]:
    """What `plain_digests` has given."""
    return {name: Digest.of_plain(one) for name, one in found.items()}
