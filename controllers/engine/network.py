# SPDX-License-Identifier: MIT
"""Messages as commands: persistent MPI requests, bound once and started every period."""
from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from controllers.device.event import COMPLETE, UNDER_WAY, CommandFailed, Event, Noticed
from controllers.plan import Plan
from hitmap.comm import Communicator, message_status
from hitmap.sealed import SealedReceive

LARGEST_TAG = 32767     # what every MPI library allows
# Of one message of MPI's.  Libraries bring it within one call that asks after any, which then takes
# as long as a copy of it, between ranks of a node: half a millisecond.
PIECE_NBYTES = 1 << 22
AHEAD = 4       # pieces of a message that are under way, at most


class WrongLength(CommandFailed):
    """A halo message had another length than planned; MPI itself accepts a shorter one."""


class AlteredMessage(CommandFailed):
    """A halo message has arrived, whole, otherwise than it was sent; the next one may be right."""


class MessageEnd(Noticed):
    """One message between two ranks: the command that starts it, and the event of its end.

    `runs` are contiguous host memory each, to be sent or received into; it must not change, or
    be read, until the event is complete.  `name` is what errors call the message.  Each run goes
    by itself, and more than `most_nbytes` of one in several parts, which MPI keeps in order; both
    ends have runs of the same lengths.  Of several parts one look at the event completes one.
    """

    def __init__(
        self,
        comm: Communicator,
        runs: Sequence[npt.NDArray[Any]],
        peer: int,
        tag: int,
        *,
        sends: bool,
        name: str = "a halo message",
        most_nbytes: int = PIECE_NBYTES,
    ) -> None:
        if tag > LARGEST_TAG:
            raise ValueError(f"message tag {tag} exceeds {LARGEST_TAG}; use fewer places per rank")
        self._nbytes, self._sends = sum(run.nbytes for run in runs), sends
        source, target = (comm.rank, peer) if sends else (peer, comm.rank)
        self._name = f"{name} from rank {source} to rank {target} (tag {tag})"
        self._status = message_status()
        init = comm.Send_init if sends else comm.Recv_init
        self._parts = [
            run.view(np.uint8)[first : first + most_nbytes]
            for run in runs for first in range(0, max(1, run.nbytes), most_nbytes)
        ]  # fmt: skip
        self._requests = [init(part, peer, tag) for part in self._parts]
        self._n_begun = self._n_done = len(self._parts)     # from the first one on
        self._done, self._is_altered = True, False

    def __call__(self, wait_for: Sequence[Event] | None = None) -> Event:
        assert self._done, "a request is started again when it is complete"
        self._begin = time.perf_counter_ns()    # before, or it may be received earlier
        self._n_begun, self._n_done, self._done = 0, 0, False
        self._begin_parts()
        return self

    @property
    def command_execution_status(self) -> int:
        if not self._done:
            if self._part_is_done():
                self._n_done += 1
                self._done = self._n_done == len(self._parts)
                self._begin_parts()
            if not self._done:
                return UNDER_WAY
        if self._noted is not None:
            self._note_end()
        if self._is_altered:
            self._is_altered = False
            raise AlteredMessage(
                f"{self._name} has arrived otherwise than it was sent: {self._nbytes} bytes have "
                f"another checksum"
            )
        return COMPLETE

    def _begin_parts(self) -> None:
        """Start those that may be under way."""
        for request in self._requests[self._n_begun : self._n_done + AHEAD]:
            request.Start()
            self._n_begun += 1

    def _part_is_done(self) -> bool:
        """Whether the first part that was not done is now."""
        try:
            if not self._requests[self._n_done].Test(self._status):
                return False
        except RuntimeError as error:   # MPI's own: it does not write beyond the end
            raise self._wrong_length(f"what MPI refuses ({error})") from error
        arrived, expected = self._status.Get_count(), self._parts[self._n_done].size
        if not self._sends and arrived != expected:
            before = sum(part.size for part in self._parts[: self._n_done])
            raise self._wrong_length(f"{before + arrived}")
        request = self._requests[self._n_done]
        if isinstance(request, SealedReceive) and request.is_altered:
            self._is_altered = True     # the other parts come all the same
        return True

    def close(self) -> None:
        """Give the requests back to MPI."""
        for request in self._requests:
            request.Free()

    def _wrong_length(self, got: str) -> WrongLength:
        return WrongLength(
            f"{self._name} must have {self._nbytes} bytes by the plan, got {got}; "
            f"do all ranks run the same program with the same arguments?"
        )


def message_tags(plan: Plan) -> dict[int, int]:
    """Message tags: the position among the messages between the same two ranks."""
    used: dict[tuple[int, int], int] = {}
    tags: dict[int, int] = {}
    for bundle in plan.bundles:
        ranks = (plan.locations[bundle.source].rank, plan.locations[bundle.target].rank)
        tags[bundle.number] = used.get(ranks, 0)
        used[ranks] = tags[bundle.number] + 1
    return tags
