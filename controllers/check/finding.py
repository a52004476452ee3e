# SPDX-License-Identifier: MIT
"""What the checked mode finds, and the error that says so on all ranks."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from controllers.process.error import ControllersError
from hitmap.comm import Communicator

FaultKind = Literal[
    "unwritten",        # a cell is read that nobody has written
    "stale",            # ... that holds the value of another step, or of another cell
    "corrupt",          # a cell holds other bits than were written or sent there
    "unordered",        # a command does not wait for one that uses the same cells
    "overlap",          # a cell is written twice in one step
    "place",            # a launch computes cells that are not its place's
    "undeclared",       # a kernel reads what it does not declare
    "bounds",           # a kernel leaves a tile, or the cells that it was given of one
    "read-only",        # a kernel writes what it was given to read
    "foreign",          # a kernel writes cells that it was not launched for
    "unset",            # a kernel leaves out cells that it was launched for
    "race",             # two work-items of a kernel use one cell, and one of them writes it
    "barrier",          # some work-items of a group do not come to a barrier
    "uninitialised",    # a kernel uses a value that was never set
    "nan",              # the result is NaN where no cell that was read is
    "bits",             # a generated kernel does not compute what the reference does
]  # fmt: skip
Index: TypeAlias = "tuple[int, ...] | None"


@dataclass(frozen=True)
class Complaint:
    """What is wrong with one launch or one operation; `index` is global, None if unknown."""

    kind: FaultKind
    what: str
    field: str = ""
    index: Index = None


class CheckError(ControllersError, RuntimeError):
    """The checked mode has found a fault; raised on all ranks of a computation.

    kind: a word for it, one of `controllers.check.finding.Kind`.  what: a sentence.
    field, index: the field or tile and the global index of the cell; "" and None if unknown.
    rank, step: where it was found, and in which step of the field (for a `Controller`, in which of
        its launches), counted from 0.
    """

    __module__ = "controllers"

    def __init__(self, complaint: Complaint, rank: int, step: int) -> None:
        self.kind, self.what = complaint.kind, complaint.what
        self.field, self.index = complaint.field, complaint.index
        self.rank, self.step = rank, step
        super().__init__(f"{self.kind}, rank {rank}, step {step}: {self.what}")


class KernelError(ControllersError, ValueError):
    """A kernel that does other than its stencil declares; says kernel, device and offset."""

    __module__ = "controllers"


def raise_first(comm: Communicator, complaint: Complaint | None, step: int) -> None:
    """Raise the earliest complaint of all ranks on all of them, if there is any.  Collective."""
    everyone = comm.allgather((step, complaint))
    found = [(step, rank) for rank, (step, one) in enumerate(everyone) if one is not None]
    if found:
        step, rank = min(found)
        first = everyone[rank][1]
        assert first is not None
        raise CheckError(first, rank, step)
