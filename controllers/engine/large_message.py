# SPDX-License-Identifier: MIT
"""Large messages, between ranks of one machine read by the receiver out of the sender's memory.

    sender      where it lies ----->  receiver
                                      copies, by threads beside the one that drives its devices
                <------------- taken, or not

MPI brings a message in the calls that ask after it, by two copies of the thread that asks.  Where
the other rank's memory cannot be read MPI does it all the same: at the first message this shows.
"""
# docs/decisions/0106-large-messages-are-read-where-they-lie.md
from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from controllers.device.event import COMPLETE, UNDER_WAY, Event, Noticed
from controllers.engine.host_work import Assistants
from controllers.engine.network import LARGEST_TAG, MessageEnd
from hitmap.comm import Communicator
from hitmap.process_memory import let_siblings_read, machine, read_memory
from hitmap.sealed import SealedCommunicator

TAKEN, REFUSED = 1, 2
# Those of one tag that were started, and are not over: the first one is under way.  Of several the
# parts, and what is said of them, would be told apart by nothing.
Line: TypeAlias = "deque[LargeMessage]"


class LargeMessage(Noticed):
    """As a `MessageEnd`; where it is read, the sender's end is complete when the receiver has all.

    line: of all ends here with this peer, tag and direction.  Tags count from 0, those of what is
    said to the sender from the largest one down.  What is sealed is left to MPI, which seals.
    """

    def __init__(
        self, assistants: Assistants, line: Line, comm: Communicator,
        runs: Sequence[npt.NDArray[Any]], peer: int, tag: int, *, sends: bool, name: str,
    ) -> None:  # fmt: skip
        self._assistants, self._line, self._runs, self._sends = assistants, line, runs, sends
        self._by_mpi = partial(MessageEnd, comm, runs, peer, tag, sends=sends, name=name)
        self._where, self._answer = np.zeros(2 + len(runs), np.int64), np.zeros(1, np.int64)
        self._fetching: Event | None = None
        self._is_started = self._is_begun = self._has_answered = False
        self._message: MessageEnd | None = None
        self._said: tuple[MessageEnd, ...] = ()
        if isinstance(comm, SealedCommunicator) or 2 * tag >= LARGEST_TAG:
            self._message = self._by_mpi()
            return
        if sends:
            let_siblings_read()
            self._where[:] = machine(), os.getpid(), *(run.ctypes.data for run in runs)
        answer_name = f"the answer to {name}"
        self._said = (
            MessageEnd(comm, [self._where], peer, tag, sends=sends, name=name),
            MessageEnd(
                comm, [self._answer], peer, LARGEST_TAG - tag, sends=not sends, name=answer_name
            ),
        )  # fmt: skip

    def __call__(self, wait_for: Sequence[Event] | None = None) -> Event:
        self._begin = time.perf_counter_ns()
        self._line.append(self)
        self._is_started, self._is_begun = True, False
        self._begin_in_turn()
        return self

    @property
    def command_execution_status(self) -> int:
        if not self._is_started:
            return COMPLETE
        if not self._is_begun and not self._begin_in_turn():
            return UNDER_WAY
        if self._message is None and not self._is_answered():
            return UNDER_WAY
        if self._message is not None and self._message.command_execution_status > COMPLETE:
            return UNDER_WAY
        self._line.popleft()
        self._is_started = False
        self._note_end()
        return COMPLETE

    def close(self) -> None:
        """Give the requests back to MPI; nothing is under way."""
        for message in (*self._said, self._message):
            if message is not None:
                message.close()

    def _begin_in_turn(self) -> bool:
        """Begin it, if those before it are over, which perhaps nobody else asks after."""
        while self._line[0] is not self:
            if self._line[0].command_execution_status > COMPLETE:
                return False
        self._is_begun = True
        if self._message is not None:
            self._message(None)
            return True
        where, answer = self._said
        where(None)
        self._has_answered = self._sends
        if self._sends:
            answer(None)
        return True

    def _is_answered(self) -> bool:
        """Whether the receiver has said that it has all, or else that MPI has to bring it."""
        where, answer = self._said
        if where.command_execution_status > COMPLETE:
            return False
        if not self._has_answered and not self._answers():
            return False
        if answer.command_execution_status > COMPLETE:
            return False
        if self._answer[0] == REFUSED:
            self._message = self._by_mpi()
            self._message(None)
        return True

    def _answers(self) -> bool:
        """At the receiver: whether it has what it can have, and has said so."""
        process, addresses = int(self._where[1]), self._where[2:]
        try:
            if not machine() or self._where[0] != machine():
                raise OSError("another machine, or a system on which this cannot be")
            if self._fetching is None:
                self._fetching = self._assistants.command(*(
                    partial(_read, process, [
                        (int(addresses[number]) + low, self._bytes(number)[low:high])
                        for number, low, high in parts
                    ])
                    for parts in self._assistants.shared_out([run.nbytes for run in self._runs])
                ))(None)  # fmt: skip
            if self._fetching.command_execution_status > COMPLETE:
                return False
            self._answer[0] = TAKEN
        except OSError:
            self._answer[0] = REFUSED
        self._fetching, self._has_answered = None, True
        self._said[1](None)
        return True

    def _bytes(self, number: int) -> npt.NDArray[np.uint8]:
        found: npt.NDArray[np.uint8] = self._runs[number].view(np.uint8)
        return found


def _read(process: int, parts: Sequence[tuple[int, npt.NDArray[np.uint8]]]) -> None:
    for address, into in parts:
        read_memory(process, address, into)
