# SPDX-License-Identifier: MIT
"""Errors that all ranks raise together.

An error on one rank alone leaves the others waiting for it for ever.  So collective functions
first state what they are about to do, all in one form and over a channel that nothing else uses:
whatever the ranks call, these messages match, and what is unlike becomes an error on every rank
that names the odd one.  While ranks agree, they exchange 32 bytes each: two digests, of what must
be the same, and of what they only tell each other.
"""
from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from hitmap.channel import channel
from hitmap.comm import Communicator

ABORT_HOOK = "CONTROLLERS_ABORT_HOOK"
_DIGEST_NBYTES = 16
_LONGEST = 200      # characters of a value that are shown
_MARK = "_raised_on_all_ranks"
_E = TypeVar("_E", bound=BaseException)
_T = TypeVar("_T")


@dataclass(frozen=True)
class _Statement:
    """What one rank is about to do."""

    call: str
    facts: tuple[tuple[str, str], ...] = ()
    problem: str | None = None


def raise_together(comm: Communicator, problem: str | None) -> None:
    """ValueError on every rank, naming those that have a problem, if any has one.  Collective."""
    _compare(comm, _Statement("a check for errors", problem=problem))


def agree(comm: Communicator, what: str, value: object) -> None:
    """ValueError on every rank, naming the odd ones, unless all hold the same value.

    Values are compared by their `repr`; lists equal tuples, NumPy's numbers Python's.  Collective.
    """
    _compare(comm, _Statement(what, ((what, plain(value)),)))


def agree_on_call(
    comm: Communicator, call: str, facts: Mapping[str, object], problem: str | None = None
) -> None:
    """ValueError on every rank unless all are about to make the same call.  Collective.

    `facts` are the arguments, and whatever else must be the same, by name; `problem` is what is
    wrong with those of this rank, named on all.
    """
    stated = tuple((name, plain(fact)) for name, fact in facts.items())
    _compare(comm, _Statement(call, stated, problem))


def agree_on_call_telling(
    comm: Communicator, call: str, facts: Mapping[str, object], mine: _T
) -> list[_T]:
    """The same, and what all ranks give, on every rank: both by one message, mostly.  Collective.
    """
    stated = tuple((name, plain(fact)) for name, fact in facts.items())
    return _told(comm, _compare(comm, _Statement(call, stated), repr(mine)), mine)


def all_values(comm: Communicator, mine: _T) -> list[_T]:
    """What all ranks give, on every rank.  Collective.

    Values are compared by their `repr`: where all are what they were at the last call, the ranks
    exchange 32 bytes each.
    """
    if comm.size == 1:
        return [mine]
    _, told = _digests(channel(comm).comm, "", repr(mine))
    return _told(comm, told, mine)


def _told(comm: Communicator, digests: bytes, mine: _T) -> list[_T]:
    """What all ranks give, of which these are the digests."""
    if comm.size == 1:
        return [mine]
    found = channel(comm)
    if found.given is None or found.given[0] != digests:
        found.given = digests, found.comm.allgather(mine)
    return found.given[1]


def hook_wanted() -> bool:
    """Whether a rank that fails is to end the job on all of them."""
    return os.environ.get(ABORT_HOOK) != "0"


def next_number(comm: Communicator) -> int:
    """The number of an object that all ranks have just agreed to make on `comm`, from 1."""
    found = channel(comm)
    found.n_objects += 1
    return found.n_objects


def on_all_ranks(error: _E) -> _E:
    """`error`, which all ranks raise alike, so that one of them is enough to report it."""
    setattr(error, _MARK, True)
    return error


def is_on_all_ranks(error: BaseException | None) -> bool:
    """Whether `on_all_ranks` has been told of `error`."""
    return getattr(error, _MARK, False)


def plain(value: object) -> str:
    """A text that is the same for values that mean the same as an argument.

    >>> plain([1, 2.0]) == plain((1.0, 2)) == plain(np.array([1, 2]))
    True
    """
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return f"({', '.join(map(plain, value))})"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return repr(os.fspath(value) if isinstance(value, os.PathLike) else value)


def _compare(comm: Communicator, mine: _Statement, beside: str = "") -> bytes:
    """The digests of what all ranks tell beside."""
    if comm.size == 1:
        if mine.problem is not None:
            raise ValueError(mine.problem)
        return b""
    found = channel(comm)
    if found.is_new:    # a rank without the hook would leave the others waiting
        found.is_new, found.is_uneven = False, True
        agree(comm, f"{ABORT_HOOK} (0 or not)", "1" if hook_wanted() else "0")
        found.is_uneven = False
    statements, told = _statements(found.comm, mine, beside)
    named = [f"rank {r}: {s.problem}" for r, s in enumerate(statements) if s.problem is not None]
    if named:
        raise on_all_ranks(ValueError("; ".join(named)))
    calls = [statement.call for statement in statements]
    if len(set(calls)) > 1:
        raise on_all_ranks(ValueError(
            f"all ranks must make the same collective calls in the same order: {odd(calls)}"
        ))  # fmt: skip
    unlike = [
        f"{name} must be the same on all ranks: {odd([dict(s.facts)[name] for s in statements])}"
        for name, fact in mine.facts
        if any(dict(statement.facts)[name] != fact for statement in statements)
    ]
    if unlike:
        where = "" if mine.call in dict(mine.facts) else f"{mine.call}: "
        raise on_all_ranks(ValueError(where + "; ".join(unlike)))
    return told


def _statements(
    talk: Communicator, mine: _Statement, beside: str
) -> tuple[Sequence[_Statement], bytes]:
    """What all ranks state: in full where they differ, else just this rank's; see `_compare`."""
    everyone, told = _digests(talk, repr((mine.call, mine.facts, mine.problem)), beside)
    if everyone == everyone[:_DIGEST_NBYTES] * talk.size:
        return [mine] * talk.size, told
    return talk.allgather(mine), told


def _digests(talk: Communicator, text: str, beside: str) -> tuple[bytes, bytes]:
    """The digests of the texts of all ranks, one after the other, and of those beside them."""
    mine = [_digest(text), _digest(beside) if beside else bytes(_DIGEST_NBYTES)]
    everyone = np.empty((talk.size, 2, _DIGEST_NBYTES), np.uint8)
    talk.Allgather(np.frombuffer(b"".join(mine), np.uint8), everyone)
    return everyone[:, 0].tobytes(), everyone[:, 1].tobytes()


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=_DIGEST_NBYTES).digest()


def odd(values: Sequence[str]) -> str:
    """Which ranks hold what: what most hold, if there is such a thing, and the others by name.

    >>> odd(["5", "5", "7"])
    'most have 5, rank 2 has 7'
    >>> odd(["5", "7"])
    'rank 0 has 5, rank 1 has 7'
    """
    (usual, count), *others = Counter(values).most_common()
    has_majority = all(n < count for _, n in others)
    said = [f"most have {_short(usual)}"] if has_majority else []
    for value in dict.fromkeys(values):
        if value != usual or not has_majority:
            ranks = [rank for rank, held in enumerate(values) if held == value]
            said.append(f"{_named(ranks)} {_short(value)}")
    return ", ".join(said)


def _named(ranks: Sequence[int]) -> str:
    if len(ranks) == 1:
        return f"rank {ranks[0]} has"
    more = f" and {len(ranks) - 8} more" if len(ranks) > 8 else ""
    return f"ranks {', '.join(map(str, ranks[:8]))}{more} have"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
