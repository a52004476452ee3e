# SPDX-License-Identifier: MIT
"""Errors that all ranks raise together.

An error on one rank alone leaves the others waiting for it for ever, so collective functions
check their arguments with these two before they exchange anything else.
"""
from __future__ import annotations

import hashlib
from collections import Counter

from hitmap.comm import Communicator


def raise_together(comm: Communicator, problem: str | None) -> None:
    """ValueError on every rank, naming those that have a problem, if any has one.  Collective."""
    if comm.size == 1 and problem is not None:
        raise ValueError(problem)
    problems = comm.allgather(problem)
    named = [f"rank {rank}: {text}" for rank, text in enumerate(problems) if text is not None]
    if named:
        raise ValueError("; ".join(named))


def agree(comm: Communicator, what: str, value: object) -> None:
    """ValueError on every rank, naming the odd ones, unless all hold the same value.

    Values are compared by their `repr`.  Collective.
    """
    text = repr(value)
    shown = text if len(text) <= 200 else f"{text[:200]}..."
    facts = comm.allgather((hashlib.sha256(text.encode()).hexdigest(), shown))
    (usual, _), *others = Counter(facts).most_common()
    if others:
        odd = "; ".join(f"rank {r} has {fact[1]}" for r, fact in enumerate(facts) if fact != usual)
        raise ValueError(f"{what} must be the same on all ranks: most have {usual[1]}, {odd}")
