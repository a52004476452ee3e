# SPDX-License-Identifier: MIT
"""The one state of a computation, which every verb asks first: ready, running, torn or closed.

*Running* is as long as a verb is under way, also while it calls a function of the user's: what
that function asked for would be stale, torn, or a message that no other rank expects.  *Torn* is
a field of which some cells are newer than others, after a run or a load that was broken off.
"""
# docs/decisions/0025-a-run-ends-at-a-step-that-all-share.md
from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Literal, Protocol

from hitmap.agreement import on_all_ranks

# What a verb does with the field.
Effect = Literal["nothing", "reads", "sets"]
# What it does with a run that stands still: ends it, reads cells beside it, or goes on with it.
Beside = Literal["ends", "reads", "goes on"]

_SET_ANEW = "set it anew with set, load, scatter or load_file"


class Standing(Protocol):
    """A run that stands still."""

    def end(self) -> None: ...
    def stand(self) -> None: ...


class State:
    """What a computation, or another `owner`, is in a state for, on this rank.

    standing: the run of `steps` that stands still while its user looks; None where there is none.
    """

    def __init__(self, owner: str = "Computation") -> None:
        self.closed = False
        self._owner = owner
        self._start_anew = f"make a new {owner}"    # messages may be under way that nobody expects
        self.standing: Standing | None = None
        self._verb = ""         # under way
        self._torn: dict[str, str] = {}     # by what which field is
        self._remedy = _SET_ANEW

    def __str__(self) -> str:
        """
        >>> print(State())
        ready
        """
        if self._verb:
            return f"running {self._verb}"
        return "closed" if self.closed else "torn" if self._torn else "ready"

    @contextmanager
    def during(self, verb: str, *, or_closed: bool = False) -> Iterator[None]:
        """`verb` is under way; RuntimeError where another one is, or after the end."""
        self.check_idle(verb, or_closed=or_closed)
        self._verb = verb
        try:
            yield
        finally:
            self._verb = ""

    def check_idle(self, verb: str, *, or_closed: bool = False) -> None:
        """RuntimeError where another verb is under way, or after the end unless `or_closed`."""
        if self._verb:
            raise RuntimeError(
                f"{verb} must not be called while {self._verb} is under way, as by what "
                f"{self._verb} calls: call it when {self._verb} has returned"
            )
        if self.closed and not or_closed:
            raise RuntimeError(
                f"{verb}: the {self._owner.lower()} is closed; {self._start_anew}"
            )

    def meet(self, beside: Beside) -> None:
        """A run that stands still ends, or stands so that cells can be read, as a verb needs it."""
        standing = self.standing
        if standing is None or beside == "goes on":
            return
        if beside == "reads":
            standing.stand()
            return
        self.standing = None
        standing.end()

    def facts(self, use: Effect) -> dict[str, object]:
        """What must be the same on all ranks for a verb that does this with the field."""
        torn = self._torn_by
        needed = {"nothing": "", "reads": torn, "sets": torn * self._is_lost}
        return {"what the field is torn by": needed[use] or None}

    def check(self, verb: str, use: Effect) -> None:
        """RuntimeError where the field is not as the verb needs it: on all ranks alike."""
        if self._torn and (use == "reads" or (use == "sets" and self._is_lost)):
            raise on_all_ranks(RuntimeError(
                f"{verb}: the field is torn, as {self._torn_by} was broken off: some of its cells "
                f"are newer than others; {self._remedy}"
            ))  # fmt: skip

    def tear(self, verb: str, fields: Iterable[str], *, is_lost: bool = False) -> None:
        """`verb` was broken off; `is_lost`: no other verb can mend that."""
        self._torn.update(dict.fromkeys(fields, verb))
        self._remedy = self._start_anew if is_lost else _SET_ANEW

    @contextmanager
    def setting(
        self, verb: str, fields: Iterable[str], *, is_lost: bool = False
    ) -> Iterator[None]:
        """All cells of these are set meanwhile: they are whole in the end, and torn before."""
        names = tuple(fields)
        self.tear(verb, names, is_lost=is_lost)
        yield
        for name in names:
            del self._torn[name]

    @property
    def _torn_by(self) -> str:
        return ", ".join(dict.fromkeys(self._torn.values()))

    @property
    def _is_lost(self) -> bool:
        return self._remedy == self._start_anew
