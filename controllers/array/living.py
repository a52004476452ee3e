# SPDX-License-Identifier: MIT
"""The expressions that somebody may look at later, on all ranks the same."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Protocol
from weakref import ReferenceType, ref

from controllers.array.source import Source
from controllers.array.term import Term
from hitmap.agreement import all_values
from hitmap.comm import Communicator


class Holder(Protocol):
    """What may be looked at after fields have changed."""

    def reads(self, sources: Set[Source], views: bool) -> bool:
        """Whether it is to be computed before these change."""

    def hold(self) -> object:
        """Compute it now, into tiles of its own."""

    def bring(self) -> None:
        """Compute it now, and keep it on the host until it is used."""

    def outlive(self) -> None:
        """Compute it now, and keep it on the host: the computation ends."""

    def lose(self) -> None:
        """It cannot be computed any more."""


class Expression(Protocol):
    """One whose term may be replaced by another one with the same values."""

    term: Term

    def hold(self) -> Term:
        """Compute it now, into tiles of its own."""


class Living:
    """They are numbered as they are made, which all ranks do alike; no reference is held."""

    def __init__(self, comm: Communicator) -> None:
        self._comm = comm
        self._known: dict[ReferenceType[Holder], int] = {}
        self._drop = self._known.pop    # what nobody can look at any more
        self._n_made = 0

    def add(self, one: Holder) -> None:
        """One that has just been made gets a number."""
        self._n_made += 1
        self._known[ref(one, self._drop)] = self._n_made

    def is_alone(self, one: object = None) -> bool:
        """Whether there is no other, and no rank to ask, as mostly."""
        if len(self._known) > 1 or self._comm.size > 1:
            return False
        return all(known() is one for known in self._known)

    def those(
        self, concerned: Callable[[Holder], bool], *, agreed: bool = True
    ) -> list[Holder]:
        """Those that all ranks still have, in the order in which they were made.  Collective.

        What another rank has let go of cannot be computed any more.  Unless they are to be
        `agreed` on, those of this rank, which is not collective.
        """
        found = self.mine(concerned)
        if self._comm.size == 1 or not agreed:
            return [*found.values()]
        return self.common(found, all_values(self._comm, self.told(found)))

    def mine(self, concerned: Callable[[Holder], bool]) -> dict[int, Holder]:
        """Those of this rank, by number, in the order in which they were made."""
        living = {n: one() for one, n in [*self._known.items()]} if self._known else {}
        return {n: one for n, one in living.items() if one is not None and concerned(one)}

    def told(self, found: Mapping[int, Holder]) -> tuple[int, ...]:
        """What the other ranks must know of these: how many were made here, and their numbers."""
        return (self._n_made, *found) if found else ()

    def common(
        self, found: Mapping[int, Holder], everyone: Sequence[tuple[int, ...]]
    ) -> list[Holder]:
        """Of those of this rank the ones that all ranks have, where `everyone` has `told` its own.

        None of them where the ranks have made unlike ones, so that numbers mean nothing.
        """
        alike = len({n_made for n_made, *_ in filter(None, everyone)}) == 1
        common = {*found}.intersection(*(told[1:] for told in everyone)) if alike else {*()}
        for number in found.keys() - common:
            found[number].lose()
        return [found[number] for number in sorted(common)]
