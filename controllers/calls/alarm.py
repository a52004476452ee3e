# SPDX-License-Identifier: MIT
"""What the watchdogs of a job tell each other: short messages, which threads send and look for.

They travel on the channel of a communicator, where agreements are all else, with tags of their
own for each object that is watched.
"""
from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import TYPE_CHECKING, cast

import numpy as np

from hitmap.channel import channel
from hitmap.comm import Communicator, message_status, threads_may_send

if TYPE_CHECKING:
    from mpi4py import MPI

_N_OBJECTS = 6000   # tags up to 32767 are there in any MPI library


class Word(IntEnum):
    """What a message says; with each comes a number of seconds."""

    ASK = 0         # when has something ended at yours?
    AGE = 1         # so many seconds ago
    NOTICE = 2      # nothing has ended anywhere for so long: say where you are
    ALARM = 3       # the same, and end
    SAID = 4        # I have said it


class Alarm:
    """Messages to the watchdogs of the other ranks; none before `connect`."""

    def __init__(self) -> None:
        self._comm: MPI.Intracomm | None = None
        self._first_tag = 0
        self._sent: list[tuple[MPI.Request, object]] = []   # with what they send

    def connect(self, comm: Communicator, number: int) -> None:
        """All ranks of `comm` have agreed to make the object `number`."""
        if comm.size > 1 and threads_may_send():
            self._first_tag = number % _N_OBJECTS * len(Word)
            self._comm = cast("MPI.Intracomm", channel(comm).comm)

    @property
    def n_others(self) -> int:
        """How many ranks may answer."""
        return 0 if self._comm is None else self._comm.size - 1

    def tell_all(self, word: Word, seconds: float) -> None:
        """Tell all other ranks."""
        if self._comm is not None:
            for rank in range(self._comm.size):
                if rank != self._comm.rank:
                    self.tell(rank, word, seconds)

    def tell(self, rank: int, word: Word, seconds: float) -> None:
        """Tell one rank; returns at once."""
        if self._comm is not None:
            content = np.array([seconds])
            request = self._comm.Isend(content, rank, self._first_tag + word)
            self._sent = [sent for sent in self._sent if not sent[0].Test()]
            self._sent.append((request, content))

    def heard(self) -> Iterator[tuple[int, Word, float]]:
        """What others have said since: rank, word, seconds."""
        if self._comm is None:
            return
        status, content = message_status(), np.empty(1)
        for word in Word:
            tag = self._first_tag + word
            while self._comm.Iprobe(tag=tag, status=status):
                self._comm.Recv(content, status.Get_source(), tag)
                yield status.Get_source(), word, float(content[0])
