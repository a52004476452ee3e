# SPDX-License-Identifier: MIT
"""Collective calls: agreed on by all ranks before they do anything, and remembered.

Methods that all ranks call together are marked `collective`.  Each call first asks whether the
object is in a state for it, then compares, on all ranks, which method of which object is called,
with which arguments, after how many steps; what differs is an error on every rank.  What is under
way and what came before is kept for a watchdog.
"""
from __future__ import annotations

import inspect
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from controllers.calls.state import Beside, Effect, State
from hitmap.agreement import (
    agree_on_call,
    agree_on_call_telling,
    on_all_ranks,
    raise_together,
)
from hitmap.argument import wrong
from hitmap.comm import Communicator

N_REMEMBERED = 8
_R = TypeVar("_R")


class Call:
    """One call, and how it went."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.outcome = "under way"
        self._start = self._end = time.monotonic()

    def end(self, outcome: str) -> None:
        """It has returned or failed."""
        self.outcome, self._end = outcome, time.monotonic()

    def __str__(self) -> str:
        end = time.monotonic() if self.outcome == "under way" else self._end
        return f"{self.name}: {self.outcome}, {end - self._start:.3g} s"


class Calls:
    """The calls of one object on this rank."""

    def __init__(self, comm: Communicator, owner: str) -> None:
        self.owner = owner      # as all ranks know it
        self.n_events = 0       # grows with all that happens
        self.open = 0           # calls under way, one inside the other
        self.agreeing = False   # waits for all ranks to make the call
        self.last: deque[Call] = deque(maxlen=N_REMEMBERED)
        self._comm = comm
        self._began: Callable[[], None] | None = None
        self._ended: Callable[[], None] | None = None

    def watch(self, began: Callable[[], None], ended: Callable[[], None]) -> None:
        """From now on tell when the first call is under way, and when none is any more."""
        self._began, self._ended = began, ended

    @contextmanager
    def agreed(self, name: str, /, **facts: object) -> Iterator[None]:
        """A call that all ranks make alike."""
        with self.remembered(name):
            self.agree(name, facts)
            yield

    @contextmanager
    def remembered(self, name: str) -> Iterator[None]:
        """A call, which may be part of another one."""
        call = Call(f"{name} of {self.owner}")
        self.last.append(call)
        self.open += 1
        if self.open == 1 and self._began is not None:
            self._began()
        outcome = "failed"
        try:
            yield
            outcome = "done"
        finally:
            call.end(outcome)
            self.open -= 1
            self.go_on()
            if self.open == 0 and self._ended is not None:
                self._ended()

    def agree(self, name: str, facts: Mapping[str, object]) -> None:
        """ValueError on all ranks unless these are alike.  Collective."""
        with self._agreeing():
            agree_on_call(self._comm, f"{name} of {self.owner}", facts)

    def agree_telling(
        self, name: str, facts: Mapping[str, object], mine: tuple[int, ...]
    ) -> list[tuple[int, ...]]:
        """The same, and what all ranks have as `mine`.  Collective."""
        with self._agreeing():
            return agree_on_call_telling(self._comm, f"{name} of {self.owner}", facts, mine)

    @contextmanager
    def _agreeing(self) -> Iterator[None]:
        self.agreeing = True
        try:
            yield
        finally:
            self.agreeing = False
        self.go_on()

    def go_on(self) -> None:
        """A part of a call has ended."""
        self.n_events += 1

    @property
    def alone(self) -> bool:
        """Whether there is nobody to agree with."""
        return self._comm.size == 1


def check_communicator(comm: object) -> None:
    """TypeError unless `comm` is None or has what a communicator of MPI has."""
    wanted = ("rank", "size", "allgather", "Allgather", "bcast", "Dup")
    if comm is not None and not all(hasattr(comm, name) for name in wanted):
        raise wrong("comm", "a communicator of mpi4py, or None", comm, "write MPI.COMM_WORLD")


def refuse_together(comm: Communicator, make: Callable[[], _R]) -> _R:
    """What `make` makes of arguments; what it raises, and that on all ranks, where it cannot.

    The others come to know of it by the next agreement with all ranks, in a ValueError.
    """
    try:
        return make()
    except (IndexError, TypeError, ValueError) as error:
        if comm.size > 1:
            with suppress(ValueError):
                raise_together(comm, str(error))
        raise on_all_ranks(error) from None


@contextmanager
def together(comm: Communicator, what: str) -> Iterator[None]:
    """Work that each rank does: what it raises on one of them is a ValueError on the others.

    Collective.
    """
    failed: Exception | None = None
    try:
        yield
    except Exception as error:
        failed = error
    said = None if failed is None else f"{what}: {type(failed).__name__}: {failed}"
    try:
        raise_together(comm, said)
    except ValueError:
        if failed is None:
            raise
    if failed is not None:
        raise on_all_ranks(failed)


def stated(facts: Mapping[str, object]) -> dict[str, object]:
    """Facts by name, where some values are groups that have several."""
    found: dict[str, object] = {}
    for name, value in facts.items():
        group = getattr(value, "facts", None)
        found.update({name: value} if group is None else group)
    return found


class _Owner(Protocol):
    """An object with collective methods."""

    @property
    def calls(self) -> Calls: ...
    @property
    def state(self) -> State: ...
    @property
    def facts(self) -> Mapping[str, object]:
        """What must be the same on all ranks whenever they use what the object holds."""


_Self = TypeVar("_Self", bound=_Owner)
_P = ParamSpec("_P")
_Method = Callable[Concatenate[_Self, _P], _R]


def collective(
    *same: str, use: Effect = "nothing", or_closed: bool = False, beside: Beside = "ends"
) -> Callable[[_Method[_Self, _P, _R]], _Method[_Self, _P, _R]]:
    """Marks a method that all ranks call together, the arguments `same` being equal on all.

    Of the object they are attributes that say which object is meant.
    use: what it does with the field, which decides in which states it may be called; `or_closed`:
    after the end, too.  beside: what it does with a run that stands still.
    """

    def mark(method: _Method[_Self, _P, _R]) -> _Method[_Self, _P, _R]:
        signature, name = inspect.signature(method), method.__name__.strip("_")

        @wraps(method)
        def called(self: _Self, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
            with self.state.during(name, or_closed=or_closed), self.calls.remembered(name):
                self.state.meet(beside)
                if not self.calls.alone:
                    given = signature.bind(self, *args, **kwargs)
                    given.apply_defaults()
                    facts = stated({
                        key: given.arguments[key] if key in given.arguments else getattr(self, key)
                        for key in same
                    })  # fmt: skip
                    before = {} if use == "sets" else self.facts
                    self.calls.agree(name, {**before, **self.state.facts(use), **facts})
                self.state.check(name, use)
                return method(self, *args, **kwargs)

        return called

    return mark


def noted(
    use: Effect, beside: Beside = "ends"
) -> Callable[[_Method[_Self, _P, _R]], _Method[_Self, _P, _R]]:
    """Marks a method that ranks call on their own: remembered, and refused as collective ones."""

    def mark(method: _Method[_Self, _P, _R]) -> _Method[_Self, _P, _R]:
        name = method.__name__.strip("_")

        @wraps(method)
        def called(self: _Self, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
            with self.state.during(name), self.calls.remembered(name):
                self.state.meet(beside)
                self.state.check(name, use)
                return method(self, *args, **kwargs)

        return called

    return mark
